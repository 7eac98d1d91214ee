/* SPDX-License-Identifier: Apache-2.0 */
/* The plug-in with a device image, which otherwise only a machine with nvcc builds: this file
 * replaces the kernels. It also tests the parts of cuDNN that need no GPU, with the real library if
 * it is installed. */
#define muster_cuda_plugin plugin_under_test /* the fake plug-in has this name, too */
#define CUDA_IMAGE         "tests/kernels/gpu_plugin_test.c"
#include "task/device/gpu_convolution.c"
#include "task/kernels/engine/cuda/plugin.c"

#include <string.h>

#include "tests/fake/cuda/fake_cuda.h"
#include "tests/test.h"

static void image__in_the_plugin__is_complete_and_aligned(void **state)
{
	static const char head[] = "/* SPDX", tail[] = "the last words */\n";
	size_t length = strlen(kernels_image);

	assert_memory_equal(kernels_image, head, sizeof head - 1);
	assert_int_equal((uintptr_t)kernels_image % 64, 0);
	assert_true(length > sizeof tail);
	assert_string_equal(kernels_image + length + 1 - sizeof tail, tail);
}

static void driver__that_works__starts_with_the_image(void **state)
{
	char why[200] = "";

	fake_cuda_reset();
	assert_int_equal(start(fake_cuda_plugin()->api, why, sizeof why), 0);
	assert_string_equal(why, "");
}

static void driver__that_does_not_work__fails_with_a_readable_reason(void **state)
{
	char why[200] = "";

	fake_cuda_reset();
	fake_cuda.init_result = 999;
	assert_int_equal(start(fake_cuda_plugin()->api, why, sizeof why), -1);
	assert_non_null(strstr(why, "is the nvidia kernel module loaded?"));
	fake_cuda_reset();
	fake_cuda.driver = 11080;
	assert_int_equal(start(fake_cuda_plugin()->api, why, sizeof why), -1);
	assert_non_null(strstr(why, "the driver is of CUDA 11.8"));
	fake_cuda_reset();
	fake_cuda.devices = 0;
	assert_int_equal(start(fake_cuda_plugin()->api, why, sizeof why), -1);
	assert_non_null(strstr(why, "no CUDA-capable device"));
}

/* Checks the output shape of one convolution, as cuDNN computes it from our descriptors. */
static void check_descriptors(const struct dnn_api *api, enum mu_dtype type, int64_t groups)
{
	static int (*output_of)(const void *conv, const void *x, const void *w, int *n, int *c,
				int *h, int *q);
	struct conv plan = {
	    .api = api,
	    .params = {
		.type = type,
		.batch = 5,
		.channels = 4,
		.filters = 6,
		.groups = groups,
		.row = {.in = 28, .size = 5, .stride = 2, .dilation = 1, .out = 14, .pad = 2},
		.column = {.in = 17, .size = 3, .stride = 1, .dilation = 3, .out = 11}}};
	int n, c, h, w;

	*(void **)&output_of = dlsym(dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL),
				     "cudnnGetConvolution2dForwardOutputDim");
	assert_non_null(output_of);
	assert_int_equal(describe(&plan, type_numbers[type]), 0);
	assert_int_equal(output_of(plan.conv, plan.input, plan.filter, &n, &c, &h, &w), 0);
	assert_int_equal(n, 5);
	assert_int_equal(c, 6);
	assert_int_equal(h, 14);
	assert_int_equal(w, 11);
	free_descriptors(&plan);
	plan = (struct conv){.api = api, .params = plan.params};
	plan.params.row.size = -1;
	assert_int_equal(describe(&plan, type_numbers[type]), DNN_BAD_PARAM);
	free_descriptors(&plan);
}

static void convolution_descriptors__of_the_real_library__agree_with_ours(void **state)
{
	static const enum mu_dtype types[] = {MU_FLOAT, MU_DOUBLE, MU_HALF, MU_BFLOAT16};
	const struct dnn_api *api = find_dnn();

	if (!api) {
		print_message("SKIPPED: cuDNN 9 is not installed here (libcudnn.so.9)\n");
		skip();
	}
	for (unsigned i = 0; i < sizeof types / sizeof *types; i++) {
		check_descriptors(api, types[i], 1);
		check_descriptors(api, types[i], 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(image__in_the_plugin__is_complete_and_aligned),
	    cmocka_unit_test(driver__that_works__starts_with_the_image),
	    cmocka_unit_test(driver__that_does_not_work__fails_with_a_readable_reason),
	    cmocka_unit_test(convolution_descriptors__of_the_real_library__agree_with_ours),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
/* the last words */
