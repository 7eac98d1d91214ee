/* SPDX-License-Identifier: Apache-2.0 */
/* muster scale JOB TASK=N: changes the number of workers of a job that runs on this machine.
 *
 * It sends a request to the running `muster run` (run_control.h), which changes the replicas of its
 * manifest. The plan then acts as after `kubectl scale`: new workers join, the highest indices end,
 * ps tasks stay.
 */
#include "cli/scale.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/manifest.h"
#include "cli/run_control.h"

static int check_scale(const struct job_spec *s, const struct task_spec *t, long n,
		       struct mu_err *err)
{
	const struct task_spec *chief = job_spec_chief(s);

	if (n > JOB_MAX_REPLICAS)
		return mu_fail(err, MU_INVALID_ARGUMENT, "at most %d tasks of one kind are allowed",
			       JOB_MAX_REPLICAS);
	if (t->kind == TASK_PS)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "the number of ps tasks is fixed, because they hold the variables: "
			       "stop the job and run it with another number");
	if (t == chief && (n < 1 || t->kind == TASK_CHIEF))
		return mu_fail(
		    err, MU_INVALID_ARGUMENT, "%s 0 is the chief of the job: %s", t->name,
		    t->kind == TASK_CHIEF ? "the number must be 1" : "at least 1 is needed");
	return 0;
}

int scale_apply(struct job_spec *s, const char *text, char *summary, size_t size,
		struct mu_err *err)
{
	const char *equals = strchr(text, '=');
	char name[JOB_MAX_NAME + 1] = "", *end;
	long n = -1;

	if (equals && (size_t)(equals - text) < sizeof(name)) {
		snprintf(name, sizeof(name), "%.*s", (int)(equals - text), text);
		n = equals[1] >= '0' && equals[1] <= '9' ? strtol(equals + 1, &end, 10) : -1;
		if (n >= 0 && *end)
			n = -1;
	}
	if (n < 0)
		return mu_fail(err, MU_INVALID_ARGUMENT, "'%.100s' is not TASK=N, as in worker=4",
			       text);
	for (unsigned i = 0; i < s->n_tasks; i++) {
		struct task_spec *t = &s->tasks[i];

		if (strcmp(t->name, name) != 0)
			continue;
		if (check_scale(s, t, n, err))
			return -(int)MU_INVALID_ARGUMENT;
		snprintf(summary, size, "%s %d -> %ld", name, t->replicas, n);
		t->replicas = (int)n;
		return 0;
	}
	return mu_fail(err, MU_NOT_FOUND, "job '%s' has no task '%s'", s->name, name);
}

int cli_scale(int argc, char **argv)
{
	char request[CONTROL_LINE - 8], summary[CONTROL_LINE];
	MU_AUTO_FREE char *name = NULL;
	MU_AUTO_FREE char *ns = NULL;
	struct mu_err err;

	if (argc != 2)
		return cli_usage("scale", "expected a job and TASK=N");
	if (!strchr(argv[1], '=') || strlen(argv[1]) > JOB_MAX_NAME + 16)
		return cli_usage("scale", "'%.100s' is not TASK=N, as in worker=4", argv[1]);
	snprintf(request, sizeof(request), "scale %s", argv[1]);
	if (manifest_resolve_job(argv[0], &name, &ns, &err) ||
	    run_control_ask(name, request, summary, sizeof(summary), &err))
		return cli_fail(&err);
	printf("%s: %s\n", name, summary);
	return CLI_OK;
}
