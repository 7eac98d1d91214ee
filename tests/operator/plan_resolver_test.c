/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"

#include <string.h>

#include "operator/api/job_spec.h"
#include "operator/plan/resolver.h"

#define NFD "feature.node.kubernetes.io/"

static struct mu_err err;

#define NODE(labels_, gpus_)                                                                       \
	{                                                                                          \
		.name = "n", .labels = labels_, .n_labels = MU_COUNT(labels_),                     \
		.schedulable = true, .gpus = gpus_                                                 \
	}

static const struct label plain[] = {{"kubernetes.io/arch", "amd64"}};
static const struct label avx2[] = {{"kubernetes.io/arch", "amd64"},
				    {NFD "cpu-cpuid.AVX2", "true"}};
static const struct label avx512[] = {{"kubernetes.io/arch", "amd64"},
				      {NFD "cpu-cpuid.AVX2", "true"},
				      {NFD "cpu-cpuid.AVX512F", "true"}};
static const struct label arm[] = {{"kubernetes.io/arch", "arm64"}};
static const struct label h100[] = {{"nvidia.com/gpu.compute.major", "9"},
				    {"nvidia.com/gpu.compute.minor", "0"},
				    {NFD "cpu-cpuid.AVX2", "true"}};
static const struct label a100[] = {{"nvidia.com/gpu.compute.major", "8"},
				    {"nvidia.com/gpu.compute.minor", "0"}};
static const struct label pci_short[] = {{NFD "pci-10de.present", "true"}};
static const struct label pci_long[] = {{NFD "pci-0302_10de.present", "true"}};

#define ASK(...) (&(struct kernel_request){__VA_ARGS__})

static void cpu__on_mixed_nodes__is_the_variant_that_all_support(void **state)
{
	const struct node_info nodes[] = {NODE(avx2, 0), NODE(avx512, 0)};
	struct kernel_choice c;

	assert_ok(resolver_choose(&c, ASK(.kernels = "cpu", .is_ps = true), nodes, 2, &err), &err);
	assert_string_equal(c.variant, "cpu-avx2");
	assert_int_equal(c.n_selector, 0);
	assert_false(c.gpu || c.required);
	assert_ok(resolver_choose(&c, ASK(.kernels = "cpu", .is_ps = true), nodes + 1, 1, &err),
		  &err);
	assert_string_equal(c.variant, "cpu-avx512");
}

static void cpu__on_nodes_without_labels__is_generic(void **state)
{
	const struct node_info amd = NODE(plain, 0), arm64 = NODE(arm, 0);
	struct kernel_choice c;

	assert_ok(resolver_choose(&c, ASK(.kernels = "auto"), &amd, 1, &err), &err);
	assert_string_equal(c.variant, "cpu-generic");
	assert_ok(resolver_choose(&c, ASK(.kernels = "auto"), &arm64, 1, &err), &err);
	assert_string_equal(c.variant, "arm64");
	assert_ok(resolver_choose(&c, ASK(.kernels = "cpu"), NULL, 0, &err), &err);
	assert_string_equal(c.variant, "cpu-generic");
}

static void cpu_variant__requested_by_name__selects_its_nodes(void **state)
{
	const struct node_info nodes[] = {NODE(avx2, 0), NODE(avx512, 0)};
	struct kernel_choice c;

	assert_ok(resolver_choose(&c, ASK(.kernels = "cpu-avx512"), nodes, 2, &err), &err);
	assert_string_equal(c.selector[0].key, NFD "cpu-cpuid.AVX512F");
	assert_true(c.required);
	assert_fails(resolver_choose(&c, ASK(.kernels = "cpu-avx512"), nodes, 1, &err), &err,
		     MU_FAILED_PRECONDITION, "no node has cpu-avx512");
}

