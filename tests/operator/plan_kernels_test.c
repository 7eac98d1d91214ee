/* SPDX-License-Identifier: Apache-2.0 */
/* job_plan with plan_fixture.h: the choice of kernels for an index, and the fallback to the CPU. */
#include <time.h>

#include "operator/plan/planner.h"
#include "tests/operator/plan_fixture.h"

#define WORKER(kernels) HEAD "  tasks: {worker: {kernels: " kernels "}}\n"

static const struct label h100_labels[] = {{"kubernetes.io/arch", "amd64"},
					   {"nvidia.com/gpu.compute.major", "9"},
					   {"nvidia.com/gpu.compute.minor", "0"}};
static const struct node_info h100 = {"n7", h100_labels, 3, true, 8, false};
static const struct label amd64_labels[] = {{"kubernetes.io/arch", "amd64"}};

/* A job with one worker, on a cluster with one node. */
static void start_on(struct plan_fixture *w, const char *manifest, const struct node_info *node)
{
	plan_fixture_start(w, manifest);
	w->node = *node;
	run_plan(w);
}

static const struct plan_action *action(const struct plan_fixture *w, enum action_kind kind)
{
	for (unsigned i = 0; i < w->plan->n_actions; i++)
		if (w->plan->actions[i].kind == kind)
			return &w->plan->actions[i];
	fail_msg("no such action; the plan has: %s", w->log);
	return NULL;
}

static void assert_kernels_condition(const struct plan_fixture *w, const char *reason,
				     const char *says)
{
	const struct condition *c = &w->status.conditions[COND_KERNELS];

	assert_true(c->set && c->status);
	assert_string_equal(c->reason, reason);
	if (!strstr(c->message, says))
		fail_msg("'%s' does not say '%s'", c->message, says);
}

/* Reasons why a GPU pod of worker/0 does not work. */
static const struct gpu_trouble {
	enum pod_phase phase;
	int exit_code;
	const char *reason, *message;
	bool placed;
	double wait; /* seconds in this state until the planner gives up */
	const char *condition, *says;
} troubles[] = {
    {POD_FAILED, MU_EXIT_KERNELS, "Error", "no CUDA here: no NVIDIA driver", true, 0,
     "GpuNotUsable", "worker/0 uses the CPU, node n7: no CUDA here: no NVIDIA driver"},
    {POD_FAILED, 128, "StartError", NULL, true, 0, "GpuNotUsable", "StartError"},
    {POD_FAILED, -1, "UnexpectedAdmissionError", NULL, true, 0, "GpuNotUsable", "UnexpectedAdm"},
    {POD_PENDING, -1, "Unschedulable", NULL, false, 120, "NoGpuInTime",
     "worker/0 uses the CPU: it got no GPU in 120 s (Unschedulable)"},
    {POD_PENDING, -1, "ImagePullBackOff", NULL, true, 120, "NoGpuInTime", "ImagePullBackOff"},
    {POD_PENDING, -1, "RunContainerError", NULL, true, 120, "NoGpuInTime", "RunContainerError"},
};

static void set_trouble(struct plan_fixture *w, const struct gpu_trouble *x)
{
	struct observed_pod *p = pod(w, "worker", 0);

	p->phase = x->phase;
	p->exit_code = x->exit_code;
	p->reason = x->reason;
	p->message = x->message;
	p->node = x->placed ? "n7" : NULL;
}

