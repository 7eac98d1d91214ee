/* SPDX-License-Identifier: Apache-2.0 */
/* The part of cmocka that the tests of GPU kernels use, so that they need only a GPU, nvcc and a C
 * compiler (make gpu-test). Only these tests find it as <cmocka.h>. */
#ifndef MU_TESTS_BARE_CMOCKA_H
#define MU_TESTS_BARE_CMOCKA_H

#include <math.h>
#include <stddef.h>
#include <string.h>

typedef int (*bare_fixture)(void **state);

struct CMUnitTest {
	const char *name;
	void (*run)(void **state);
	bare_fixture setup, teardown; /* (optional) return 0 on success */
};

#define cmocka_unit_test_setup_teardown(f, setup, teardown)                                        \
	{                                                                                          \
#f, f, setup, teardown                                                             \
	}
#define cmocka_unit_test(f)                                                                        \
	{                                                                                          \
#f, f, NULL, NULL                                                                  \
	}

/* Runs the tests in order; returns the number of failures. */
int bare_run(const struct CMUnitTest *tests, size_t n);
#define cmocka_run_group_tests(tests, setup, teardown)                                             \
	bare_run(tests, sizeof(tests) / sizeof((tests)[0]))

/* Both functions end the running test, setup or teardown. */
__attribute__((noreturn, format(printf, 3, 4))) void bare_fail(const char *file, int line,
							       const char *fmt, ...);
__attribute__((noreturn)) void bare_skip(void);
__attribute__((format(printf, 1, 2))) void print_error(const char *fmt, ...);
#define print_message print_error

#define skip()        bare_skip()
#define fail_msg(...) bare_fail(__FILE__, __LINE__, __VA_ARGS__)

#define BARE_EXPECT(holds, ...)                                                                    \
	do {                                                                                       \
		if (!(holds))                                                                      \
			fail_msg(__VA_ARGS__);                                                     \
	} while (0)
#define assert_true(x)     BARE_EXPECT(x, "%s", #x)
#define assert_false(x)    BARE_EXPECT(!(x), "not so: !(%s)", #x)
#define assert_non_null(x) BARE_EXPECT((x) != NULL, "%s is NULL", #x)
#define assert_null(x)     BARE_EXPECT((x) == NULL, "%s is not NULL", #x)
#define assert_ptr_equal(a, b)                                                                     \
	BARE_EXPECT((const void *)(a) == (const void *)(b), "%s is not %s", #a, #b)
#define BARE_COMPARE(a, b, same)                                                                   \
	do {                                                                                       \
		const long long bare_a = (long long)(a), bare_b = (long long)(b);                  \
		BARE_EXPECT((bare_a == bare_b) == (same), "%s is %lld, %s %lld", #a, bare_a, #b,   \
			    bare_b);                                                               \
	} while (0)
#define assert_int_equal(a, b)     BARE_COMPARE(a, b, 1)
#define assert_int_not_equal(a, b) BARE_COMPARE(a, b, 0)
#define assert_float_equal(a, b, slack)                                                            \
	do {                                                                                       \
		const double bare_a = (double)(a), bare_b = (double)(b);                           \
		BARE_EXPECT(fabs(bare_a - bare_b) <= (double)(slack), "%s is %.9g, want %.9g", #a, \
			    bare_a, bare_b);                                                       \
	} while (0)
#define assert_string_equal(a, b)                                                                  \
	do {                                                                                       \
		const char *bare_a = (a), *bare_b = (b);                                           \
		BARE_EXPECT(strcmp(bare_a, bare_b) == 0, "'%s' is not '%s'", bare_a, bare_b);      \
	} while (0)
#define assert_memory_equal(a, b, n)                                                               \
	BARE_EXPECT(memcmp(a, b, n) == 0, "%s is not what %s is", #a, #b)

#endif
