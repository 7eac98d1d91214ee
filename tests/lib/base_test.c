/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/pb.h"
#include "tests/test.h"

static void fail__with_a_code__fills_the_error_and_returns_the_negative_code(void **state)
{
	struct mu_err err;

	assert_int_equal(mu_fail(&err, MU_NOT_FOUND, "no job '%s'", "ps"), -5);
	assert_string_equal(err.msg, "no job 'ps'");
	assert_int_equal(mu_wrap(&err, "task %d", 3), -5);
	assert_string_equal(err.msg, "task 3: no job 'ps'");
	assert_int_equal(mu_append(&err, "; see %s", "docs"), -5);
	assert_string_equal(err.msg, "task 3: no job 'ps'; see docs");
	assert_int_equal(mu_fail(NULL, MU_ABORTED, "nobody listens"), -10);
}

static void fail_errno__of_an_errno__has_the_matching_code(void **state)
{
	struct mu_err err;

	assert_int_equal(mu_fail_errno(&err, ENOENT, "cannot read x"), -MU_NOT_FOUND);
	assert_string_equal(err.msg, "cannot read x: No such file or directory");
	assert_int_equal(mu_fail_errno(&err, ECONNREFUSED, "x"), -MU_UNAVAILABLE);
	/* on this code tf.train.Saver reports a missing folder to the user */
	assert_int_equal(mu_fail_errno(&err, ENOTDIR, "x"), -MU_FAILED_PRECONDITION);
}

static void wrap__of_a_message_that_fills_the_buffer__truncates_it(void **state)
{
	struct mu_err err;
	char big[4096];

	memset(big, 'x', sizeof big - 1);
	big[sizeof big - 1] = '\0';
	mu_fail(&err, MU_INTERNAL, "%s", big);
	mu_wrap(&err, "outer");
	assert_memory_equal(err.msg, "outer: xxx", 10);
	assert_int_equal(strlen(err.msg), sizeof err.msg - 1);
}

static void code_name__of_an_unknown_number__is_in_range(void **state)
{
	assert_string_equal(mu_code_name(mu_code_from(10)), "ABORTED");
	assert_string_equal(mu_code_name(mu_code_from(-1)), "UNKNOWN");
	assert_string_equal(mu_code_name(mu_code_from(1000)), "UNKNOWN");
}

static void arena__of_any_size__returns_aligned_memory(void **state)
{
	struct mu_arena a;

	mu_arena_init(&a);
	for (size_t n = 1; n < 100000; n = n * 3 + 1) {
		char *p = mu_arena_alloc(&a, n);
		assert_int_equal((uintptr_t)p % 16, 0);
		memset(p, 1, n);
	}
	assert_string_equal(mu_arena_printf(&a, "%s-%d", "ps", 7), "ps-7");
	mu_arena_fini(&a);
}

static void map__through_growth_and_deletion__keeps_its_entries(void **state)
{
	static int values[5000];
	struct mu_map m;
	char key[16];

	mu_map_init(&m);
	for (int i = 0; i < 5000; i++) {
		snprintf(key, sizeof key, "k%d", i);
		assert_null(mu_map_put(&m, key, &values[i]));
	}
	for (int i = 0; i < 5000; i += 2) {
		snprintf(key, sizeof key, "k%d", i);
		assert_ptr_equal(mu_map_del(&m, key), &values[i]);
	}
	for (int i = 0; i < 5000; i++) {
		snprintf(key, sizeof key, "k%d", i);
		assert_ptr_equal(mu_map_get(&m, key), i % 2 ? &values[i] : NULL);
	}
	assert_int_equal(m.count, 2500);
	assert_ptr_equal(mu_map_put(&m, "k1", &values[0]), &values[1]);
	mu_map_fini(&m);
}