static void gpu_pod__that_does_not_work__falls_back_to_the_cpu(void **state)
{
	static const char *const manifests[] = {WORKER("auto"), WORKER("prefer-gpu"),
						WORKER("auto") "  run: {restartPolicy: Never}\n"};
	struct plan_fixture w;

	for (unsigned m = 0; m < MU_COUNT(manifests); m++)
		for (unsigned i = 0; i < MU_COUNT(troubles); i++) {
			const struct gpu_trouble *x = &troubles[i];

			start_on(&w, manifests[m], &h100);
			assert_string_equal(w.status.tasks[0].kernels, "cuda-sm90");
			set_trouble(&w, x);
			if (x->wait > 0) {
				assert_string_equal(run_plan(&w), "");
				assert_true(w.requeue_at == w.now + x->wait);
				w.now += x->wait;
			}
			assert_string_equal(run_plan(&w), "-worker/0 ");
			assert_kernels_condition(&w, x->condition, x->says);
			assert_string_equal(action(&w, ACTION_DELETE_POD)->reason, "GpuFallback");
			assert_string_equal(action(&w, ACTION_DELETE_POD)->message,
					    w.status.conditions[COND_KERNELS].message);
			assert_string_equal(run_plan(&w), "+worker/0 ");
			assert_string_equal(w.status.tasks[0].kernels, "cpu-generic");
			assert_string_equal(action(&w, ACTION_CREATE_POD)->pod->image, "task:1");
			assert_int_equal(w.status.restarts, 0);
			run_all(&w);
			run_plan(&w);
			assert_int_equal(w.status.phase, JOB_RUNNING);
			assert_kernels_condition(&w, x->condition,
						 x->says); /* while the fallback lasts */
			/* without a GPU, this end is a failure of the program */
			fail_pod(&w, "worker", 0, MU_EXIT_KERNELS);
			run_plan(&w);
			assert_int_equal(w.status.phase, JOB_FAILED);
			plan_fixture_end(&w);
		}
}

/* The delete request of this pod, or of the previous pod, did not reach the API server. */
static void gpu_pod__of_an_index_that_has_fallen_back__is_deleted_again(void **state)
{
	struct observed_pod stays;
	struct plan_fixture w;

	start_on(&w, WORKER("prefer-gpu"), &h100);
	w.now += 120;
	stays = *pod(&w, "worker", 0);
	assert_string_equal(run_plan(&w), "-worker/0 ");
	w.pods[w.n_pods++] = stays;
	assert_string_equal(run_plan(&w), "-worker/0 ");
	assert_string_equal(run_plan(&w), "+worker/0 ");
	w.now += 1000; /* the CPU pod has no time limit */
	assert_string_equal(run_plan(&w), "");
	plan_fixture_end(&w);
}

static void fallback__of_one_index__does_not_affect_the_others(void **state)
{
	struct plan_fixture w;

	start_on(&w, HEAD "  tasks: {worker: {replicas: 2, kernels: auto}}\n", &h100);
	fail_pod(&w, "worker", 1, MU_EXIT_KERNELS);
	assert_string_equal(run_plan(&w), "-worker/1 ");
	assert_string_equal(run_plan(&w), "+worker/1 ");
	assert_true(pod(&w, "worker", 0)->gpu);
	assert_false(pod(&w, "worker", 1)->gpu);
	plan_fixture_end(&w);
}

static void pod__not_yet_admitted_by_its_queue__does_not_fall_back(void **state)
{
	struct plan_fixture w;

	start_on(&w, WORKER("auto"), &h100);
	pod(&w, "worker", 0)->reason = "SchedulingGated";
	w.now += 10000;
	assert_string_equal(run_plan(&w), "");
	plan_fixture_end(&w);
}

static void pod__of_a_waiting_gang__keeps_its_gpu(void **state)
{
	struct plan_fixture w;

	start_on(&w, WORKER("auto") "  run: {gang: volcano}\n", &h100);
	pod(&w, "worker", 0)->reason = "Unschedulable";
	w.group_phase = "Inqueue";
	w.now += 10000;
	assert_string_equal(run_plan(&w), "");
	w.group_phase = "Running";
	assert_string_equal(run_plan(&w), "-worker/0 ");
	plan_fixture_end(&w);
}

