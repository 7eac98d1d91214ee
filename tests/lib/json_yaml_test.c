/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "lib/io/json.h"
#include "lib/io/yaml.h"
#include "tests/fuzz/doc_fuzz.c"
#include "tests/fuzz/mutate.h"

static struct mu_err err;

static char *yaml_as_json(const char *text)
{
	struct mu_doc *d;
	struct mu_buf out = {0};

	assert_ok(mu_yaml_parse(&d, mu_span_of(text), "t.yaml", &err), &err);
	mu_json_write(&out, d->root);
	mu_doc_free(d);
	return mu_buf_take(&out);
}

static void yaml__of_all_kinds__becomes_the_json_of_kubectl(void **state)
{
	static const char *const cases[][2] = {
	    {"[0o17, 0o-7, 0o8]", "[15,\"0o-7\",\"0o8\"]"},
	    {"a: 1\nb: [x, 'y', \"z\\n\"]", "{\"a\":1,\"b\":[\"x\",\"y\",\"z\\n\"]}"},
	    {"{a: ~, b: null, c: }", "{\"a\":null,\"b\":null,\"c\":null}"},
	    {"[yes, off, true, 'yes', 0x10, 010, -3, +4, 1e3, .5, 1.5.2, 1:2]",
	     "[true,false,true,\"yes\",16,8,-3,4,1000,0.5,\"1.5.2\",\"1:2\"]"},
	    {"a: &x {k: 1}\nb: *x\nc: [*x, *x]",
	     "{\"a\":{\"k\":1},\"b\":{\"k\":1},\"c\":[{\"k\":1},{\"k\":1}]}"},
	    {"t: |\n  one\n  two\n", "{\"t\":\"one\\ntwo\\n\"}"},
	    {"v: !!str 5", "{\"v\":\"5\"}"},
	    {"big: 9223372036854775807", "{\"big\":9223372036854775807}"},
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char *got = yaml_as_json(cases[i][0]);
		assert_string_equal(got, cases[i][1]);
		free(got);
	}
}

static void yaml__with_a_fault__names_file_and_line(void **state)
{
	static const char *const cases[][2] = {
	    {"a: 1\nb: [1, 2\n", "t.yaml:3:"},
	    {"a:\n\tb: 1\n", "t.yaml:2: not valid YAML: found character that cannot start any "
			     "token: indent with spaces, not tabs"},
	    {"a: b: c\n", ": is the line indented as those around it, and a value"},
	    {"a: 1\n b: 2\n", ": is the line indented as those around it"},
	    {"a:\n  b: 1\n c: 2\n", "did not find expected key: is the line indented"},
	    {"a: 1\nb\n", "could not find expected ':': a key ends with ':'"},
	    {"a: {b: 1\nc: 2\n", ": is a '}' missing?"},
	    {"a: [b\n- c\n", "is a ']' missing?"},
	    {"a: 1\na: 2\n", "t.yaml:2: a: is given twice"},
	    {"a:\n  - *nobody\n", "t.yaml:2: an alias without its anchor"},
	    {"a: 1\nb: \"x\\0y\"\n", "t.yaml:2: a string contains a NUL"},
	    {"\"x\\0y\": 1\n", "t.yaml:1: a string contains a NUL"},
	    {"\"x\\0y\"", "t.yaml:1: a string contains a NUL"},
	    {"a: 1\nb: \x01\n", "t.yaml:2: not valid YAML: control characters"},
	    {"a: 1\n# \xff\n", "t.yaml:2: not valid YAML: invalid leading UTF-8"},
	    {"a: !secret x\n", "t.yaml:1: tags are not used here"},
	    {"? [x]\n: 1\n", "a key must be a plain word"},
	    {"d:\n  <<: 1\n", "t.yaml:2: the merge key (<<) takes a map or a list of maps"},
	    {"d:\n  <<: [{a: 1}, [{b: 1}]]\n", "t.yaml:2: the merge key (<<) takes a map or"},
	    {"d:\n  <<: {a: 1}\n  <<: {b: 1}\n", "t.yaml:3: the merge key (<<) is given twice"},
	    {"b: &b {x: 1}\nd:\n  x: 2\n  <<: *b\n",
	     "t.yaml:4: the merge key (<<) must be above x"},
	    {"", "holds 0 documents"},
	    {"a: 1\n---\nb: 2\n", "holds 2 documents where one is expected: put each in a file"},
	};
	struct mu_doc *d;

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_fails(mu_yaml_parse(&d, mu_span_of(cases[i][0]), "t.yaml", &err), &err,
			     MU_INVALID_ARGUMENT, cases[i][1]);
}

