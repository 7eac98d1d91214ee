/* SPDX-License-Identifier: Apache-2.0 */
/* Plays a cluster in which every pod that is created becomes ready at once, and prints what
 * job_plan asks for until it asks for nothing more. */
#include "operator/control/dry_run.h"

#include "operator/control/control.h"

enum { FILE_LIMIT = 4 << 20, ROUNDS_MAX = 16 };
static const double clock_of_the_play = 1e9;

static const char *const action_names[] = {
    [ACTION_CREATE_SERVICE] = "create service", [ACTION_CREATE_POLICY] = "create policy",
    [ACTION_PUT_GROUP] = "create podgroup",     [ACTION_CREATE_POD] = "create pod",
    [ACTION_DELETE_POD] = "delete pod",         [ACTION_FORGET_POD] = "forget pod",
    [ACTION_FINISH_POD] = "finish pod",         [ACTION_DELETE_SERVICE] = "delete service",
    [ACTION_DELETE_JOB] = "delete job",
};

struct play {
	struct mu_arena arena;
	struct observed_pod pods[JOB_MAX_TASKS * JOB_MAX_REPLICAS];
	struct observed_job seen;
};

static void print_object(struct mu_buf *out, cJSON *object)
{
	char *text = cJSON_Print(object);

	mu_buf_printf(out, "---\n%s\n", text);
	free(text);
	cJSON_Delete(object);
}

static void act(struct play *p, const struct job_spec *spec, const struct plan_action *a,
		struct mu_buf *out, bool objects)
{
	struct observed_pod *pod;

	if (!objects)
		mu_buf_printf(out, "%-15s %s%s%s\n", action_names[a->kind],
			      a->name ? a->name : spec->name, a->message ? "  # " : "",
			      a->message ? a->message : "");
	if (a->kind == ACTION_CREATE_SERVICE) {
		p->seen.service = true;
		if (objects)
			print_object(out,
				     render_service(spec, JOB_DEFAULT_PORT, JOB_DEFAULT_HTTP_PORT));
	}
	if (a->kind == ACTION_CREATE_POLICY) {
		p->seen.policy = true;
		if (objects)
			print_object(out,
				     render_policy(spec, JOB_DEFAULT_PORT, JOB_DEFAULT_HTTP_PORT));
	}
	if (a->kind == ACTION_PUT_GROUP) {
		p->seen.group = a->index;
		if (objects)
			print_object(out, render_group(spec, a->index));
	}
	if (a->kind != ACTION_CREATE_POD || p->seen.n_pods >= MU_COUNT(p->pods))
		return;
	if (objects)
		print_object(out, render_pod(spec, a->pod));
	else
		mu_buf_printf(out, "%-15s image %s, kernels %s (%s)\n", "", a->pod->image,
			      a->pod->kernels.variant, a->pod->kernels.reason);
	pod = &p->pods[p->seen.n_pods++];
	pod->task = mu_arena_strdup(&p->arena, a->pod->task);
	pod->uid = mu_arena_printf(&p->arena, "uid-%u", p->seen.n_pods);
	pod->index = a->pod->index;
	pod->phase = POD_RUNNING;
	pod->ready = true;
	pod->exit_code = -1;
	pod->created = clock_of_the_play;
}

int dry_run(struct mu_buf *out, const char *file, const char *image, bool objects,
	    struct mu_err *err)
{
	MU_AUTO(job_spec_free) struct job_spec *spec = NULL;
	MU_AUTO_BUF text = {0};
	struct plan_options options = {.image = image};
	struct play *p;
	int rc = mu_buf_read_file(&text, file, FILE_LIMIT, err);

	if (rc == 0)
		rc = job_spec_parse(&spec, mu_buf_span(&text), file, err);
	if (rc < 0)
		return rc;
	p = MU_NEW(struct play);
	mu_arena_init(&p->arena);
	p->seen.pods = p->pods;
	for (int round = 0; round < ROUNDS_MAX; round++) {
		struct job_plan *plan =
		    job_plan_new(spec, &options, &p->seen, clock_of_the_play + round);
		unsigned n = plan->n_actions;

		if (!objects && n)
			mu_buf_printf(out, "step %d\n", round + 1);
		for (unsigned i = 0; i < n; i++)
			act(p, spec, &plan->actions[i], out, objects);
		job_status_fini(&p->seen.status);
		job_status_copy(&p->seen.status, &plan->status);
		job_plan_free(plan);
		if (!n)
			break;
	}
	job_status_fini(&p->seen.status);
	mu_arena_fini(&p->arena);
	free(p);
	return 0;
}