/* A departure pod computes nothing: it must not wait for a GPU or fail because of one. */
static void departure_pod__of_a_gpu_worker__uses_the_cpu(void **state)
{
	static const char sync[] =
	    HEAD "  program: {train: {model: mlp, dataset: {path: x.csv, format: csv}}}\n"
		 "  mode: sync\n  security: {mtls: false}\n  tasks: {ps: {}, worker: {replicas: ";
	MU_AUTO_FREE char *two = mu_xasprintf("%s2, kernels: gpu}}\n", sync);
	MU_AUTO_FREE char *one = mu_xasprintf("%s1, kernels: gpu}}\n", sync);
	struct plan_fixture w;

	start_on(&w, two, &h100);
	run_all(&w);
	run_plan(&w);
	run_all(&w);
	run_plan(&w);
	assert_true(pod(&w, "worker", 1)->gpu);
	fail_pod(&w, "worker", 1, 137);
	plan_fixture_edit(&w, one);
	for (int i = 0; i < 5 && !(pod(&w, "worker", 1) && pod(&w, "worker", 1)->is_departure_pod);
	     i++) {
		w.now += 10;
		run_plan(&w);
	}
	assert_true(pod(&w, "worker", 1)->is_departure_pod);
	assert_false(pod(&w, "worker", 1)->gpu);
	assert_string_equal(w.status.tasks[1].kernels, "cuda-sm90");
	plan_fixture_end(&w);
}

static void kernels__requested_by_name__never_fall_back(void **state)
{
	static const char *const manifests[] = {WORKER("gpu"), WORKER("cuda-sm90")};
	struct plan_fixture w;

	for (unsigned m = 0; m < MU_COUNT(manifests); m++) {
		start_on(&w, manifests[m], &h100);
		w.now += 10000;
		assert_string_equal(run_plan(&w), "");
		fail_pod(&w, "worker", 0, MU_EXIT_KERNELS);
		pod(&w, "worker", 0)->node = "n7";
		pod(&w, "worker", 0)->message = "no CUDA here: no NVIDIA driver";
		run_plan(&w);
		assert_kernels_condition(
		    &w, "KernelsNotSupported",
		    "worker/0: node n7 does not have the kernels cuda-sm90 (no "
		    "CUDA here: no NVIDIA driver)");
		assert_int_equal(w.status.phase, JOB_FAILED);
		plan_fixture_end(&w);
	}
	/* a user's program may use this exit code for something else */
	start_running(&w, HEAD "  program: {command: [x]}\n"
			       "  tasks: {ps: {}, worker: {replicas: 2}}\n");
	fail_pod(&w, "worker", 1, MU_EXIT_KERNELS);
	run_plan(&w);
	assert_false(w.status.conditions[COND_KERNELS].set);
	plan_fixture_end(&w);
}

static void gpu_image__that_is_missing__is_named_in_the_message(void **state)
{
	struct plan_fixture w;

	plan_fixture_start(&w, WORKER("gpu"));
	w.node = h100;
	run_plan(&w);
	pod(&w, "worker", 0)->reason = "ImagePullBackOff";
	run_plan(&w);
	assert_non_null(strstr(w.status.conditions[COND_READY].message, "image cuda:1 "));
	plan_fixture_end(&w);
}

static void kernels_auto__without_a_gpu_image__uses_the_cpu_and_reports_it(void **state)
{
	struct plan_fixture w;

	plan_fixture_start(&w, WORKER("auto"));
	w.no_gpu_image = true;
	w.node = h100;
	assert_string_equal(run_plan(&w), "+worker/0 ");
	assert_false(pod(&w, "worker", 0)->gpu);
	assert_string_equal(w.status.tasks[0].kernels, "cpu-generic");
	assert_kernels_condition(&w, "NoGpuImage", "set taskImageGpu");
	assert_non_null(
	    strstr(action(&w, ACTION_CREATE_POD)->message, "no image with GPU kernels"));
	/* the operator stores no status after it creates pods: each reconcile reports it again */
	w.status.conditions[COND_KERNELS] = (struct condition){0};
	run_all(&w);
	run_plan(&w);
	assert_int_equal(w.status.phase, JOB_RUNNING);
	assert_kernels_condition(&w, "NoGpuImage", "worker: kernels: auto uses the CPU");
	/* after the image is configured, the next pod gets a GPU */
	w.no_gpu_image = false;
	fail_pod(&w, "worker", 0, 137);
	run_plan(&w);
	w.now = w.requeue_at;
	assert_string_equal(run_plan(&w), "+worker/0 ");
	assert_true(pod(&w, "worker", 0)->gpu);
	assert_false(w.status.conditions[COND_KERNELS].set);
	plan_fixture_end(&w);
	/* the task's own image may have GPU kernels */
	plan_fixture_start(&w, HEAD "  tasks: {worker: {kernels: auto, image: \"mine:1\"}}\n");
	w.no_gpu_image = true;
	w.node = h100;
	run_plan(&w);
	assert_true(pod(&w, "worker", 0)->gpu);
	plan_fixture_end(&w);
}