static void yaml__with_merge_keys__adds_missing_keys(void **state)
{
	static const char *const cases[][2] = {
	    {"d:\n  <<: *b\n  x: 3\n", "{\"x\":3,\"y\":{\"k\":2}}"},
	    {"d:\n  z: 3\n  <<: *b\n", "{\"z\":3,\"x\":1,\"y\":{\"k\":2}}"},
	    {"d:\n  <<: [{z: 3}, *b, {z: 4, u: 5}]\n", "{\"z\":3,\"x\":1,\"y\":{\"k\":2},\"u\":5}"},
	    {"d:\n  y: &e\n    <<: *b\n  w: *e\n",
	     "{\"y\":{\"x\":1,\"y\":{\"k\":2}},\"w\":{\"x\":1,\"y\":{\"k\":2}}}"},
	    {"d: {\"<<\": 1}\n", "{\"<<\":1}"},
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		MU_AUTO(mu_doc_free) struct mu_doc *d = NULL;
		MU_AUTO_BUF text = {0};
		MU_AUTO_BUF out = {0};

		mu_buf_printf(&text, "b: &b {x: 1, \"y\": {k: 2}}\n%s", cases[i][0]);
		assert_ok(mu_yaml_parse(&d, mu_buf_span(&text), "t.yaml", &err), &err);
		mu_json_write(&out, mu_doc_key(d->root, "d"));
		assert_string_equal(out.data, cases[i][1]);
	}
}

/* Returns the CPU time to parse a map of many keys followed by `suffix`. */
static double time_to_read(const char *suffix)
{
	MU_AUTO(mu_doc_free) struct mu_doc *d = NULL;
	MU_AUTO_BUF text = {0};

	mu_buf_puts(&text, "a: &a {");
	for (int i = 0; i < 20000; i++)
		mu_buf_printf(&text, "a_rather_long_key_%d: 1, ", i);
	mu_buf_printf(&text, "}\n%s", suffix);
	clock_t start = clock();
	assert_ok(mu_yaml_parse(&d, mu_buf_span(&text), "t.yaml", &err), &err);
	return (double)(clock() - start) / CLOCKS_PER_SEC;
}

static void yaml__with_a_merge_key_of_many_keys__is_parsed_in_linear_time(void **state)
{
	double map_only_s = time_to_read("");

	assert_true(time_to_read("b: {<<: [*a, *a]}\n") < 0.2 + 10 * map_only_s);
}

static void yaml__with_aliases_of_a_long_text__does_not_copy_it(void **state)
{
	MU_AUTO(mu_doc_free) struct mu_doc *d = NULL;
	MU_AUTO_BUF text = {0};
	struct rusage before, after;

	mu_buf_puts(&text, "a: &a \"");
	for (int i = 0; i < 100000; i++)
		mu_buf_putc(&text, 'x');
	mu_buf_puts(&text, "\"\nb: [");
	for (int i = 0; i < 20000; i++)
		mu_buf_puts(&text, "*a, ");
	mu_buf_puts(&text, "]\n");
	getrusage(RUSAGE_SELF, &before);
	assert_ok(mu_yaml_parse(&d, mu_buf_span(&text), "t.yaml", &err), &err);
	getrusage(RUSAGE_SELF, &after);
	assert_true(after.ru_maxrss - before.ru_maxrss < 500 << 10); /* KiB; copies take 2 GB */
	assert_int_equal(mu_doc_key(d->root, "b")->n, 20000);
}

static void yaml__with_exponential_aliases__is_rejected_at_once(void **state)
{
	MU_AUTO_BUF text = {0};
	struct mu_doc *d;

	mu_buf_puts(&text, "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n");
	for (int i = 1; i < 12; i++) {
		mu_buf_printf(&text, "a%d: &a%d [", i, i);
		for (int k = 0; k < 9; k++)
			mu_buf_printf(&text, "*a%d%s", i - 1, k < 8 ? ", " : "]\n");
	}
	assert_fails(mu_yaml_parse(&d, mu_buf_span(&text), "t.yaml", &err), &err,
		     MU_INVALID_ARGUMENT, "aliases expand to more");
}

