/* SPDX-License-Identifier: Apache-2.0 */
/* A fixture around job_plan. It executes the actions of a plan at once. Tests change the pods
 * directly. The status passes through its JSON form between two reconciles, as in a cluster. */
#ifndef MU_TESTS_OPERATOR_PLAN_FIXTURE_H
#define MU_TESTS_OPERATOR_PLAN_FIXTURE_H

#include "tests/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/io/json.h"
#include "operator/plan/job_plan.h"
#include "tests/operator/status_text.h"

#define HEAD "apiVersion: muster.dev/v1\nkind: DistributedTrainingJob\nmetadata: {name: j}\nspec:\n"

enum { MAX_PODS = 64 };
struct plan_fixture {
	struct job_spec *spec;
	struct observed_pod pods[MAX_PODS];
	char uids[MAX_PODS][32], tasks[MAX_PODS][40];
	unsigned n_pods, n_created;
	bool service, changed;
	bool creates_fail; /* every create of a pod fails */
	bool no_gpu_image, no_poll;
	const char *rejected, *group_phase, *group_message;
	struct job_status status;
	double now, requeue_at, last_progress;
	int64_t step;   /* the step that the chief reports */
	char log[4096]; /* actions of the last plan: "+worker/0 -ps/1 !ps/0 " */
	struct job_plan *plan;
	struct node_info node;
};

static struct mu_err err;

static void plan_fixture_start(struct plan_fixture *w, const char *manifest)
{
	*w = (struct plan_fixture){.now = 1700000000};
	assert_ok(job_spec_parse(&w->spec, mu_span_of(manifest), "j.yaml", &err), &err);
}

/* Replaces the manifest of the job, as `kubectl apply` and `kubectl scale` do. */
static inline void plan_fixture_edit(struct plan_fixture *w, const char *manifest)
{
	job_plan_free(mu_steal(&w->plan)); /* it borrows the spec */
	job_spec_free(w->spec);
	assert_ok(job_spec_parse(&w->spec, mu_span_of(manifest), "j.yaml", &err), &err);
}

static void plan_fixture_end(struct plan_fixture *w)
{
	job_plan_free(w->plan);
	job_spec_free(w->spec);
	job_status_fini(&w->status);
}

static struct observed_pod *pod(struct plan_fixture *w, const char *task, int index)
{
	for (unsigned i = 0; i < w->n_pods; i++)
		if (strcmp(w->pods[i].task, task) == 0 && w->pods[i].index == index)
			return &w->pods[i];
	return NULL;
}

static void remove_uid(struct plan_fixture *w, const char *uid)
{
	for (unsigned i = 0; i < w->n_pods; i++)
		if (strcmp(w->pods[i].uid, uid) == 0) {
			w->pods[i] = w->pods[--w->n_pods];
			return;
		}
	fail_msg("no pod with uid %s", uid);
}

static void log_action(struct plan_fixture *w, char sign, const struct plan_action *a)
{
	size_t n = strlen(w->log);

	snprintf(w->log + n, sizeof w->log - n, "%c%s/%d ", sign, a->task, a->index);
}

