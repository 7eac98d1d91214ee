/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/io/json_build.h"

#include <cjson/cJSON.h>

#include <stdlib.h>

#include "lib/base/mem.h"
#include "tests/test.h"

/* Compares the tree with the text; frees the tree. */
static void expect(cJSON *tree, const char *text)
{
	char *printed = cJSON_PrintUnformatted(tree);

	assert_string_equal(printed, text);
	free(printed);
	cJSON_Delete(tree);
}

static void format__with_quotes_and_values__becomes_a_tree(void **state)
{
	expect(mu_json_pack("{'a': %s, %s: [%d, true]}", "it's \"b\"\n", "b", -3),
	       "{\"a\":\"it's \\\"b\\\"\\n\",\"b\":[-3,true]}");
}

static void members__set__replace_values_and_merge_objects(void **state)
{
	cJSON *tree = mu_json_pack("{'a': {'x': 1, 'y': 2}, 'b': [1], 'c': null, 'd': 1}");

	mu_json_set(tree,
		    mu_json_pack("{'a': {'y': 3, 'z': 4}, 'b': [2], 'c': {'x': 1}, 'd': '2'}"));
	expect(tree, "{\"a\":{\"x\":1,\"y\":3,\"z\":4},\"b\":[2],\"c\":{\"x\":1},\"d\":\"2\"}");
}

static void members__filled_in__keep_existing_values(void **state)
{
	cJSON *tree = mu_json_pack("{'a': {'x': 1}, 'b': null}");

	mu_json_fill(tree, mu_json_pack("{'a': {'y': 2}, 'b': 1, 'c': {'x': 1}}"));
	expect(tree, "{\"a\":{\"x\":1},\"b\":null,\"c\":{\"x\":1}}");
}

static void merge_patch__of_two_values__is_their_difference(void **state)
{
	static const struct {
		const char *from, *to, *patch;
	} cases[] = {
	    {"{\"a\":1}", "{\"a\":1}", NULL},
	    {"{\"a\":1}", "{\"a\":2}", "{\"a\":2}"},
	    {"{\"a\":1,\"b\":2}", "{\"b\":2}", "{\"a\":null}"},
	    {"{\"a\":{\"x\":1,\"y\":2}}", "{\"a\":{\"x\":1,\"z\":3}}",
	     "{\"a\":{\"z\":3,\"y\":null}}"},
	    {"{\"l\":[1,2]}", "{\"l\":[1,3]}", "{\"l\":[1,3]}"},
	    {"{\"a\":{\"x\":1}}", "{\"a\":3}", "{\"a\":3}"},
	    {"null", "{\"a\":1}", "{\"a\":1}"},
	};

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		cJSON *from = cJSON_Parse(cases[i].from), *to = cJSON_Parse(cases[i].to);
		cJSON *patch = mu_json_merge_patch(from, to);
		char *text = patch ? cJSON_PrintUnformatted(patch) : NULL;

		if (cases[i].patch)
			assert_string_equal(text, cases[i].patch);
		else
			assert_null(text);
		free(text);
		cJSON_Delete(from);
		cJSON_Delete(to);
		cJSON_Delete(patch);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(format__with_quotes_and_values__becomes_a_tree),
	    cmocka_unit_test(members__set__replace_values_and_merge_objects),
	    cmocka_unit_test(members__filled_in__keep_existing_values),
	    cmocka_unit_test(merge_patch__of_two_values__is_their_difference),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