static void yaml_and_json__nested_too_deep__are_invalid(void **state)
{
	char deep[2001];
	struct mu_doc *d;

	memset(deep, '[', 1000);
	memset(deep + 1000, ']', 1000);
	deep[2000] = '\0';
	assert_fails(mu_yaml_parse(&d, mu_span_of(deep), "t", &err), &err, MU_INVALID_ARGUMENT,
		     "too deep");
	assert_fails(mu_json_parse(&d, mu_span_of(deep), "t", &err), &err, MU_INVALID_ARGUMENT,
		     "deeper than");
}

static void json__of_all_kinds__is_read(void **state)
{
	static const char *const cases[][2] = {
	    {" [ ] ", "[]"},
	    {"\xef\xbb\xbf{\t\"a\"\r\n: { } }", "{\"a\":{}}"},
	    {"[true,false,null,\"\"]", "[true,false,null,\"\"]"},
	    {"[0,-0,7,-12,123456789012345,1e3,2.50,-1.5E-3]",
	     "[0,0,7,-12,123456789012345,1000,2.5,-0.0015]"},
	    {"[9007199254740991,9007199254740994,1e300]",
	     "[9007199254740991,9007199254740994,1e+300]"},
	    {"\"a\\\"b\\\\c\\/d\\b\\f\\n\\r\\t\"", "\"a\\\"b\\\\c/d\\b\\f\\n\\r\\t\""},
	    {"\"\\u0041\\u00e9\\u20AC\\ud83d\\ude00\"",
	     "\"A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\""},
	    {"{\"a\\u0062\":1,\"x\":[{\"y\":[[2]]}]}", "{\"ab\":1,\"x\":[{\"y\":[[2]]}]}"},
	    {"\"two\nlines\"", "\"two\\nlines\""},
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		MU_AUTO(mu_doc_free) struct mu_doc *d = NULL;
		MU_AUTO_BUF out = {0};

		assert_ok(mu_json_parse(&d, mu_span_of(cases[i][0]), "t", &err), &err);
		mu_json_write(&out, d->root);
		assert_string_equal(out.data, cases[i][1]);
	}
}

static void json__with_a_nul__is_invalid(void **state)
{
	static const char *const cases[] = {"{\"a\":\"x\\u0000y\"}", "{\"a\\u0000\":1}",
					    "[\"\\\\\\u0000\"]"};
	MU_AUTO(mu_doc_free) struct mu_doc *d = NULL;

	for (size_t i = 0; i < MU_COUNT(cases); i++)
		assert_fails(mu_json_parse(&d, mu_span_of(cases[i]), "t", &err), &err,
			     MU_INVALID_ARGUMENT, "t:1: not valid JSON: \\u needs");
	assert_fails(mu_json_parse(&d, (struct mu_span){"{}\n\0", 4}, "t", &err), &err,
		     MU_INVALID_ARGUMENT, "t:2: a NUL byte");
	assert_fails(mu_json_parse(&d, (struct mu_span){"[\"a\0b\"]", 7}, "t", &err), &err,
		     MU_INVALID_ARGUMENT, "t:1: a NUL byte");
	assert_ok(mu_json_parse(&d, mu_span_of("[\"\\\\u0000\"]"), "t", &err), &err);
	assert_string_equal(d->root->first->text, "\\u0000");
}

/* A double cannot represent 2^53 + 1, so the written integer is ambiguous. */
static void json__of_integers_from_2_to_the_53__has_no_ints(void **state)
{
	static const struct {
		const char *text;
		int64_t value; /* 0: rejected */
	} cases[] = {
	    {"{\"n\":9007199254740991}", 9007199254740991},
	    {"{\"n\":-9007199254740991}", -9007199254740991},
	    {"{\"n\":9007199254740992}", 0},
	    {"{\"n\":9007199254740993}", 0},
	    {"{\"n\":-9007199254740993}", 0},
	    {"{\"n\":9223372036854775807}", 0},
	    {"{\"n\":1e3}", 1000},
	};

	for (size_t i = 0; i < MU_COUNT(cases); i++) {
		MU_AUTO(mu_doc_free) struct mu_doc *d = NULL;
		int64_t got = 0;

		assert_ok(mu_json_parse(&d, mu_span_of(cases[i].text), "t", &err), &err);
		if (cases[i].value)
			assert_ok(mu_doc_opt_int(d->root, "n", INT64_MIN, INT64_MAX, &got, &err),
				  &err);
		else
			assert_fails(mu_doc_opt_int(d->root, "n", INT64_MIN, INT64_MAX, &got, &err),
				     &err, MU_INVALID_ARGUMENT, "n: must be a whole number");
		assert_true(got == cases[i].value);
	}
}