static void act(struct plan_fixture *w, const struct plan_action *a)
{
	struct observed_pod *p;

	switch (a->kind) {
	case ACTION_CREATE_SERVICE:
		w->service = true;
		break;
	case ACTION_CREATE_POD:
		log_action(w, '+', a);
		assert_null(pod(w, a->task, a->index));
		if (w->creates_fail)
			break;
		p = &w->pods[w->n_pods];
		snprintf(w->uids[w->n_created % MAX_PODS], 32, "uid-%u", w->n_created);
		snprintf(w->tasks[w->n_created % MAX_PODS], 40, "%s", a->task);
		*p = (struct observed_pod){.task = w->tasks[w->n_created % MAX_PODS],
					   .index = a->index,
					   .uid = w->uids[w->n_created++ % MAX_PODS],
					   .exit_code = -1,
					   .gpu = a->pod->kernels.gpu,
					   .is_departure_pod = a->pod->is_departure_pod,
					   .epoch = a->pod->epoch,
					   .created = w->now};
		w->n_pods++;
		break;
	case ACTION_MAKE_SECRET:
		w->plan->status.security =
		    (struct security_status){.secret = mu_xstrdup("j-tls"), .issued_at = w->now};
		break;
	case ACTION_ADD_CA:
	case ACTION_ROTATE_CERTIFICATE:
	case ACTION_CHECK_SECRET:
		fail_msg("no rotation is due");
		break;
	case ACTION_CREATE_POLICY:
	case ACTION_PUT_GROUP:
		break;
	case ACTION_FORCE_DELETE_POD:
		log_action(w, '~', a);
		remove_uid(w, a->uid);
		break;
	case ACTION_DELETE_POD:
		log_action(w, '-', a);
		remove_uid(w, a->uid);
		break;
	case ACTION_FINISH_POD:
		log_action(w, '!', a);
		p = pod(w, a->task, a->index);
		p->phase = POD_SUCCEEDED;
		p->ready = false;
		p->exit_code = 0;
		break;
	case ACTION_DELETE_SERVICE:
		w->service = false;
		break;
	case ACTION_DELETE_JOB:
		strcat(w->log, "gone ");
		break;
	}
}

static const char *run_plan(struct plan_fixture *w)
{
	const struct plan_options options = {.image = "task:1",
					     .image_gpu = w->no_gpu_image ? NULL : "cuda:1",
					     .image_tensorboard = "tf:1"};
	struct observed_job observed = {
	    .pods = w->pods,
	    .n_pods = w->n_pods,
	    .service = w->service,
	    .group = w->group_phase ? (int)w->n_pods : 0,
	    .group_phase = w->group_phase,
	    .group_message = w->group_message,
	    .status = w->status,
	    .progress = {.set = w->step > 0, .step = w->step, .loss = NAN},
	    .last_progress = w->last_progress,
	    .polled_at = w->no_poll ? 0 : w->now,
	    .nodes = &w->node,
	    .n_nodes = w->node.name != NULL};
	MU_AUTO_BUF text = {0};
	cJSON *patch;

	job_plan_free(w->plan);
	w->log[0] = '\0';
	w->plan = job_plan_new(w->spec, &options, &observed, w->now);
	w->requeue_at = w->plan->requeue_at;
	for (unsigned i = 0; i < w->plan->n_actions; i++)
		act(w, &w->plan->actions[i]);
	for (unsigned i = 0; w->rejected && i < w->plan->n_actions; i++)
		if (action_creates(w->plan->actions[i].kind)) {
			const struct plan_action *a = &w->plan->actions[i];

			job_plan_rejected(w->plan, a, w->rejected, 0, w->now);
			break;
		}
	patch = job_status_patch(&w->status, &w->plan->status);
	w->changed = patch != NULL;
	cJSON_Delete(patch);
	status_print(&w->plan->status, &text);
	job_status_fini(&w->status);
	status_parse(&w->status, text.data);
	return w->log;
}

static inline void run_all(struct plan_fixture *w)
{
	for (unsigned i = 0; i < w->n_pods; i++)
		if (w->pods[i].phase == POD_PENDING) {
			w->pods[i].phase = POD_RUNNING;
			w->pods[i].ready = true;
		}
}

static inline void fail_pod(struct plan_fixture *w, const char *task, int index, int code)
{
	struct observed_pod *p = pod(w, task, index);

	p->phase = code ? POD_FAILED : POD_SUCCEEDED;
	p->ready = false;
	p->exit_code = code;
}

static inline void start_running(struct plan_fixture *w, const char *manifest)
{
	plan_fixture_start(w, manifest);
	run_plan(w);
	run_all(w);
	run_plan(w);
	run_all(w);
	run_plan(w);
	assert_int_equal(w->status.phase, JOB_RUNNING);
}

#define TWO HEAD "  tasks: {ps: {replicas: 1}, worker: {replicas: 2}}\n"

#endif
