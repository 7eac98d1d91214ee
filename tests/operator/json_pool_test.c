/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/control/json_pool.h"

#include <cjson/cJSON.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/test.h"

enum { PIECES = 100 };

static void pieces__given_back__are_handed_out_again(void **state)
{
	void *given[PIECES], *got[PIECES];

	for (int i = 0; i < PIECES; i++)
		given[i] = cJSON_malloc(56);
	for (int i = 0; i < PIECES; i++)
		cJSON_free(given[i]);
	for (int i = PIECES - 1; i >= 0; i--) {
		got[i] = cJSON_malloc(50);
		assert_ptr_equal(got[i], given[i]);
		memset(got[i], 1, 50);
	}
	for (int i = 0; i < PIECES; i++)
		free(got[i]); /* they are malloc's */
}

static void piece__of_any_size__holds_what_was_asked_for(void **state)
{
	unsigned seed = 7;

	for (int round = 0; round < 10000; round++) {
		size_t n[8];
		char *p[8];

		for (int i = 0; i < 8; i++) {
			n[i] = (size_t)rand_r(&seed) % 120;
			p[i] = cJSON_malloc(n[i]);
			memset(p[i], i, n[i]);
		}
		for (int i = 0; i < 8; i++) {
			for (size_t k = 0; k < n[i]; k++)
				assert_int_equal(p[i][k], i);
			cJSON_free(p[i]);
		}
	}
	cJSON_free(NULL);
}

static void *take_a_tree_down(void *tree)
{
	cJSON_Delete(tree);
	return NULL;
}

static void tree__of_another_thread__may_be_deleted(void **state)
{
	for (int i = 0; i < 4; i++) {
		cJSON *tree = cJSON_CreateArray();
		pthread_t thread;

		for (int k = 0; k < 1000; k++)
			cJSON_AddItemToArray(tree, cJSON_CreateString("a name of some length"));
		assert_int_equal(pthread_create(&thread, NULL, take_a_tree_down, tree), 0);
		pthread_join(thread, NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(pieces__given_back__are_handed_out_again),
	    cmocka_unit_test(piece__of_any_size__holds_what_was_asked_for),
	    cmocka_unit_test(tree__of_another_thread__may_be_deleted),
	};

	json_pool_install();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
