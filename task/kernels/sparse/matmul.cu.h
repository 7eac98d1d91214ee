/* SPDX-License-Identifier: Apache-2.0 */
/* The product of a sparse and a dense matrix.  Entries are sorted by output row.  One thread
 * computes each output element and adds its entries in input order. */
#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/cuda/index.h"
#include "task/kernels/engine/cuda/math.h"

/* An entry outside the matrix gets the key -1 and is ignored. */
KERNEL(sparse_keys, sparse_product_args)
{
	EACH(k, a.by.n)
	{
		const int64_t i = index_at(a.indices, 2 * k + a.flip, a.wide);
		const int64_t j = index_at(a.indices, 2 * k + !a.flip, a.wide);
		const int inside = i >= 0 && i < a.rows && j >= 0 && j < a.inner;
		PTR(int64_t, a.by.keys)[k] = inside ? i : -1;
		PTR(int64_t, a.by.order)[k] = k;
	}
}

#define SPARSE_PRODUCT_KERNEL(t)                                                                   \
	KERNEL(sparse_product_##t, sparse_product_args)                                            \
	{                                                                                          \
		EACH(i, a.by.n *a.by.row)                                                          \
		{                                                                                  \
			int64_t s = index_div(i, a.by.row), x = i - s * a.by.row;                  \
			const int64_t key = first_update_of_row(&a.by, s);                         \
			if (key < 0)                                                               \
				continue;                                                          \
			C(t) sum = 0;                                                              \
			for (; updates_row(&a.by, s, key); s++) {                                  \
				const int64_t k = update_position(&a.by, s);                       \
				const int64_t j = index_at(a.indices, 2 * k + !a.flip, a.wide);    \
				sum +=                                                             \
				    GET(t, a.values, k) * GET(t, a.b, j * a.b_row + x * a.b_col);  \
			}                                                                          \
			PUT(t, a.out, key *a.by.row + x, sum);                                     \
		}                                                                                  \
	}
SPARSE_PRODUCT_KERNEL(f32)
SPARSE_PRODUCT_KERNEL(f64)