static void kernels__that_no_node_has__are_a_condition_until_one_has(void **state)
{
	static const struct label no_capability[] = {{"nvidia.com/gpu.present", "true"}};
	static const struct {
		const char *manifest, *says;
		struct node_info node;
	} cases[] = {
	    {WORKER("gpu"), "none of 1 nodes has a GPU", {"n", amd64_labels, 1, true, 0, false}},
	    {WORKER("cuda-sm90"),
	     "compute capability 9.0",
	     {"n", no_capability, 1, true, 8, false}},
	    {WORKER("arm64"), "arch=arm64", {"n", amd64_labels, 1, true, 0, false}},
	};
	static const struct label arm64_labels[] = {{"kubernetes.io/arch", "arm64"},
						    {"nvidia.com/gpu.compute.major", "9"},
						    {"nvidia.com/gpu.compute.minor", "0"}};
	struct plan_fixture w;

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		start_on(&w, cases[i].manifest, &cases[i].node);
		assert_int_equal(w.n_pods, 0);
		assert_int_equal(w.status.phase, JOB_PENDING);
		assert_string_equal(w.status.conditions[COND_READY].reason, "KernelsUnavailable");
		assert_non_null(strstr(w.status.conditions[COND_READY].message, cases[i].says));
		w.node = (struct node_info){"n", arm64_labels, 3, true, 8, false};
		assert_string_equal(run_plan(&w), "+worker/0 ");
		plan_fixture_end(&w);
	}
}

/* A naive choice takes quadratic time: each index counts the nodes of each GPU generation. */
static void kernels__of_many_indices_on_many_nodes__are_chosen_quickly(void **state)
{
	enum { NODES = 4000 };
	const struct plan_options options = {.image = "task:1", .image_gpu = "cuda:1"};
	struct node_info *nodes = MU_NEW_ARRAY(struct node_info, NODES);
	struct observed_job observed = {.nodes = nodes, .n_nodes = NODES, .service = true};
	struct job_plan *plan;
	struct job_spec *spec;
	clock_t began;

	for (int i = 0; i < NODES; i++)
		nodes[i] = h100;
	assert_ok(job_spec_parse(&spec, mu_span_of(HEAD "  tasks: {worker: {replicas: 500}}\n"),
				 "j.yaml", &err),
		  &err);
	began = clock();
	plan = job_plan_new(spec, &options, &observed, 1700000000);
	assert_true(clock() - began < 5 * CLOCKS_PER_SEC);
	assert_string_equal(plan->actions[plan->n_actions - 1].pod->kernels.variant, "cuda-sm90");
	job_plan_free(plan);
	job_spec_free(spec);
	free(nodes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(gpu_pod__that_does_not_work__falls_back_to_the_cpu),
	    cmocka_unit_test(gpu_pod__of_an_index_that_has_fallen_back__is_deleted_again),
	    cmocka_unit_test(fallback__of_one_index__does_not_affect_the_others),
	    cmocka_unit_test(pod__not_yet_admitted_by_its_queue__does_not_fall_back),
	    cmocka_unit_test(pod__of_a_waiting_gang__keeps_its_gpu),
	    cmocka_unit_test(departure_pod__of_a_gpu_worker__uses_the_cpu),
	    cmocka_unit_test(kernels__requested_by_name__never_fall_back),
	    cmocka_unit_test(gpu_image__that_is_missing__is_named_in_the_message),
	    cmocka_unit_test(kernels_auto__without_a_gpu_image__uses_the_cpu_and_reports_it),
	    cmocka_unit_test(kernels__that_no_node_has__are_a_condition_until_one_has),
	    cmocka_unit_test(kernels__of_many_indices_on_many_nodes__are_chosen_quickly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