static void json__of_too_many_values__is_rejected_before_it_is_parsed(void **state)
{
	size_t len = 2 * MU_DOC_MAX_NODES + 3;
	MU_AUTO_FREE char *text = mu_xmalloc(len);
	struct mu_doc *d;

	for (size_t i = 0; i < len; i++)
		text[i] = i % 2 ? ',' : '1';
	text[0] = '[';
	text[len - 1] = ']';
	assert_fails(mu_json_parse(&d, (struct mu_span){text, len}, "t", &err), &err,
		     MU_INVALID_ARGUMENT, "t: more than 1000000 commas and brackets");
}

/* JSON texts that libyaml rejects or parses differently. */
static void json__read_as_yaml__has_the_values_of_json(void **state)
{
	char long_key[2100];
	const char *const cases[][2] = {
	    {"{\"a\": \"\\ud83d\\ude00 \\/\"}", "{\"a\":\"\xf0\x9f\x98\x80 /\"}"},
	    {"\xef\xbb\xbf\n{\n\t\"a\":\t1,\n\t\"b\":\n\t[\n\t\t2\n\t]\n}", "{\"a\":1,\"b\":[2]}"},
	    {"{\"a\": \"x \xc2\x85 y\"}", "{\"a\":\"x \xc2\x85 y\"}"},
	    {"{\"<<\": {\"a\"\n:1}}", "{\"<<\":{\"a\":1}}"},
	    {long_key, long_key},
	};

	memset(long_key, 'k', sizeof(long_key));
	memcpy(long_key, "{\"", 2);
	strcpy(long_key + sizeof(long_key) - 5, "\":1}");
	for (size_t i = 0; i < MU_COUNT(cases); i++) {
		MU_AUTO_FREE char *got = yaml_as_json(cases[i][0]);

		assert_string_equal(got, cases[i][1]);
	}
}

static void json__read_as_yaml__has_the_lines_of_its_values(void **state)
{
	MU_AUTO(mu_doc_free) struct mu_doc *d = NULL;
	struct mu_doc *none;
	int64_t n;

	assert_ok(mu_yaml_parse(&d,
				MU_SPAN("{\n\t\"a\": {},\n\t\"b\": [\n\t\t{\"n\": \"x\"}\n\t]\n}"),
				"j.json", &err),
		  &err);
	assert_fails(mu_doc_opt_int(d->root->last->first, "n", 0, 1, &n, &err), &err,
		     MU_INVALID_ARGUMENT, "j.json:4: b[0].n: must be a whole number");
	assert_fails(mu_yaml_parse(&none, MU_SPAN("{\n\"a\": 1,\n\"a\": 2}"), "j.json", &err), &err,
		     MU_INVALID_ARGUMENT, "j.json:3: a: is given twice");
	assert_fails(mu_yaml_parse(&none, MU_SPAN("{\n\"a\": 1\n\"b\": 2}"), "j.json", &err), &err,
		     MU_INVALID_ARGUMENT, "j.json:3: not valid YAML");
}

/* The truncated copy has exact size, so that ASan detects a read past its end. */
static void json__truncated__is_invalid(void **state)
{
	static const char text[] =
	    "{\"a\":[1,-2.5e+3,true,null,\"\\u00e9\\ud83d\\ude00\\n\"],\"b\":{\"c\":\"d\"}}";

	for (size_t n = 0; n < sizeof(text) - 1; n++) {
		MU_AUTO_FREE char *part = mu_xmalloc(n ? n : 1);
		struct mu_doc *d;

		memcpy(part, text, n);
		assert_fails(mu_json_parse(&d, (struct mu_span){part, n}, "t", &err), &err,
			     MU_INVALID_ARGUMENT, "t:1: not valid JSON");
	}
}