static void gpu__by_feature_discovery__names_the_generation(void **state)
{
	const struct node_info nodes[] = {NODE(plain, 0), NODE(a100, 1), NODE(h100, 8)};
	struct kernel_choice c;

	assert_ok(resolver_choose(&c, ASK(.kernels = "auto"), nodes, 3, &err), &err);
	assert_true(c.gpu);
	assert_string_equal(c.variant, "cuda-sm90");
	assert_string_equal(c.selector[0].value, "9");
	assert_ok(resolver_choose(&c, ASK(.kernels = "cuda-sm80"), nodes, 3, &err), &err);
	assert_string_equal(c.selector[0].value, "8");
	assert_fails(resolver_choose(&c, ASK(.kernels = "cuda-sm75"), nodes, 3, &err), &err,
		     MU_FAILED_PRECONDITION, "compute capability 7.5");
	assert_ok(resolver_choose(&c, ASK(.kernels = "auto", .is_ps = true), nodes, 3, &err), &err);
	assert_false(c.gpu);
}

static void gpu__by_either_spelling_of_its_pci_label__is_found(void **state)
{
	const struct node_info s = NODE(pci_short, 0), l = NODE(pci_long, 0);
	struct kernel_choice c;

	assert_ok(resolver_choose(&c, ASK(.kernels = "gpu"), &s, 1, &err), &err);
	assert_string_equal(c.variant, "cuda");
	assert_string_equal(c.selector[0].key, NFD "pci-10de.present");
	assert_ok(resolver_choose(&c, ASK(.kernels = "gpu"), &l, 1, &err), &err);
	assert_string_equal(c.selector[0].key, NFD "pci-0302_10de.present");
}

static void gpu__on_no_node__is_an_error_with_the_next_step(void **state)
{
	const struct node_info n = NODE(plain, 0);
	struct kernel_choice c;

	assert_fails(resolver_choose(&c, ASK(.kernels = "gpu"), &n, 1, &err), &err,
		     MU_FAILED_PRECONDITION, "use kernels: prefer-gpu or cpu");
	assert_ok(resolver_choose(&c, ASK(.kernels = "gpu"), NULL, 0, &err), &err);
	assert_string_equal(c.variant, "cuda");
}

static void gpu__without_allocatable_gpus__is_not_chosen_by_auto(void **state)
{
	static const char *const fall_back[] = {"auto", "prefer-gpu"};
	const struct node_info labelled = NODE(pci_short, 0), usable = NODE(pci_short, 1);
	struct kernel_choice c;

	for (unsigned i = 0; i < MU_COUNT(fall_back); i++) {
		struct kernel_request ask = {.kernels = fall_back[i]};

		assert_ok(resolver_choose(&c, &ask, &labelled, 1, &err), &err);
		assert_false(c.gpu);
		assert_ok(resolver_choose(&c, &ask, &usable, 1, &err), &err);
		assert_true(c.gpu);
		assert_string_equal(c.variant, "cuda");
	}
}

static void gpu__without_a_gpu_image__is_chosen_only_when_requested(void **state)
{
	static const struct {
		const char *kernels;
		bool gpu, unused;
	} cases[] = {
	    {"auto", false, true}, {"prefer-gpu", false, true}, {"cpu", false, false},
	    {"gpu", true, false},  {"cuda-sm90", true, false},
	};
	const struct node_info gpu = NODE(h100, 1), cpu = NODE(avx2, 0);
	struct kernel_choice c;

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		struct kernel_request ask = {.kernels = cases[i].kernels, .no_gpu_image = true};

		assert_ok(resolver_choose(&c, &ask, &gpu, 1, &err), &err);
		assert_int_equal(c.gpu, cases[i].gpu);
		assert_true(!cases[i].unused ||
			    resolver_gpu_offered(cases[i].kernels, false, &gpu, 1));
		assert_int_equal(strstr(c.reason, "no image with GPU kernels") != NULL,
				 cases[i].unused);
	}
	assert_false(resolver_gpu_offered("auto", false, &cpu, 1));
	assert_false(resolver_gpu_offered("auto", true, &gpu, 1)); /* a ps requests no GPU */
	assert_false(resolver_gpu_offered("cpu", false, &gpu, 1));
}

