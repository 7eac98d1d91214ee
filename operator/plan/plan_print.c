/* SPDX-License-Identifier: Apache-2.0 */
/* Simulates a job: each created pod runs at once.  The simulation stops after ROUNDS_MAX plans, in
 * case a plan never comes to rest. */
#include "operator/plan/plan_print.h"

enum { ROUNDS_MAX = 16 };
static const double simulated_clock = 1e9;

static const char *const action_names[] = {
    [ACTION_MAKE_SECRET] = "create secret",     [ACTION_SPREAD_CA] = "patch secret",
    [ACTION_SWITCH_SECRET] = "patch secret",    [ACTION_CHECK_SECRET] = "check secret",
    [ACTION_CREATE_SERVICE] = "create service", [ACTION_CREATE_POLICY] = "create policy",
    [ACTION_PUT_GROUP] = "create podgroup",     [ACTION_CREATE_POD] = "create pod",
    [ACTION_DELETE_POD] = "delete pod",         [ACTION_FORCE_DELETE_POD] = "forget pod",
    [ACTION_FINISH_POD] = "finish pod",         [ACTION_DELETE_SERVICE] = "delete service",
    [ACTION_DELETE_JOB] = "delete job",
};

struct simulation {
	struct mu_arena arena;
	struct observed_pod pods[JOB_MAX_TASKS * JOB_MAX_REPLICAS];
	struct observed_job seen;
};

static void print(struct mu_buf *out, const struct job_spec *spec, const struct plan_action *a)
{
	mu_buf_printf(out, "%-15s %s%s%s\n", action_names[a->kind], a->name ? a->name : spec->name,
		      a->message ? "  # " : "", a->message ? a->message : "");
	if (a->kind == ACTION_CREATE_POD)
		mu_buf_printf(out, "%-15s image %s, kernels %s (%s)\n", "", a->pod->image,
			      a->pod->kernels.variant, a->pod->kernels.reason);
}

/* Carries out the action in the simulated job. */
static void simulate_action(struct simulation *p, const struct plan_action *a)
{
	struct observed_pod *pod;

	p->seen.service = p->seen.service || a->kind == ACTION_CREATE_SERVICE;
	p->seen.policy = p->seen.policy || a->kind == ACTION_CREATE_POLICY;
	if (a->kind == ACTION_PUT_GROUP)
		p->seen.group = a->index;
	if (a->kind != ACTION_CREATE_POD || p->seen.n_pods >= MU_COUNT(p->pods))
		return;
	pod = &p->pods[p->seen.n_pods++];
	pod->task = mu_arena_strdup(&p->arena, a->pod->task);
	pod->uid = mu_arena_printf(&p->arena, "uid-%u", p->seen.n_pods);
	pod->index = a->pod->index;
	pod->phase = POD_RUNNING;
	pod->ready = true;
	pod->exit_code = -1;
	pod->created = simulated_clock;
}

void plan_print(struct mu_buf *out, const struct job_spec *spec, const struct plan_options *options,
		plan_print_fn *each, void *arg)
{
	struct simulation *p = MU_NEW(struct simulation);

	mu_arena_init(&p->arena);
	p->seen.pods = p->pods;
	for (int round = 0; round < ROUNDS_MAX; round++) {
		struct job_plan *plan =
		    job_plan_new(spec, options, &p->seen, simulated_clock + round);
		unsigned n = plan->n_actions;

		if (!each && n)
			mu_buf_printf(out, "step %d\n", round + 1);
		for (unsigned i = 0; i < n; i++) {
			if (each)
				each(arg, spec, &plan->actions[i]);
			else
				print(out, spec, &plan->actions[i]);
			simulate_action(p, &plan->actions[i]);
			if (plan->actions[i].kind == ACTION_MAKE_SECRET)
				plan->status.security = (struct security_status){
				    .secret = mu_xasprintf("%s-tls", spec->name),
				    .ca = mu_xstrdup("made"),
				    .made = simulated_clock};
		}
		job_status_fini(&p->seen.status);
		job_status_copy(&p->seen.status, &plan->status);
		job_plan_free(plan);
		if (!n)
			break;
	}
	job_status_fini(&p->seen.status);
	mu_arena_fini(&p->arena);
	free(p);
}
