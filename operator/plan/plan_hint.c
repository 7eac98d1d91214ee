/* SPDX-License-Identifier: Apache-2.0 */
/* Explains why a pod does not start, and what to do.  The reasons are those that a kubelet and the
 * scheduler write into a pod's status. */
#include <stdio.h>

#include "operator/api/kinds.h"
#include "operator/plan/planner.h"

/* A kubelet alternates between the reasons of an image, so they share one condition. */
static const struct {
	const char *reason, *hint;
	bool is_image;
} hints[] = {
    {"ErrImagePull", "cannot be pulled; check its name, the registry and imagePullSecrets", true},
    {"ImagePullBackOff", "cannot be pulled; check its name, the registry and imagePullSecrets",
     true},
    {"ErrImageNeverPull", "is not on the node and pullPolicy is Never; import it there", true},
    {"InvalidImageName", "is no image's name; correct it", true},
    {"SchedulingGated", "its queue has not admitted it yet; see its quota and what is before it",
     false},
    {"Unschedulable", "no node has room for it or fits its selector and volumes; see its events",
     false},
    {"CreateContainerConfigError", "a ConfigMap or Secret that it names is missing; see its events",
     false},
    {"CreateContainerError", "its container cannot be made; see its events", false},
    {"RunContainerError", "its program cannot be started; check the command", false},
};

/* Seconds after which a pod without a scheduler's decision is reported. A running scheduler binds a
 * pod, or reports why it cannot, within seconds. */
enum { SCHEDULER_TIMEOUT_S = 30, TERMINATION_TIMEOUT_S = 60 /* after its grace period */ };

/* The name of the scheduler that has to place the pods of t. */
static const char *scheduler_of(const struct planner *p, const struct task_spec *t)
{
	return mu_doc_text(t->template, "spec.schedulerName", gangs[p->spec->gang].scheduler);
}

/* Time from the creation of a ps pod to the first answer of its server.  The image is on the node
 * by then.  A user's program may load Python and TensorFlow first. */
enum { SERVER_TIMEOUT_S = 20, COMMAND_TIMEOUT_S = 90 };

/* Nothing trains without the chief. An edit or kubectl scale creates it. */
static bool report_no_workers(struct planner *p)
{
	const struct task_spec *chief = job_spec_chief(p->spec);

	if (!chief || chief->replicas > 0)
		return false;
	status_set(p, COND_READY, false, "NoWorkers",
		   "tasks.%s.replicas is 0, so nothing trains; scale it to 1 or more", chief->name);
	return true;
}

static void report_pending_pod(struct planner *p, const struct task_spec *t,
			       const struct observed_pod *pod)
{
	const char *image = pod->detail ? pod->detail : plan_image(p, t, pod->gpu);
	unsigned i = 0;

	/* the group has the scheduler's message; its pods only report that they have no node */
	if (!pod->node && plan_gang_waits(p)) {
		status_set(p, COND_READY, false, "GangWaiting",
			   "the PodGroup of %d tasks is %.31s: %.180s", p->observed->group,
			   p->observed->group_phase,
			   p->observed->group_message ? p->observed->group_message
						      : "not all of them have a place yet");
		return;
	}
	if (strcmp(pod->reason, POD_CLAIM_MISSING) == 0) {
		const char *claim = pod->detail ? pod->detail : p->spec->volume_claim;

		status_set(p, COND_READY, false, pod->reason,
			   "%s/%d: volume claim %.120s does not exist; create it, or correct "
			   "checkpoint.volumeClaim",
			   pod->task, pod->index, claim ? claim : "of its template");
		return;
	}
	while (i < MU_COUNT(hints) && strcmp(pod->reason, hints[i].reason) != 0)
		i++;
	if (i == MU_COUNT(hints))
		status_set(p, COND_READY, false, pod->reason,
			   "%s/%d does not start: %.64s; see its events", pod->task, pod->index,
			   pod->reason);
	else if (hints[i].is_image)
		status_set(p, COND_READY, false, "ImageUnavailable", "%s/%d: image %.120s %s",
			   pod->task, pod->index, image ? image : "of the task", hints[i].hint);
	else
		status_set(p, COND_READY, false, pod->reason, "%s/%d: %s", pod->task, pod->index,
			   hints[i].hint);
}

/* Reports a pod whose status has neither a node nor a condition PodScheduled. */
static bool report_unscheduled(struct planner *p, const struct task_index *x)
{
	if (x->pod->node || p->options->address ||
	    !plan_is_due(p, x->pod->created + SCHEDULER_TIMEOUT_S))
		return false;
	status_set(p, COND_READY, false, "SchedulerMissing",
		   "%s/%d: no scheduler has considered its pod for %d s; install or "
		   "start the scheduler %s%s",
		   x->task->name, x->index, SCHEDULER_TIMEOUT_S, scheduler_of(p, x->task),
		   p->spec->gang ? ", or use run.gang: none in a new job" : "");
	return true;
}

/* Reports a running ps that does not answer: all workers wait for it. */
static bool report_unready_ps(struct planner *p, const struct task_index *x)
{
	double timeout = p->spec->program == PROGRAM_COMMAND ? COMMAND_TIMEOUT_S : SERVER_TIMEOUT_S;

	if (x->task->kind != TASK_PS || x->pod->ready ||
	    (!x->pod->was_ready && !plan_is_due(p, x->pod->created + timeout)))
		return false;
	if (p->options->log_folder)
		status_set(p, COND_READY, false, "ServerSilent",
			   "%s/%d does not answer at its port; see %s/%s-%d.log", x->task->name,
			   x->index, p->options->log_folder, x->task->name, x->index);
	else
		status_set(p, COND_READY, false, "ServerSilent",
			   "%s/%d on node %.64s does not answer at its port; see its log, "
			   "or delete its pod: the job goes on from its last checkpoint",
			   x->task->name, x->index, x->pod->node ? x->pod->node : "?");
	return true;
}

/* Reports a pod whose end no kubelet confirms, or that has a finalizer: its successor waits. */
static bool report_terminating(struct planner *p, const struct task_index *x)
{
	double due = x->pod->deletion_due;

	if (due <= 0 || !plan_is_due(p, due + TERMINATION_TIMEOUT_S))
		return false;
	status_set(p, COND_READY, false, "PodTerminating",
		   "%s/%d: its pod on node %.64s does not end; see its finalizers and the "
		   "kubelet, or delete it with --force",
		   x->task->name, x->index, x->pod->node ? x->pod->node : "?");
	return true;
}

static bool report_pod(struct planner *p, const struct task_index *x)
{
	if (!x->pod)
		return false;
	if (x->pod->deleting)
		return report_terminating(p, x);
	if (x->pod->phase == POD_RUNNING)
		return report_unready_ps(p, x);
	if (x->pod->phase != POD_PENDING)
		return false;
	if (!x->pod->reason)
		return report_unscheduled(p, x);
	report_pending_pod(p, x->task, x->pod);
	return true;
}

bool plan_report_stuck_pod(struct planner *p)
{
	plan_each_wanted (p, x)
		if (plan_task_counts(x->task) && report_pod(p, x))
			return true;
	return report_no_workers(p);
}
