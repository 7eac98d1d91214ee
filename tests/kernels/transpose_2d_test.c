/* SPDX-License-Identifier: Apache-2.0 */
/* Transposition and column sums compared with plain loops. */
#include "tests/test.h"

#include <string.h>

#include "lib/base/mem.h"
#include "task/kernels/engine/loops/columns.h"
#include "task/kernels/engine/loops/loops.h"
#include "task/kernels/engine/transpose_2d.h"

enum { MAX_SIDE = 150 };

static void expect_transposed(size_t size, int64_t m, int64_t n, int64_t padding)
{
	static unsigned char from[MAX_SIDE * MAX_SIDE * 8], to[MAX_SIDE * MAX_SIDE * 8];
	int64_t from_step = m + 3, to_step = n + padding;

	for (size_t i = 0; i < sizeof from; i++)
		from[i] = (unsigned char)(i * 31 + i / 251);
	memset(to, 0xaa, sizeof to);
	transpose_2d(size, to, to_step, from, from_step, m, n);
	for (int64_t i = 0; i < m; i++) {
		for (int64_t j = 0; j < n; j++)
			assert_memory_equal(to + (size_t)(i * to_step + j) * size,
					    from + (size_t)(j * from_step + i) * size, size);
		/* the padding between the rows and after the last row is unchanged */
		for (size_t b = 0; b < size && (padding || i == m - 1); b++)
			assert_int_equal(to[(size_t)(i * to_step + n) * size + b], 0xaa);
	}
}

static void matrix__of_any_size__is_transposed(void **state)
{
	static const int64_t sides[] = {1, 3, 6, 8, 14, 16, 17, 64, 65, 130};
	static const char *const variants[] = {"cpu-generic", "cpu-avx2", "cpu-avx512"};

	for (unsigned v = 0; v < MU_COUNT(variants); v++) {
		if (cpu_kernels_select(variants[v], NULL))
			continue; /* not supported by this processor */
		for (size_t size = 1; size <= 8; size *= 2)
			for (unsigned i = 0; i < MU_COUNT(sides); i++)
				for (unsigned j = 0; j < MU_COUNT(sides); j++) {
					expect_transposed(size, sides[i], sides[j], 0);
					expect_transposed(size, sides[i], sides[j], 1);
				}
	}
}

static void column_sums__of_any_width__equal_the_plain_loops(void **state)
{
	static const int64_t widths[] = {1, 2, 10, 32, 511, 513, 1025};
	static int32_t in[3000 * 10 + 2 * 1025], out[1025];

	for (size_t i = 0; i < MU_COUNT(in); i++)
		in[i] = (int32_t)(i % 1009) - 500;
	for (unsigned w = 0; w < MU_COUNT(widths); w++) {
		int64_t n = widths[w], rows = (int64_t)MU_COUNT(in) / n;
		for (int64_t i = 0; i < n; i++)
			out[i] = (int32_t)i;
		columns_reduce(&loops->reduce[RED_SUM][MU_INT32], 4, out, in, rows, n);
		for (int64_t i = 0; i < n; i++) {
			int32_t want = (int32_t)i;
			for (int64_t r = 0; r < rows; r++)
				want += in[r * n + i];
			assert_int_equal(out[i], want);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(matrix__of_any_size__is_transposed),
	    cmocka_unit_test(column_sums__of_any_width__equal_the_plain_loops),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