/* The resolver rejects a variant that the labels of no node confirm. */
static void variant__that_no_node_has__is_an_error_that_names_the_label(void **state)
{
	static const struct label no_minor[] = {{"nvidia.com/gpu.compute.major", "9"}};
	static const struct label unknown_minor[] = {{"nvidia.com/gpu.compute.major", "9"},
						     {"nvidia.com/gpu.compute.minor", "unknown"}};
	static const struct label present[] = {{"nvidia.com/gpu.present", "true"}};
	static const struct {
		const char *kernels, *says;
		struct node_info node;
	} cases[] = {
	    {"cuda-sm90", "9.0 (labels nvidia.com/gpu.compute.major and .minor)",
	     NODE(no_minor, 8)},
	    {"cuda-sm90", "9.0 (labels nvidia.com/gpu.compute.major and .minor)",
	     NODE(unknown_minor, 8)},
	    {"cuda-sm90", "9.0 (labels nvidia.com/gpu.compute.major and .minor)", NODE(present, 8)},
	    {"cuda-sm90", "9.0 (labels nvidia.com/gpu.compute.major and .minor)", NODE(a100, 8)},
	    {"cuda-sm90", "compute capability 9.0", NODE(plain, 0)},
	    {"arm64", "kubernetes.io/arch=arm64", NODE(plain, 0)},
	    {"arm64", "kubernetes.io/arch=arm64",
	     NODE(present, 0)}, /* no label with its architecture */
	    {"cpu-avx2", "kubernetes.io/arch=amd64", NODE(arm, 0)},
	    {"cpu-avx512", "cpu-cpuid.AVX512F", NODE(avx2, 0)},
	};
	struct kernel_choice c;

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		struct kernel_request ask = {.kernels = cases[i].kernels};

		assert_fails(resolver_choose(&c, &ask, &cases[i].node, 1, &err), &err,
			     MU_FAILED_PRECONDITION, cases[i].says);
	}
}

/* The node selector keeps such pods pending until a matching node exists. */
static void variant__without_known_nodes__is_left_to_the_node_selector(void **state)
{
	const struct node_info amd = NODE(plain, 0);
	struct kernel_choice c;

	assert_ok(resolver_choose(&c, ASK(.kernels = "cuda-sm90"), NULL, 0, &err), &err);
	assert_int_equal(c.n_selector, 2);
	assert_string_equal(c.selector[0].key, "nvidia.com/gpu.compute.major");
	assert_string_equal(c.selector[0].value, "9");
	assert_string_equal(c.selector[1].value, "0");
	assert_ok(resolver_choose(&c, ASK(.kernels = "arm64"), NULL, 0, &err), &err);
	assert_string_equal(c.selector[0].value, "arm64");
	/* no node has CPU feature labels: the selector names the architecture, and the task checks
	 */
	assert_ok(resolver_choose(&c, ASK(.kernels = "cpu-avx2"), &amd, 1, &err), &err);
	assert_int_equal(c.n_selector, 1);
	assert_string_equal(c.selector[0].key, "kubernetes.io/arch");
	assert_string_equal(c.selector[0].value, "amd64");
}

static void prefer_gpu__without_a_gpu_or_in_time__falls_back(void **state)
{
	const struct node_info cpu = NODE(avx2, 0), gpu = NODE(h100, 1);
	struct kernel_choice c;

	assert_ok(resolver_choose(&c, ASK(.kernels = "prefer-gpu"), &cpu, 1, &err), &err);
	assert_false(c.gpu);
	assert_ok(resolver_choose(&c, ASK(.kernels = "prefer-gpu"), &gpu, 1, &err), &err);
	assert_true(c.gpu);
	assert_ok(resolver_choose(&c, ASK(.kernels = "prefer-gpu", .no_gpu = true), &gpu, 1, &err),
		  &err);
	assert_false(c.gpu);
	assert_non_null(strstr(c.reason, "has fallen back"));
}