static void json__with_many_members__finds_a_duplicate(void **state)
{
	MU_AUTO_BUF text = {0};
	struct mu_doc *d;

	for (int n = 2; n < 60; n++) {
		mu_buf_clear(&text);
		for (int i = 0; i < n; i++)
			mu_buf_printf(&text, "%c\"k%d\":%d", i ? ',' : '{', i, i);
		mu_buf_printf(&text, ",\"k%d\":0}", n / 2);
		assert_fails(mu_json_parse(&d, mu_buf_span(&text), "t", &err), &err,
			     MU_INVALID_ARGUMENT, "is given twice");
	}
}

static void json__with_a_fault__names_the_line(void **state)
{
	static const char *const cases[][2] = {
	    {"{\n\"a\": nope}", "t:2: not valid JSON"},
	    {"{} x", "t:1: text after"},
	    {"", "not valid JSON"},
	    {"{\"a\":1,\"a\":2}", "a: is given twice"},
	    {"[1,", "not valid JSON"},
	    {"{\"x\":{\"y\":[{\"a\":1,\"a\":2}]}}", "t: x.y[0].a: is given twice"},
	    {"[1,]", "not valid JSON"},
	    {"{\"a\":1,}", "not valid JSON"},
	    {"{\"a\" 1}", "not valid JSON"},
	    {"{a:1}", "not valid JSON"},
	    {"[1}", "not valid JSON"},
	    {"[.5]", "not valid JSON"},
	    {"[+1]", "not valid JSON"},
	    {"[-]", "not valid JSON"},
	    {"[1e]", "not valid JSON"},
	    {"[tru]", "not valid JSON"},
	    {"[truer]", "not valid JSON"},
	    {"[\n\n\"\\x\"]", "t:3: not valid JSON"},
	    {"\"\\u12\"", "not valid JSON"},
	    {"\"\\u12g4\"", "not valid JSON"},
	    {"\"\\u\"", "not valid JSON"},
	    {"\"\\", "not valid JSON"},
	    {"[1,", "not valid JSON"},
	    {"{\"a\":1,", "not valid JSON"},
	    {"\"\\ud800\"", "not valid JSON"},
	    {"\"\\ud800\\u0041\"", "not valid JSON"},
	    {"\"\\udc00\"", "not valid JSON"},
	    {"\"open", "not valid JSON"},
	    {"\"open\\\"", "not valid JSON"},
	};
	struct mu_doc *d;

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_fails(mu_json_parse(&d, mu_span_of(cases[i][0]), "t", &err), &err,
			     MU_INVALID_ARGUMENT, cases[i][1]);
}

static void getters__with_the_wrong_kind__name_the_path(void **state)
{
	static const char *const names[] = {"red", "green", "blue", NULL};
	static const char *const known[] = {"replicas", "list", NULL};
	MU_AUTO(mu_doc_free) struct mu_doc *d = NULL;
	int64_t i = 7;
	double f = 0;
	bool b;
	int choice;
	const char *text;

	assert_ok(mu_yaml_parse(&d, MU_SPAN("spec:\n  ps:\n    replicas: -1\n  list: [{n: x}]\n"),
				"j.yaml", &err),
		  &err);
	struct mu_doc_node *ps = mu_doc_get(d->root, "spec.ps"), *n = d->root->first->last->first;
	assert_fails(mu_doc_opt_int(ps, "replicas", 0, 100, &i, &err), &err, MU_INVALID_ARGUMENT,
		     "j.yaml:3: spec.ps.replicas: must be between 0 and 100, got -1");
	assert_fails(mu_doc_opt_bool(ps, "replicas", &b, &err), &err, MU_INVALID_ARGUMENT,
		     "must be true or false, got a whole number: -1");
	assert_fails(mu_doc_opt_text(ps, "replicas", &text, &err), &err, MU_INVALID_ARGUMENT,
		     "must be a string");
	assert_fails(mu_doc_opt_choice(n, "n", names, &choice, &err), &err, MU_INVALID_ARGUMENT,
		     "j.yaml:4: spec.list[0].n: must be red, green or blue, got 'x'");
	assert_fails(mu_doc_known_keys(mu_doc_get(d->root, "spec"), known, &err), &err,
		     MU_INVALID_ARGUMENT, "j.yaml:2: spec.ps: unknown field");
	assert_int_equal(i, 7);
	assert_ok(mu_doc_opt_int(ps, "absent", 0, 1, &i, &err), &err);
	assert_int_equal(i, 7);
	assert_ok(mu_doc_opt_float(ps, "replicas", -5, 5, &f, &err), &err);
	assert_true(f == -1);
}

