/* SPDX-License-Identifier: Apache-2.0 */
/* The line splitter of watches, and watch events. */
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>

#include "lib/kube/kube_stream.h"

static int collect(void *arg, const char *line, size_t len, struct mu_err *err)
{
	mu_buf_printf(arg, "[%.*s]", (int)len, line);
	return 0;
}

static void lines__split_anywhere__are_joined(void **state)
{
	const char *text = "{\"a\":1}\n{\"bb\":22}\r\n\n{\"ccc\":\"x\"}\n{\"rest";
	unsigned seed = 7;

	for (int round = 0; round < 500; round++) {
		MU_AUTO_BUF out = {0};
		struct kube_lines lines = {.line = collect, .arg = &out};

		for (size_t at = 0, n; at < strlen(text); at += n) {
			n = 1 + (size_t)rand_r(&seed) % 9;
			if (at + n > strlen(text))
				n = strlen(text) - at;
			assert_int_equal(kube_lines_feed(&lines, text + at, n, NULL), 0);
		}
		assert_string_equal(out.data, "[{\"a\":1}][{\"bb\":22}][{\"ccc\":\"x\"}]");
		mu_buf_fini(&lines.rest);
	}
}

static void line__longer_than_a_piece__arrives_in_pieces(void **state)
{
	const char *text = "abcd\nabcdefghij\nab\nabcdefgh";

	for (size_t n = 1; n <= strlen(text); n++) {
		MU_AUTO_BUF out = {0};
		struct kube_lines lines = {.line = collect, .arg = &out, .piece_max = 4};

		for (size_t at = 0; at < strlen(text); at += n)
			assert_int_equal(
			    kube_lines_feed(&lines, text + at,
					    at + n > strlen(text) ? strlen(text) - at : n, NULL),
			    0);
		assert_string_equal(out.data, "[abcd][abcd][efgh][ij][ab][abcd]");
		mu_buf_fini(&lines.rest);
	}
}

static void line__longer_than_the_limit__fails(void **state)
{
	MU_AUTO_BUF out = {0};
	struct kube_lines lines = {.line = collect, .arg = &out};
	char chunk[65536];
	struct mu_err err = {0};
	int rc = 0;

	memset(chunk, 'x', sizeof(chunk));
	for (int i = 0; i < 1000 && rc == 0; i++)
		rc = kube_lines_feed(&lines, chunk, sizeof(chunk), &err);
	assert_int_equal(rc, -MU_RESOURCE_EXHAUSTED);
	mu_buf_fini(&lines.rest);
}

static int read_event(const char *text, enum kube_change *change, struct mu_err *err)
{
	const cJSON *object = NULL;
	cJSON *json = cJSON_Parse(text);
	int rc = kube_event_read(json, change, &object, err);

	cJSON_Delete(json);
	return rc;
}

static void events__are_parsed_by_type(void **state)
{
	enum kube_change change = KUBE_ADDED;
	struct mu_err err = {0};

	assert_int_equal(read_event("{\"type\":\"DELETED\",\"object\":{}}", &change, &err), 0);
	assert_int_equal(change, KUBE_DELETED);
	assert_int_equal(read_event("{\"type\":\"BOOKMARK\",\"object\":{}}", &change, &err), 0);
	assert_int_equal(change, KUBE_BOOKMARK);
	assert_int_equal(
	    read_event("{\"type\":\"ERROR\",\"object\":{\"code\":410,\"message\":\"too old\"}}",
		       &change, &err),
	    -MU_OUT_OF_RANGE);
	assert_int_equal(
	    read_event("{\"type\":\"ERROR\",\"object\":{\"code\":500}}", &change, &err),
	    -MU_UNAVAILABLE);
	assert_int_equal(read_event("{\"type\":\"NEW\",\"object\":{}}", &change, &err),
			 -MU_UNAVAILABLE);
	assert_int_equal(read_event("{\"type\":\"ADDED\",\"object\":7}", &change, &err),
			 -MU_UNAVAILABLE);
	assert_int_equal(read_event("[]", &change, &err), -MU_UNAVAILABLE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(lines__split_anywhere__are_joined),
	    cmocka_unit_test(line__longer_than_a_piece__arrives_in_pieces),
	    cmocka_unit_test(line__longer_than_the_limit__fails),
	    cmocka_unit_test(events__are_parsed_by_type),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
