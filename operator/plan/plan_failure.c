/* SPDX-License-Identifier: Apache-2.0 */
/* Describes the last failure of a task in a sentence: its exit code, the reason, the node, and
 * where its log is. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "operator/plan/plan_internal.h"

enum { EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127, EXIT_SIGNAL = 128 };

/* Reasons that a kubelet gives for the end of a container. */
static const struct {
	const char *reason, *advice;
} reasons[] = {
    {"OOMKilled", "it used more than its memory limit, raise resources.limits.memory"},
    {POD_NO_EXECUTABLE, "executable not found in the image, check program.command and image"},
    {"StartError", "its container could not be started, check program.command and image"},
    {"ContainerCannotRun", "its container could not be started, check program.command and image"},
};

/* The text between the brackets behind the exit code. */
static void put_reason(const struct index_status *e, char *out, size_t size)
{
	bool named = e->reason[0] && strcmp(e->reason, "Error") != 0;
	int signal = e->exit_code - EXIT_SIGNAL;

	for (unsigned i = 0; i < MU_COUNT(reasons); i++)
		if (strcmp(e->reason, reasons[i].reason) == 0) {
			snprintf(out, size, "%s: %s", e->reason, reasons[i].advice);
			return;
		}
	if (named)
		snprintf(out, size, "%s", e->reason);
	else if (e->exit_code == EXIT_NOT_FOUND)
		snprintf(out, size, "executable not found, check program.command");
	else if (e->exit_code == EXIT_NOT_EXECUTABLE)
		snprintf(out, size, "program is not executable");
	else if (signal > 0 && sigabbrev_np(signal))
		snprintf(out, size, "SIG%s", sigabbrev_np(signal));
	else
		snprintf(out, size, "Error");
}

const char *plan_failure_text(const struct planner *p, const struct index_status *e)
{
	struct mu_arena *a = &p->plan->arena;
	char reason[160], code[40] = "without an exit code";

	put_reason(e, reason, sizeof reason);
	if (e->exit_code >= 0)
		snprintf(code, sizeof code, "with exit code %d", e->exit_code);
	return mu_arena_printf(a, "%s/%d ended %s (%s)%s%s", e->task, e->index, code, reason,
			       *e->node ? " on node " : "", e->node);
}

const char *plan_log_text(const struct planner *p, const char *task, int index)
{
	struct mu_arena *a = &p->plan->arena;

	if (p->options->log_folder)
		return mu_arena_printf(a, "%s/%s-%d.log", p->options->log_folder, task, index);
	return mu_arena_printf(a, "kubectl logs -n %s %s-%s-%d", p->spec->namespace, p->spec->name,
			       task, index);
}

const struct index_status *plan_last_failure(const struct planner *p)
{
	const struct index_status *last = NULL;
	double last_end = 0;

	for (unsigned i = 0; i < p->status->n_ledger; i++) {
		const struct index_status *e = &p->status->ledger[i];
		double end = e->retry_at - plan_backoff(e->failures);

		if (!e->failures || e->done || e->uncounted || (last && end < last_end))
			continue;
		last = e;
		last_end = end;
	}
	return last;
}