static void known_keys__with_a_typo__suggest_the_key(void **state)
{
	static const char *const known[] = {"replicas", "kernels", NULL};
	MU_AUTO(mu_doc_free) struct mu_doc *d = NULL;

	assert_ok(mu_yaml_parse(&d, MU_SPAN("replcias: 1\n"), "j.yaml", &err), &err);
	assert_fails(mu_doc_known_keys(d->root, known, &err), &err, MU_INVALID_ARGUMENT,
		     "did you mean 'replicas'?");
}

static void json__written__reads_back(void **state)
{
	const char text[] = "{\"a\":[1,-2.5,1e300,0.1,0.30000000000000004],\"b\":"
			    "\"q\\\"\\\\\\u0001\\n\",\"c\":{},\"d\":[]}";
	MU_AUTO(mu_doc_free) struct mu_doc *d = NULL;
	MU_AUTO_BUF out = {0};

	assert_ok(mu_json_parse(&d, mu_span_of(text), "t", &err), &err);
	mu_json_write(&out, d->root);
	assert_string_equal(out.data, "{\"a\":[1,-2.5,1e+300,0.1,0.30000000000000004],\"b\":"
				      "\"q\\\"\\\\\\u0001\\n\",\"c\":{},\"d\":[]}");
}

static void documents__of_random_bytes__never_break_the_readers(void **state)
{
	const char text[] =
	    "a: &x [1, 2.5, 'q', \"w\\n\", ~, yes]\nb: {c: *x, d: |\n  lines\n}\n---\n- x\n";
	const char json[] = "{\"a\":[1,2.5,true,null,\"\\u00e9\\n\"],\"b\":{\"c\":{}}}";

	mutate_run(LLVMFuzzerTestOneInput, text, sizeof text - 1, 5000);
	mutate_run(LLVMFuzzerTestOneInput, json, sizeof json - 1, 5000);
}

static void bytes__of_invalid_utf_8__become_question_marks(void **state)
{
	static const char *const cases[][2] = {
	    {"a\xff-b", "a?-b"},
	    {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
	    {"\xc3", "?"},
	    {"\xe2\x82", "??"},
	    {"\xc0\x80", "??"},
	    {"\xed\xa0\x80", "???"},
	};

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		char text[16];

		strcpy(text, cases[i][0]);
		mu_utf8_replace_invalid(text);
		assert_string_equal(text, cases[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(yaml__of_all_kinds__becomes_the_json_of_kubectl),
	    cmocka_unit_test(yaml__with_a_fault__names_file_and_line),
	    cmocka_unit_test(yaml__with_merge_keys__adds_missing_keys),
	    cmocka_unit_test(yaml__with_a_merge_key_of_many_keys__is_parsed_in_linear_time),
	    cmocka_unit_test(yaml__with_aliases_of_a_long_text__does_not_copy_it),
	    cmocka_unit_test(yaml__with_exponential_aliases__is_rejected_at_once),
	    cmocka_unit_test(yaml_and_json__nested_too_deep__are_invalid),
	    cmocka_unit_test(json__of_all_kinds__is_read),
	    cmocka_unit_test(json__with_a_nul__is_invalid),
	    cmocka_unit_test(json__of_integers_from_2_to_the_53__has_no_ints),
	    cmocka_unit_test(json__of_too_many_values__is_rejected_before_it_is_parsed),
	    cmocka_unit_test(json__read_as_yaml__has_the_values_of_json),
	    cmocka_unit_test(json__read_as_yaml__has_the_lines_of_its_values),
	    cmocka_unit_test(json__truncated__is_invalid),
	    cmocka_unit_test(json__with_many_members__finds_a_duplicate),
	    cmocka_unit_test(json__with_a_fault__names_the_line),
	    cmocka_unit_test(getters__with_the_wrong_kind__name_the_path),
	    cmocka_unit_test(known_keys__with_a_typo__suggest_the_key),
	    cmocka_unit_test(json__written__reads_back),
	    cmocka_unit_test(bytes__of_invalid_utf_8__become_question_marks),
	    cmocka_unit_test(documents__of_random_bytes__never_break_the_readers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
