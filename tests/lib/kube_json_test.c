/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of which only some members are wanted, and lists that come in pieces. */
#include "tests/test.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/kube/kube_json.h"

static const struct kube_fields name[] = {{.name = "name"}, {0}};
static const struct kube_fields state[] = {{.name = "code"}, {0}};
static const struct kube_fields wanted[] = {{.name = "metadata", .below = name},
					    {.name = "states", .below = state},
					    {.name = "labels"},
					    {0}};

static void check(const char *text, const char *want)
{
	cJSON *o = kube_json(mu_span_of(text), wanted);
	MU_AUTO_FREE char *got = o ? cJSON_PrintUnformatted(o) : NULL;

	cJSON_Delete(o);
	if (want)
		assert_string_equal(got, want);
	else
		assert_null(got);
}

static void object__with_members_that_nobody_wants__comes_without_them(void **state_)
{
	check("{\"kind\":\"Pod\",\"metadata\":{\"uid\":\"u\",\"name\":\"p\",\"x\":{\"name\":1}}}",
	      "{\"metadata\":{\"name\":\"p\"}}");
	check(" { \"a\" : [ 1 , { \"b\" : \"]\" } ] , \"labels\" : { \"k\" : [ null , -1.5 ] } } ",
	      "{\"labels\":{\"k\":[null,-1.5]}}");
	check("{\"states\":[{\"code\":1,\"y\":2},{\"z\":3},7]}",
	      "{\"states\":[{\"code\":1},{},7]}");
	check("{\"x\":\"\\\\\\\"{\",\"labels\":\"a\\\"\\\\\"}", "{\"labels\":\"a\\\"\\\\\"}");
	check("{\"met\\u0061data\":{\"name\":\"p\"}}", "{\"metadata\":{\"name\":\"p\"}}");
	check("{}", "{}");
	check("{\"metadata\":{},\"states\":[]}", "{\"metadata\":{},\"states\":[]}");
	check("{\"metadata\":null,\"states\":5}", "{\"metadata\":null,\"states\":5}");
	check("{\"labels\":{\"a\\u0042\":\"\\u0043\\n\",\"d\":{\"e\":[{},[],[true,\"f\"]]}}}",
	      "{\"labels\":{\"aB\":\"C\\n\",\"d\":{\"e\":[{},[],[true,\"f\"]]}}}");
}

static void object__that_is_broken_anywhere__is_none(void **state_)
{
	const char *const broken[] = {"",
				      "[]",
				      "7",
				      "{",
				      "{\"a\":}",
				      "{\"a\"}",
				      "{\"a\":1,}",
				      "{\"a\":[1,2}}",
				      "{\"a\":\"\\u0000\"}",
				      "{\"a\":1}}",
				      "{\"a\":1} x",
				      "{\"a\":\"",
				      "{\"a\":\"\\\"}",
				      "{\"labels\":tru}",
				      "{\"labels\":{\"a\":1,}}",
				      "{\"labels\":{\"a\" 1}}",
				      "{\"labels\":[1,2}}",
				      "{\"labels\":\"\\q\"}",
				      "{\"labels\":{\"\\q\":1}}",
				      "{\"states\":[{\"code\":1}",
				      "{\"metadata\":{\"name\":}}"};

	for (unsigned i = 0; i < MU_COUNT(broken); i++)
		check(broken[i], NULL);
}

static void object__nested_without_end__costs_no_stack(void **state_)
{
	MU_AUTO_BUF text = {0};

	mu_buf_puts(&text, "{\"x\":");
	for (int i = 0; i < 1000000; i++)
		mu_buf_putc(&text, '[');
	assert_null(kube_json(mu_buf_span(&text), wanted));
	mu_buf_clear(&text);
	mu_buf_puts(&text, "{\"labels\":");
	for (int i = 0; i < 1000000; i++)
		mu_buf_putc(&text, '[');
	for (int i = 0; i < 1000000; i++)
		mu_buf_putc(&text, ']');
	mu_buf_putc(&text, '}');
	assert_null(kube_json(mu_buf_span(&text), wanted));
}

static void event__of_an_error__comes_whole(void **state_)
{
	const char *text = "{\"type\":\"ERROR\",\"object\":{\"code\":410,\"message\":\"old\"}}";
	cJSON *o = kube_json_event(mu_span_of(text), wanted);
	MU_AUTO_FREE char *got = cJSON_PrintUnformatted(o);

	cJSON_Delete(o);
	assert_string_equal(got, text);
	o = kube_json_event(mu_span_of("{\"type\":\"ADDED\",\"object\":{\"code\":410}}"), wanted);
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(o, "object")), 0);
	cJSON_Delete(o);
}

static int collect(void *arg, struct mu_span element, struct mu_err *err)
{
	mu_buf_printf(arg, "<%.*s>", (int)element.len, element.data);
	return 0;
}

static void list__cut_anywhere__gives_its_items_and_what_is_around_them(void **state_)
{
	static const char text[] =
	    "{\"kind\":\"L\",\"metadata\":{\"items\":[1,{\"a\":\"b\"}],\"continue\":\"c [{\"},"
	    "\"items\":[ {\"a\":\"}]\"}, {\"items\":[{\"b\":\"\\\"\"}]},\n{}],\"more\":[{}]}\n";
	unsigned seed = 3;

	for (int round = 0; round < 500; round++) {
		MU_AUTO_BUF out = {0};
		struct kube_items items = {.fn = collect, .arg = &out};

		for (size_t at = 0, n; at < sizeof(text) - 1; at += n) {
			n = 1 + (size_t)rand_r(&seed) % 9;
			if (at + n > sizeof(text) - 1)
				n = sizeof(text) - 1 - at;
			assert_int_equal(kube_items_feed(&items, text + at, n, NULL), 0);
		}
		assert_string_equal(out.data,
				    "<{\"a\":\"}]\"}><{\"items\":[{\"b\":\"\\\"\"}]}><{}>");
		assert_string_equal(
		    items.envelope.data,
		    "{\"kind\":\"L\",\"metadata\":{\"items\":[1,{\"a\":\"b\"}],\"continue\":\"c "
		    "[{\"},\"items\":[],\"more\":[{}]}");
		kube_items_fini(&items);
	}
}

static void list__that_is_no_list__is_refused(void **state_)
{
	MU_AUTO_BUF out = {0};
	struct kube_items closed = {.fn = collect, .arg = &out}, deep = closed, large = closed;
	char chunk[4096];
	int rc = 0;

	assert_int_equal(kube_items_feed(&closed, "]", 1, NULL), -MU_UNAVAILABLE);
	memset(chunk, '[', sizeof(chunk));
	assert_int_equal(kube_items_feed(&deep, chunk, sizeof(chunk), NULL), -MU_INVALID_ARGUMENT);
	memset(chunk, 'x', sizeof(chunk));
	for (int i = 0; i < 100 && rc == 0; i++)
		rc = kube_items_feed(&large, chunk, sizeof(chunk), NULL);
	assert_int_equal(rc, -MU_RESOURCE_EXHAUSTED);
	kube_items_fini(&closed);
	kube_items_fini(&deep);
	kube_items_fini(&large);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(object__with_members_that_nobody_wants__comes_without_them),
	    cmocka_unit_test(object__that_is_broken_anywhere__is_none),
	    cmocka_unit_test(object__nested_without_end__costs_no_stack),
	    cmocka_unit_test(event__of_an_error__comes_whole),
	    cmocka_unit_test(list__cut_anywhere__gives_its_items_and_what_is_around_them),
	    cmocka_unit_test(list__that_is_no_list__is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
