/* SPDX-License-Identifier: Apache-2.0 */
/* See cmocka.h. Tests run on one thread; a failure jumps to the caller of the running part. A crash
 * ends the program: tools/run-tests counts it and has the lines printed so far. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/bare/cmocka.h"

enum ending { WENT_WELL, FAILED, SKIPPED };

static jmp_buf way_out;
static bool inside; /* a part that can be left */

__attribute__((noreturn)) static void leave(enum ending how)
{
	if (!inside)
		abort();
	longjmp(way_out, how);
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
	leave(FAILED);
}

void bare_skip(void)
{
	leave(SKIPPED);
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

/* One of a test's three parts. */
static enum ending guarded(int (*part)(const struct CMUnitTest *, bare_fixture, void **),
			   const struct CMUnitTest *t, bare_fixture f, void **state)
{
	enum ending how = (enum ending)setjmp(way_out);

	inside = true;
	if (how == WENT_WELL && part(t, f, state))
		how = FAILED;
	inside = false;
	return how;
}

static enum ending run_test(const struct CMUnitTest *t)
{
	void *state = NULL;
	enum ending how = guarded(run_fixture, t, t->setup, &state);

	if (how != WENT_WELL)
		return how;
	how = guarded(run_body, t, NULL, &state);
	if (guarded(run_fixture, t, t->teardown, &state) != WENT_WELL) {
		fprintf(stderr, "%s: something is left behind\n", t->name);
		how = FAILED;
	}
	return how;
}

int bare_run(const struct CMUnitTest *tests, size_t n)
{
	static const char *const words[] = {"[       OK ]", "[  FAILED  ]", "[  SKIPPED ]"};
	size_t count[3] = {0};

	for (size_t i = 0; i < n; i++) {
		fprintf(stderr, "[ RUN      ] %s\n", tests[i].name);
		enum ending how = run_test(&tests[i]);
		count[how]++;
		fprintf(stderr, "%s %s\n", words[how], tests[i].name);
	}
	if (count[SKIPPED])
		fprintf(stderr, "[  SKIPPED ] %zu test(s)\n", count[SKIPPED]);
	if (count[FAILED])
		fprintf(stderr, "[  FAILED  ] %zu test(s)\n", count[FAILED]);
	fprintf(stderr, "[  PASSED  ] %zu test(s)\n", count[WENT_WELL]);
	return (int)count[FAILED];
}
