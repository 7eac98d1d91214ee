/* SPDX-License-Identifier: Apache-2.0 */
/* Suspends a job (spec.run.suspend): deletes its pods and keeps its status. */
#include "operator/plan/planner.h"

/* Workers are deleted first: a trainer saves its variables when it is terminated, and the servers
 * hold them. */
void plan_suspend(struct planner *p)
{
	bool workers_run = false, servers_run = false;

	for (unsigned i = 0; i < p->observed->n_pods; i++) {
		const struct observed_pod *pod = &p->observed->pods[i];
		const struct task_spec *t = job_spec_task(p->spec, pod->task);
		bool has_ended = plan_pod_has_ended(pod);
		bool is_server = t && t->kind == TASK_PS;

		workers_run = workers_run || (!is_server && !has_ended);
		servers_run = servers_run || (is_server && !has_ended);
		if (!is_server && (pod->phase != POD_SUCCEEDED || pod->sidecar_runs))
			plan_delete_pod(p, pod, "Suspended", "the job is suspended");
	}
	for (unsigned i = 0; i < p->observed->n_pods && !workers_run; i++)
		if (p->observed->pods[i].phase != POD_SUCCEEDED)
			plan_delete_pod(p, &p->observed->pods[i], "Suspended",
					"the job is suspended");
	if (servers_run) /* the servers may wait for a worker, and the job may be resumed */
		plan_record_departures(p);
	else
		plan_forget_departures(p);
	p->status->phase = JOB_SUSPENDED;
	p->status->start_time = 0;
	if (workers_run)
		status_set(p, COND_SUSPENDED, false, "Saving",
			   "workers save and end, the parameter servers follow");
	else if (servers_run)
		status_set(p, COND_SUSPENDED, false, "Ending", "the parameter servers end");
	else
		status_set(p, COND_SUSPENDED, true, "Suspended", "spec.run.suspend is true");
	/* a user waits for the end of the suspension */
	if (!workers_run && !servers_run && !p->observed->status.conditions[COND_SUSPENDED].status)
		p->plan->urgent = true;
	status_set(p, COND_RUNNING, false, "Suspended", "the job is suspended");
	status_set(p, COND_READY, false, "Suspended", "the job is suspended");
	if (p->status->conditions[COND_RESTARTING].set)
		status_set(p, COND_RESTARTING, false, "Suspended", "the job is suspended");
	p->status->conditions[COND_REJECTED] = (struct condition){0};
}
