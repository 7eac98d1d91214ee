/* SPDX-License-Identifier: Apache-2.0 */
/* The plug-in with an image in it, which only a machine with nvcc builds otherwise: this file
 * stands for the kernels. */
#define muster_cuda_plugin plugin_under_test /* the stand-in has this name, too */
#define CUDA_IMAGE         "tests/kernels/gpu_plugin_test.c"
#include "task/kernels/cuda/plugin.c"

#include <string.h>

#include "tests/fake/cuda/fake_cuda.h"
#include "tests/test.h"

static void the_image__is_in_the_plugin__whole_and_aligned(void **state)
{
	static const char head[] = "/* SPDX", tail[] = "the last words */\n";
	size_t length = strlen(kernels_image);

	assert_memory_equal(kernels_image, head, sizeof head - 1);
	assert_int_equal((uintptr_t)kernels_image % 64, 0);
	assert_true(length > sizeof tail);
	assert_string_equal(kernels_image + length + 1 - sizeof tail, tail);
}

static void a_driver_that_works__with_an_image__starts(void **state)
{
	char why[200] = "";

	fake_cuda_reset();
	assert_int_equal(start(fake_cuda_plugin()->api, why, sizeof why), 0);
	assert_string_equal(why, "");
}

static void a_driver_that_does_not_work__is_told_in_words(void **state)
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

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_image__is_in_the_plugin__whole_and_aligned),
	    cmocka_unit_test(a_driver_that_works__with_an_image__starts),
	    cmocka_unit_test(a_driver_that_does_not_work__is_told_in_words),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
/* the last words */
