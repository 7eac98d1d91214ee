/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the kernels of an index, and lets it fall back from a GPU to the CPU.
 *
 * `auto` and `prefer-gpu` fall back: without an image with GPU kernels no GPU is chosen.  An index
 * whose GPU is not usable uses the CPU until the job ends (index_status.no_gpu).  Its pod does not
 * count as a failure.  `gpu` and named variants never fall back. */
#include "operator/plan/planner.h"

/* The time limit for a pod to get its GPU. */
enum { GPU_WAIT_S = 120 };

#define NO_GPU_IMAGE "NoGpuImage"

static bool lacks_gpu_image(const struct planner *p, const struct task_spec *t)
{
	return !p->options->image_gpu && !t->image;
}

bool plan_choose_kernels(struct planner *p, const struct task_index *x, bool is_departure,
			 struct kernel_choice *out)
{
	const struct task_spec *t = x->task;
	struct kernel_request request = {.kernels = is_departure ? "cpu" : t->kernels,
					 .is_ps = t->kind == TASK_PS,
					 .no_gpu_image = lacks_gpu_image(p, t),
					 .no_gpu = x->record->no_gpu};
	struct kernel_choice *chosen =
	    &p->kernels[t - p->spec->tasks][is_departure][x->record->no_gpu];
	struct mu_err err;

	if (chosen->variant[0] ||
	    !resolver_choose(chosen, &request, p->observed->nodes, p->observed->n_nodes, &err)) {
		*out = *chosen;
		return true;
	}
	status_set(p, COND_READY, false, "KernelsUnavailable", "%s: %.200s", t->name, err.msg);
	p->kernels_missing = true;
	return false;
}

void plan_report_gpu_image(struct planner *p)
{
	struct condition *c = &p->status->conditions[COND_KERNELS];
	bool lacks = false;

	for (unsigned i = 0; i < p->spec->n_tasks; i++) {
		const struct task_spec *t = &p->spec->tasks[i];

		if (!lacks_gpu_image(p, t))
			continue;
		lacks = true;
		if (resolver_gpu_offered(t->kernels, t->kind == TASK_PS, p->observed->nodes,
					 p->observed->n_nodes))
			status_set(p, COND_KERNELS, true, NO_GPU_IMAGE,
				   "%s: kernels: %s uses the CPU, though nodes have GPUs: the "
				   "operator has no image with GPU kernels; set taskImageGpu of "
				   "the chart (--image-gpu)",
				   t->name, t->kernels);
	}
	if (!lacks && strcmp(c->reason, NO_GPU_IMAGE) == 0)
		*c = (struct condition){0};
}

/* A task that cannot use the GPU ends with MU_EXIT_KERNELS.  The reasons come from a kubelet whose
 * device plug-in or container runtime cannot provide the GPU. */
static bool failed_on_gpu(const struct observed_pod *pod)
{
	static const char *const reasons[] = {"StartError", "ContainerCannotRun",
					      "UnexpectedAdmissionError", NULL};

	return !pod->ended_by_deletion && (pod->phase == POD_FAILED) &&
	       (pod->exit_code == MU_EXIT_KERNELS || mu_word_index(pod->reason, reasons) >= 0);
}

/* True for a pod whose container cannot be created, and for a pod that has no node and waits in no
 * queue.  An init container, whose image is the detail, needs no GPU. */
static bool waits_for_gpu(const struct observed_pod *pod)
{
	static const char *const not_started[] = {"ErrImagePull",
						  "ImagePullBackOff",
						  "ErrImageNeverPull",
						  "InvalidImageName",
						  "CreateContainerError",
						  "RunContainerError",
						  NULL};

	if (pod->phase != POD_PENDING || pod->deleting)
		return false;
	return pod->node ? !pod->detail && mu_word_index(pod->reason, not_started) >= 0
			 : !pod->reason || strcmp(pod->reason, "SchedulingGated") != 0;
}

const char *plan_gpu_fallback(struct planner *p, const struct task_index *x)
{
	const struct observed_pod *pod = x->pod;
	bool failed = failed_on_gpu(pod);
	const char *why, *text;

	if (!pod->gpu || !resolver_may_fall_back(x->task->kernels) ||
	    !(failed || (waits_for_gpu(pod) && !plan_gang_waits(p))))
		return NULL;
	/* An index that has fallen back may still have such a pod: its deletion did not arrive. */
	if (!failed && !x->record->no_gpu && !plan_is_due(p, pod->created + GPU_WAIT_S))
		return NULL;
	why = pod->message ? pod->message : pod->reason ? pod->reason : "no reason given";
	text = pod->node ? plan_text(p, "%s/%d uses the CPU, node %.64s: %.140s", pod->task,
				     pod->index, pod->node, why)
			 : plan_text(p, "%s/%d uses the CPU: it got no GPU in %d s (%.64s)",
				     pod->task, pod->index, GPU_WAIT_S, why);
	if (x->record->no_gpu)
		return text;
	x->record->no_gpu = true;
	status_set(p, COND_KERNELS, true, failed ? "GpuNotUsable" : "NoGpuInTime", "%s", text);
	return text;
}

void plan_report_kernels(struct planner *p, const struct task_index *x)
{
	/* a user's program may use this code for anything */
	bool ours = x->task->kind == TASK_PS || p->spec->program != PROGRAM_COMMAND;
	const struct observed_pod *pod = x->pod;

	if (ours && pod->exit_code == MU_EXIT_KERNELS)
		status_set(p, COND_KERNELS, true, "KernelsNotSupported",
			   "%s/%d: node %.64s does not have the kernels %s (%.110s); correct its "
			   "labels or the image, or use kernels: cpu",
			   pod->task, pod->index, pod->node ? pod->node : "?",
			   x->status->kernels[0] ? x->status->kernels : x->task->kernels,
			   pod->message ? pod->message : "exit code 3");
}
