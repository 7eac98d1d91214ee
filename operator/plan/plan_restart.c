/* SPDX-License-Identifier: Apache-2.0 */
/* Records how the pods of an index ended, decides whether it runs again, and describes a failure:
 * its exit code, the reason and the node. */
#include <signal.h>
#include <stdio.h>

#include "lib/base/backoff.h"
#include "operator/plan/planner.h"

enum { EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127, EXIT_SIGNAL = 128 };

/* The exits after which a policy restarts a task.  Exit codes 1 to 127 are set by the program.
 * Codes from 128 on are signals with an external cause (out of memory, a node that shuts down),
 * which may not occur again. */
static const struct {
	bool success, error, signal;
} restarts[] = {
    [RESTART_NEVER] = {false, false, false},
    [RESTART_ON_FAILURE] = {false, true, true},
    [RESTART_ALWAYS] = {true, true, true},
    [RESTART_EXIT_CODE] = {false, false, true},
};

/* True when the restart policy allows another attempt after a failure.  A server that ends with 0
 * before the job does runs again under any policy. */
static bool may_restart(const struct task_spec *t, const struct index_status *e)
{
	bool error = e->exit_code >= 0 && e->exit_code < EXIT_SIGNAL;

	if (t->kind == TASK_PS && e->exit_code == 0)
		return true;
	return error ? restarts[t->restart].error : restarts[t->restart].signal;
}

/* The delay in seconds before the next attempt of an index. */
static double backoff(int failures)
{
	return mu_backoff(failures - 1, 1, PLAN_BACKOFF_MAX_S);
}

/* An evicted program may end with 0 because it was terminated. */
static bool ended_well(const struct observed_pod *pod)
{
	return pod->phase == POD_SUCCEEDED || (pod->exit_code == 0 && !pod->disrupted);
}

/* An end with 0 is final, except for a server while the job runs and for the policy Always.  It is
 * final under Always, too, when the success of the job depends on it. */
static bool end_is_final(const struct planner *p, const struct task_spec *t,
			 const struct observed_pod *pod)
{
	if (!ended_well(pod))
		return false;
	if (t->kind == TASK_PS)
		return plan_has_ended(p) || plan_has_succeeded(p);
	return !restarts[t->restart].success || plan_decides_success(p->spec, t);
}

static void record_end(struct planner *p, const struct task_index *x)
{
	const struct observed_pod *pod = x->pod;
	struct index_status *e = x->record;
	bool zero = ended_well(pod), no_gpu;

	if (strcmp(e->uid, pod->uid) == 0 || e->done || pod->created < e->created)
		return;
	e->created = pod->created;
	snprintf(e->uid, sizeof e->uid, "%s", pod->uid);
	snprintf(e->reason, sizeof e->reason, "%s",
		 pod->reason ? pod->reason
		 : zero      ? "Completed"
			     : "Error");
	snprintf(e->node, sizeof e->node, "%s", pod->node ? pod->node : "");
	e->exit_code = pod->phase == POD_SUCCEEDED ? 0 : pod->exit_code;
	e->attempts++;
	no_gpu = plan_gpu_fallback(p, x);
	if (!no_gpu)
		plan_report_kernels(p, x);
	e->done = end_is_final(p, x->task, pod);
	e->uncounted = (pod->disrupted || no_gpu) && !zero;
	e->retry_at = 0;
	if (e->done || plan_has_ended(p))
		return;
	if (e->uncounted) { /* the first one costs no delay; a node may end pods again and again */
		if (e->attempts - e->failures > 1)
			e->retry_at = p->now + backoff(e->attempts - e->failures - 1);
		return;
	}
	if (!zero || !restarts[x->task->restart].success) {
		e->failures++;
		/* not the first end with 0: a server may end before the operator knows that the
		 * training has ended */
		if (!zero || e->failures > 1)
			p->status->restarts += plan_task_counts(x->task);
	}
	e->retry_at = p->now + backoff(e->failures);
}

/* Servers are recorded last: their end is final only when the chief is done. */
void plan_record_terminated_pods(struct planner *p)
{
	for (int servers = 0; servers < 2; servers++)
		plan_each_index (p, x)
			if ((x->task->kind == TASK_PS) == servers && x->pod &&
			    plan_pod_has_ended(x->pod) && !x->pod->ended_by_deletion &&
			    !x->pod->is_departure_pod)
				record_end(p, x);
}

/* True when the index has failures that count, and is not done. */
static bool has_failed(const struct index_status *e)
{
	return e->failures && !e->done && !e->uncounted;
}

const struct index_status *plan_fatal_failure(const struct planner *p)
{
	plan_each_wanted (p, x)
		if (has_failed(x->record) && x->record->uid[0] &&
		    !may_restart(x->task, x->record) &&
		    !(x->pod && strcmp(x->pod->uid, x->record->uid) != 0))
			return x->record;
	return NULL;
}

const struct index_status *plan_last_failure(const struct planner *p)
{
	const struct index_status *last = NULL;
	double last_end = 0;

	plan_each_index (p, x) {
		double end_time = x->record->retry_at - backoff(x->record->failures);

		if (!has_failed(x->record) || (last && end_time < last_end))
			continue;
		last = x->record;
		last_end = end_time;
	}
	return last;
}

/* Reasons that a kubelet gives for the end of a container. */
static const struct {
	const char *reason, *advice;
} reasons[] = {
    {"OOMKilled", "it used more than its memory limit, raise resources.limits.memory"},
    {POD_NO_EXECUTABLE, "executable not found in the image, check program.command and image"},
    {POD_INIT_FAILED, "see kubectl logs with -c and the name of the init container"},
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
	char reason[160], code[40] = "without an exit code";

	put_reason(e, reason, sizeof reason);
	if (e->exit_code >= 0)
		snprintf(code, sizeof code, "with exit code %d", e->exit_code);
	return plan_text(p, "%s/%d ended %s (%s)%s%s", e->task, e->index, code, reason,
			 *e->node ? " on node " : "", e->node);
}