/* The most frequent generation is chosen; among equals, the newest. Unschedulable nodes do not
 * count. */
static void gpu__of_several_generations__is_the_most_frequent_then_the_newest(void **state)
{
	struct node_info closed = NODE(h100, 8);
	const struct {
		struct node_info nodes[3];
		unsigned n;
		const char *variant;
	} cases[] = {
	    {{NODE(a100, 1), NODE(h100, 1)}, 2, "cuda-sm90"},
	    {{NODE(h100, 1), NODE(a100, 1)}, 2, "cuda-sm90"},
	    {{NODE(a100, 2), NODE(h100, 1)}, 2, "cuda-sm80"},
	    {{NODE(a100, 1), NODE(h100, 1), NODE(a100, 1)}, 3, "cuda-sm80"},
	    {{NODE(h100, 3), NODE(a100, 2)}, 2, "cuda-sm90"},
	};
	struct kernel_choice c;

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		assert_ok(
		    resolver_choose(&c, ASK(.kernels = "gpu"), cases[i].nodes, cases[i].n, &err),
		    &err);
		if (strcmp(c.variant, cases[i].variant) != 0)
			fail_msg("case %u: %s, not %s", i, c.variant, cases[i].variant);
	}
	closed.schedulable = false;
	const struct node_info mixed[] = {NODE(a100, 1), closed};
	assert_ok(resolver_choose(&c, ASK(.kernels = "gpu"), mixed, 2, &err), &err);
	assert_string_equal(c.variant, "cuda-sm80");
	assert_fails(resolver_choose(&c, ASK(.kernels = "gpu"), &closed, 1, &err), &err,
		     MU_FAILED_PRECONDITION, "has a GPU");
}

/* A variant requested by name is exact; the task must not choose a better one. */
static void cpu_generic__requested_by_name__stays_generic(void **state)
{
	const struct node_info n = NODE(avx512, 0);
	struct kernel_choice c;

	assert_ok(resolver_choose(&c, ASK(.kernels = "cpu-generic"), &n, 1, &err), &err);
	assert_string_equal(c.variant, "cpu-generic");
	assert_true(c.required);
	assert_int_equal(c.n_selector, 0);
}

static void names__of_no_kernels__are_unknown(void **state)
{
	static const char *const bad[] = {"", "tpu", "cuda-sm", "cuda-sm9x", "cuda-sm7", "cpu-avx"};

	for (size_t i = 0; i < MU_COUNT(bad); i++)
		assert_false(kernels_are_known(bad[i]));
	assert_true(kernels_are_known("cuda-sm120") && kernels_are_known("arm64"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(cpu__on_mixed_nodes__is_the_variant_that_all_support),
	    cmocka_unit_test(cpu__on_nodes_without_labels__is_generic),
	    cmocka_unit_test(cpu_variant__requested_by_name__selects_its_nodes),
	    cmocka_unit_test(gpu__by_feature_discovery__names_the_generation),
	    cmocka_unit_test(gpu__by_either_spelling_of_its_pci_label__is_found),
	    cmocka_unit_test(gpu__on_no_node__is_an_error_with_the_next_step),
	    cmocka_unit_test(gpu__without_allocatable_gpus__is_not_chosen_by_auto),
	    cmocka_unit_test(gpu__without_a_gpu_image__is_chosen_only_when_requested),
	    cmocka_unit_test(variant__that_no_node_has__is_an_error_that_names_the_label),
	    cmocka_unit_test(variant__without_known_nodes__is_left_to_the_node_selector),
	    cmocka_unit_test(prefer_gpu__without_a_gpu_or_in_time__falls_back),
	    cmocka_unit_test(gpu__of_several_generations__is_the_most_frequent_then_the_newest),
	    cmocka_unit_test(cpu_generic__requested_by_name__stays_generic),
	    cmocka_unit_test(names__of_no_kernels__are_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
