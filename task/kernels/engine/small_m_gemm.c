/* SPDX-License-Identifier: Apache-2.0 */
#include "task/kernels/engine/small_m_gemm.h"

#include <string.h>

#include "lib/base/ints.h"
#include "task/kernels/engine/loops/loops.h"
#include "task/kernels/engine/scratch.h"

enum {
	TILES_MAX = 3,       /* of rows: 42 rows with AVX-512, 18 without */
	WORK_MIN = 1 << 20,  /* multiply-adds; gemm copies nothing for smaller products */
	K_BLOCK_BYTES = 4096 /* of a row of a */
};

bool small_m_gemm_supports(enum mu_dtype t, const struct product *p)
{
	return (t == MU_FLOAT || t == MU_DOUBLE) && !p->trans_b && p->m > 1 &&
	       p->m <= TILES_MAX * loops->tile[t].rows &&
	       (double)p->m * (double)p->n * (double)p->k >= WORK_MIN;
}

void small_m_gemm(enum mu_dtype type, const struct product *p, const void *a, const void *b,
		  void *c)
{
	static const int64_t one_run[1] = {0};
	const struct tile_loops *tile = &loops->tile[type];
	size_t size = mu_dtype_size(type);
	int64_t width = TILE_VECTORS * tile->lanes, block = K_BLOCK_BYTES / (int64_t)size;
	struct tile t = {.runs = one_run,
			 .n_runs = 1,
			 .a_row = p->trans_a ? 1 : p->a_line,
			 .a_k = p->trans_a ? p->a_line : 1,
			 .c_row = p->c_line};
	char *copy = scratch_get((size_t)(block * width) * size);

	for (int64_t k = 0; k < p->k; k += block)
		for (int64_t n = 0; n < p->n; n += width) {
			t.run = mu_min(block, p->k - k);
			t.add = p->add || k;
			t.columns = mu_min(width, p->n - n);
			t.b = (const char *)b + (size_t)(k * p->b_line + n) * size;
			t.b_k = p->b_line;
			if (t.columns < width) { /* a tile reads whole vectors */
				memset(copy, 0, (size_t)(t.run * width) * size);
				for (int64_t i = 0; i < t.run; i++)
					memcpy(copy + (size_t)(i * width) * size,
					       (const char *)t.b + (size_t)(i * p->b_line) * size,
					       (size_t)t.columns * size);
				t.b = copy;
				t.b_k = width;
			}
			t.a = (const char *)a + (size_t)(k * t.a_k) * size;
			t.c = (char *)c + (size_t)n * size;
			tile_rows(tile, size, t, p->m);
		}
}