static void pb__of_nested_messages__reads_back(void **state)
{
	MU_AUTO_BUF b = {0};
	char long_text[300];
	struct mu_pb_field f;

	memset(long_text, 'a', sizeof long_text);
	mu_pb_put_int(&b, 1, -5);
	size_t outer = mu_pb_begin(&b, 2);
	size_t inner = mu_pb_begin(&b, 3);
	mu_pb_put_bytes(&b, 4, (struct mu_span){long_text, sizeof long_text});
	mu_pb_end(&b, inner);
	mu_pb_put_double(&b, 5, 2.5);
	mu_pb_end(&b, outer);
	mu_pb_put_float(&b, 6, 1.25f);

	struct mu_pb m = mu_pb_of(mu_buf_span(&b));
	assert_true(mu_pb_next(&m, &f));
	assert_int_equal((int64_t)f.value, -5);
	assert_true(mu_pb_next(&m, &f));
	struct mu_pb o = mu_pb_of(f.bytes);
	assert_true(mu_pb_next(&o, &f));
	struct mu_pb in = mu_pb_of(f.bytes);
	assert_true(mu_pb_next(&in, &f));
	assert_int_equal(f.bytes.len, sizeof long_text);
	assert_memory_equal(f.bytes.data, long_text, sizeof long_text);
	assert_true(mu_pb_next(&o, &f));
	assert_true(mu_pb_double(&f) == 2.5);
	assert_true(mu_pb_next(&m, &f));
	assert_true(mu_pb_float(&f) == 1.25f);
	assert_false(mu_pb_next(&m, &f));
	assert_false(m.bad || o.bad || in.bad);
}

static void pb__truncated__is_malformed_or_shorter_and_never_read_past_the_end(void **state)
{
	MU_AUTO_BUF b = {0};
	struct mu_pb_field f;

	mu_pb_put_int(&b, 1, 1 << 20);
	mu_pb_put_str(&b, 2, "hello");
	mu_pb_put_double(&b, 3, 1);
	mu_pb_put_fixed32(&b, 4, 7);
	for (size_t n = 0; n < b.len; n++) {
		char *exact = malloc(n ? n : 1); /* ASan detects a read past the end */
		memcpy(exact, b.data, n);
		struct mu_pb m = mu_pb_of((struct mu_span){exact, n});
		while (mu_pb_next(&m, &f))
			;
		free(exact);
	}
	struct mu_pb m = mu_pb_of(MU_SPAN("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"));
	assert_false(mu_pb_next(&m, &f));
	assert_true(m.bad);
}

static void write_file__of_an_existing_file__replaces_it_completely(void **state)
{
	char path[] = "/tmp/muster-base-test-XXXXXX";
	struct mu_err err;
	MU_AUTO_BUF b = {0};

	close(mkstemp(path));
	assert_ok(mu_write_file(path, "first", 5, &err), &err);
	assert_ok(mu_write_file(path, "2nd", 3, &err), &err);
	assert_ok(mu_buf_read_file(&b, path, 100, &err), &err);
	assert_string_equal(b.data, "2nd");
	assert_fails(mu_buf_read_file(&b, "-", 100, &err), &err, MU_NOT_FOUND, "cannot read -");
	assert_fails(mu_buf_read_file(&b, path, 2, &err), &err, MU_RESOURCE_EXHAUSTED,
		     "larger than");
	unlink(path);
	assert_fails(mu_buf_read_file(&b, path, 2, &err), &err, MU_NOT_FOUND, "cannot read");
	assert_fails(mu_write_file("/nonexistent/x", "", 0, &err), &err, MU_NOT_FOUND,
		     "cannot write");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(fail__with_a_code__fills_the_error_and_returns_the_negative_code),
	    cmocka_unit_test(fail_errno__of_an_errno__has_the_matching_code),
	    cmocka_unit_test(wrap__of_a_message_that_fills_the_buffer__truncates_it),
	    cmocka_unit_test(code_name__of_an_unknown_number__is_in_range),
	    cmocka_unit_test(arena__of_any_size__returns_aligned_memory),
	    cmocka_unit_test(map__through_growth_and_deletion__keeps_its_entries),
	    cmocka_unit_test(pb__of_nested_messages__reads_back),
	    cmocka_unit_test(pb__truncated__is_malformed_or_shorter_and_never_read_past_the_end),
	    cmocka_unit_test(write_file__of_an_existing_file__replaces_it_completely),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
