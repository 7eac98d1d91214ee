/* SPDX-License-Identifier: Apache-2.0 */
/* See cmocka.h. Tests run on one thread; a failure longjmps out of the setup, test or teardown. A
 * crash ends the program: tools/run-tests counts it and has its output so far. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/bare/cmocka.h"

enum outcome { PASSED, FAILED, SKIPPED };

static jmp_buf exit_point;
static bool exit_point_is_set; /* a setup, test or teardown runs: exit_point is valid */

__attribute__((noreturn)) static void exit_phase(enum outcome result)
{
	if (!exit_point_is_set)
		abort();
	longjmp(exit_point, result);
}

void print_error(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
}

void bare_fail(const char *file, int line, const char *fmt, ...)
{
	va_list args;

	fprintf(stderr, "%s:%d: error: ", file, line);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	exit_phase(FAILED);
}

void bare_skip(void)
{
	exit_phase(SKIPPED);
}

static int run_fixture(const struct CMUnitTest *t, bare_fixture f, void **state)
{
	return f ? f(state) : 0;
}

static int run_body(const struct CMUnitTest *t, bare_fixture f, void **state)
{
	t->run(state);
	return 0;
}

/* Runs the setup, body or teardown of a test. */
static enum outcome run_phase(int (*phase)(const struct CMUnitTest *, bare_fixture, void **),
			      const struct CMUnitTest *t, bare_fixture f, void **state)
{
	enum outcome result = (enum outcome)setjmp(exit_point);

	exit_point_is_set = true;
	if (result == PASSED && phase(t, f, state))
		result = FAILED;
	exit_point_is_set = false;
	return result;
}

static enum outcome run_test(const struct CMUnitTest *t)
{
	void *state = NULL;
	enum outcome result = run_phase(run_fixture, t, t->setup, &state);

	if (result != PASSED)
		return result;
	result = run_phase(run_body, t, NULL, &state);
	if (run_phase(run_fixture, t, t->teardown, &state) != PASSED) {
		fprintf(stderr, "%s: the teardown failed\n", t->name);
		result = FAILED;
	}
	return result;
}

int bare_run(const struct CMUnitTest *tests, size_t n)
{
	static const char *const words[] = {"[       OK ]", "[  FAILED  ]", "[  SKIPPED ]"};
	size_t count[3] = {0};

	for (size_t i = 0; i < n; i++) {
		fprintf(stderr, "[ RUN      ] %s\n", tests[i].name);
		enum outcome result = run_test(&tests[i]);
		count[result]++;
		fprintf(stderr, "%s %s\n", words[result], tests[i].name);
	}
	if (count[SKIPPED])
		fprintf(stderr, "[  SKIPPED ] %zu test(s)\n", count[SKIPPED]);
	if (count[FAILED])
		fprintf(stderr, "[  FAILED  ] %zu test(s)\n", count[FAILED]);
	fprintf(stderr, "[  PASSED  ] %zu test(s)\n", count[PASSED]);
	return (int)count[FAILED];
}
