/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of free shared-memory blocks.  A block that keeps its pages still has the bytes written
 * to it; a block without pages reads as zeros. */
#include "tests/test.h"

#include "lib/base/mem.h"
#include "lib/tensor/arena.h"

enum { MIB = 1 << 20, HALF = ARENA_CACHE_BYTES / 2, QUARTER = ARENA_CACHE_BYTES / 4 };

static int start(void **state)
{
	struct mu_err err;

	return arena_start(&err);
}

/* Allocates and frees n blocks of one size, as a step does.  Returns how many kept their pages. */
static unsigned step(unsigned n, size_t bytes)
{
	char *p[8];
	unsigned warm = 0;

	assert_true(n <= MU_COUNT(p));
	for (unsigned i = 0; i < n; i++) {
		p[i] = arena_alloc(bytes);
		assert_non_null(p[i]);
		warm += p[i][0] == 'x' && p[i][bytes - 1] == 'x';
		p[i][0] = p[i][bytes - 1] = 'x';
	}
	while (n > 0)
		arena_free(p[--n], bytes);
	return warm;
}

static void block__freed_and_allocated_again__keeps_its_pages(void **state)
{
	step(1, MIB);
	assert_int_equal(step(1, MIB), 1);
	assert_int_equal(step(1, MIB), 1);
}

static void blocks__of_a_repeated_step__keep_their_pages(void **state)
{
	step(6, HALF);
	for (int i = 0; i < 100; i++)
		assert_int_equal(step(6, HALF), 6);
	assert_int_equal(arena_cached_bytes(), 6 * (size_t)HALF);
}

static void blocks__of_other_sizes__replace_the_oldest_free_blocks(void **state)
{
	step(6, HALF);
	step(2, ARENA_CACHE_BYTES);
	for (int i = 0; i < 4; i++)
		assert_int_equal(step(2, ARENA_CACHE_BYTES), 2);
	assert_true(arena_cached_bytes() <= 6 * (size_t)HALF);
	assert_int_equal(step(6, HALF), 2); /* the others have lost their pages */
}

static void cache__after_a_peak__shrinks_again(void **state)
{
	step(8, HALF);
	assert_true(arena_cached_bytes() > 2 * (size_t)ARENA_CACHE_BYTES);
	for (int i = 0; i < 400; i++)
		step(1, QUARTER);
	assert_true(arena_cached_bytes() <= ARENA_CACHE_BYTES);
	assert_int_equal(step(1, QUARTER), 1);
}

static void blocks__of_changing_sizes__are_allocated(void **state)
{
	for (int round = 0; round < 20; round++)
		for (size_t bytes = ARENA_MIN_BYTES; bytes <= ARENA_CACHE_BYTES;
		     bytes = bytes * 5 / 3 + 1)
			step(1 + (unsigned)(bytes % 3), bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(block__freed_and_allocated_again__keeps_its_pages),
	    cmocka_unit_test(blocks__of_a_repeated_step__keep_their_pages),
	    cmocka_unit_test(blocks__of_other_sizes__replace_the_oldest_free_blocks),
	    cmocka_unit_test(cache__after_a_peak__shrinks_again),
	    cmocka_unit_test(blocks__of_changing_sizes__are_allocated),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
