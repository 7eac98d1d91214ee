/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "lib/graph/device_name.h"
#include "tests/test.h"

static struct mu_err err;

static void expect(const char *text, const char *written)
{
	struct mu_device_name d;
	MU_AUTO_BUF b = {0};

	assert_ok(mu_device_parse(&d, text, &err), &err);
	mu_device_write(&b, &d);
	assert_string_equal(b.data ? b.data : "", written);
}

static void names__in_old_and_new_form__are_parsed(void **state)
{
	expect("", "");
	expect("/job:ps/replica:0/task:3/device:CPU:0", "/job:ps/replica:0/task:3/device:CPU:0");
	expect("/job:worker", "/job:worker");
	expect("/job:ps/task:1/cpu:0", "/job:ps/task:1/device:CPU:0");
	expect("/gpu:*", "/device:GPU:*");
	expect("/device:cpu:*", "/device:CPU:*");
	expect("/job:*/task:*", "");
	expect("/task:2/job:w_1", "/job:w_1/task:2");
}

static void device_name__that_is_malformed__is_invalid(void **state)
{
	static const char *const bad[] = {
	    "/jib:ps",
	    "job:ps",
	    "/job:",
	    "/job:1x",
	    "/task:-1",
	    "/task:1x",
	    "/task:99999999999",
	    "/device:CPU:x",
	    "/job:ps//",
	    "/tpu:0",
	    "/device:",
	    "/job:ps /task:0",
	};
	struct mu_device_name d;

	for (unsigned i = 0; i < MU_COUNT(bad); i++)
		assert_fails(mu_device_parse(&d, bad[i], &err), &err, MU_INVALID_ARGUMENT,
			     "Malformed device specification");
}

static void names__compared__match_merge_and_intersect(void **state)
{
	struct mu_device_name full, part, other;

	assert_ok(mu_device_parse(&full, "/job:ps/replica:0/task:0/device:CPU:0", &err), &err);
	assert_ok(mu_device_parse(&part, "/job:ps/device:CPU:*", &err), &err);
	assert_ok(mu_device_parse(&other, "/task:1", &err), &err);
	assert_true(mu_device_matches(&full, &part));
	assert_false(mu_device_matches(&full, &other));
	assert_false(mu_device_intersect(&full, &other));
	assert_int_equal(full.task, 0);
	assert_true(mu_device_intersect(&part, &other));
	assert_int_equal(part.task, 1);
	mu_device_merge(&full, &other);
	assert_int_equal(full.task, 1);
}

static void task_prefix__of_a_full_name__has_its_length(void **state)
{
	assert_int_equal(mu_device_task_len("/job:ps/replica:0/task:12/device:CPU:0"),
			 strlen("/job:ps/replica:0/task:12"));
	assert_int_equal(mu_device_task_len("/device:CPU:0"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(names__in_old_and_new_form__are_parsed),
	    cmocka_unit_test(device_name__that_is_malformed__is_invalid),
	    cmocka_unit_test(names__compared__match_merge_and_intersect),
	    cmocka_unit_test(task_prefix__of_a_full_name__has_its_length),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
