/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products: by OpenBLAS, by small_m_gemm.c where that is faster, by plain loops for
 * integers. */
#include "task/kernels/engine/product.h"

#include <limits.h>
#include <string.h>

#include "task/kernels/engine/blas.h"
#include "task/kernels/engine/broadcast.h"
#include "task/kernels/engine/small_m_gemm.h"
#include "task/runtime/kernel.h"
#include "task/runtime/runtime.h"
#include "task/runtime/thread_pool.h"

enum { PIECE_WORK = 2 << 20 /* multiply-adds worth another thread: 40 us */ };

static bool is_integer(enum mu_dtype t)
{
	return t == MU_INT16 || t == MU_INT32 || t == MU_INT64;
}

int product_check(const char *op, enum mu_dtype t, const struct product *p, struct mu_err *err)
{
	bool is_supported = is_integer(t) || t == MU_FLOAT || t == MU_DOUBLE || t == MU_COMPLEX64 ||
			    t == MU_COMPLEX128;

	if (!is_supported)
		return mu_fail(err, MU_UNIMPLEMENTED, "%s has no kernel for type %s", op,
			       mu_dtype_name(t));
	if (p->m > INT_MAX || p->n > INT_MAX || p->k > INT_MAX)
		return mu_invalid(err,
				  "%s: a matrix product of %lld x %lld by %lld x %lld is too "
				  "large: no dimension may exceed %d",
				  op, (long long)p->m, (long long)p->k, (long long)p->k,
				  (long long)p->n, INT_MAX);
	return 0;
}

/* ---- integers: unsigned, so that overflow wraps; W is T or wider, and not promoted to int ---- */

#define INTEGER_PRODUCT(T, W)                                                                      \
	static void product_##T(const struct product *p, const T *a, const T *b, T *c)             \
	{                                                                                          \
		int64_t a_m = p->trans_a ? 1 : p->a_line, a_k = p->trans_a ? p->a_line : 1;        \
		for (int64_t i = 0; i < p->m; i++) {                                               \
			T *row = c + i * p->c_line;                                                \
			for (int64_t j = 0; j < p->n && !p->add; j++)                              \
				row[j] = 0;                                                        \
			for (int64_t l = 0; l < p->k; l++) {                                       \
				W x = a[i * a_m + l * a_k];                                        \
				if (!p->trans_b)                                                   \
					for (int64_t j = 0; j < p->n; j++)                         \
						row[j] = (T)(row[j] + x * b[l * p->b_line + j]);   \
				else                                                               \
					for (int64_t j = 0; j < p->n; j++)                         \
						row[j] = (T)(row[j] + x * b[j * p->b_line + l]);   \
			}                                                                          \
		}                                                                                  \
	}
INTEGER_PRODUCT(uint16_t, uint32_t)
INTEGER_PRODUCT(uint32_t, uint32_t)
INTEGER_PRODUCT(uint64_t, uint64_t)

/* ---- one piece ---- */

static void run_piece(enum mu_dtype t, const struct product *p, const void *a, const void *b,
		      void *c)
{
	if (t == MU_INT16) {
		product_uint16_t(p, a, b, c);
	} else if (t == MU_INT32) {
		product_uint32_t(p, a, b, c);
	} else if (t == MU_INT64) {
		product_uint64_t(p, a, b, c);
	} else if (!p->k || !p->n) {
		size_t size = mu_dtype_size(t);
		for (int64_t i = 0; i < p->m && !p->add; i++)
			memset((char *)c + (size_t)(i * p->c_line) * size, 0, (size_t)p->n * size);
	} else if (small_m_gemm_supports(t, p)) {
		small_m_gemm(t, p, a, b, c);
	} else if (p->m) {
		blas_product(t, p, a, b, c);
	}
}

static struct product with_default_lines(const struct product *p)
{
	struct product q = *p;

	q.a_line = p->a_line ? p->a_line : p->trans_a ? p->m : p->k;
	q.b_line = p->b_line ? p->b_line : p->trans_b ? p->k : p->n;
	q.c_line = p->c_line ? p->c_line : p->n;
	return q;
}

void product(enum mu_dtype t, const struct product *p, const void *a, const void *b, void *c)
{
	struct product q = with_default_lines(p);

	run_piece(t, &q, a, b, c);
}

/* ---- pieces: a grid over the result ---- */

struct grid {
	struct product p;
	enum mu_dtype type;
	const char *a, *b;
	char *c;
	int64_t rows, columns;
};

static void product_run_pieces(void *arg, int64_t from, int64_t to)
{
	const struct grid *g = arg;
	size_t size = mu_dtype_size(g->type);

	for (int64_t i = from; i < to; i++) {
		int64_t row = i / g->columns, column = i % g->columns;
		int64_t m = g->p.m * row / g->rows, n = g->p.n * column / g->columns;
		struct product p = g->p;

		p.m = g->p.m * (row + 1) / g->rows - m;
		p.n = g->p.n * (column + 1) / g->columns - n;
		run_piece(g->type, &p, g->a + (size_t)(p.trans_a ? m : m * p.a_line) * size,
			  g->b + (size_t)(p.trans_b ? n * p.b_line : n) * size,
			  g->c + (size_t)(m * p.c_line + n) * size);
	}
}

/* Chooses the grid of `pieces` pieces with the shortest sides, because they read the least. */
static void product_cut(struct grid *g, int64_t pieces)
{
	double best = 0;

	for (int64_t rows = 1; rows <= pieces; rows++) {
		int64_t columns = pieces / rows;
		double side = (double)g->p.m / (double)rows + (double)g->p.n / (double)columns;
		if (rows * columns != pieces || (best && side >= best))
			continue;
		best = side;
		g->rows = rows;
		g->columns = columns;
	}
}

void product_in_parallel(struct kernel_call *call, enum mu_dtype t, const struct product *p,
			 const void *a, const void *b, void *c)
{
	struct grid g = {with_default_lines(p), t, a, b, c, 1, 1};
	double work = (double)p->m * (double)p->n * (double)p->k / PIECE_WORK;
	int64_t threads = call->runtime ? thread_pool_size(call->runtime->pool) : 1;

	product_cut(&g, work < 2 ? 1 : work < (double)threads ? (int64_t)work : threads);
	if (g.rows * g.columns > 1)
		kernel_parallel(call, g.rows * g.columns, 1, product_run_pieces, &g);
	else
		run_piece(t, &g.p, a, b, c);
}

/* ---- batches ---- */

struct batch {
	const struct product *p;
	enum mu_dtype type;
	const struct view *a_view, *b_view;
	const char *a, *b;
	char *c;
	struct kernel_call *call; /* NULL: in the calling thread */
};

static void run_batch(void *arg, int64_t from, int64_t to)
{
	const struct batch *w = arg;
	const struct product *p = w->p;
	const size_t size = mu_dtype_size(w->type);

	for (int64_t i = from; i < to; i++) {
		int64_t at_a = w->a_view ? broadcast_offset(w->a_view, i) : i;
		int64_t at_b = w->b_view ? broadcast_offset(w->b_view, i) : i;
		const char *a = w->a + (size_t)(at_a * p->m * p->k) * size;
		const char *b = w->b + (size_t)(at_b * p->k * p->n) * size;
		char *c = w->c + (size_t)(i * p->m * p->n) * size;
		if (w->call)
			product_in_parallel(w->call, w->type, p, a, b, c);
		else
			product(w->type, p, a, b, c);
	}
}

void product_batch_in_parallel(struct kernel_call *call, enum mu_dtype t, const struct product *p,
			       int64_t n, const struct view *a_view, const struct view *b_view,
			       const void *a, const void *b, void *c)
{
	struct batch w = {p, t, a_view, b_view, a, b, c, NULL};
	double work = (double)p->m * (double)p->n * (double)p->k / PIECE_WORK;
	int64_t threads = call->runtime ? thread_pool_size(call->runtime->pool) : 1;

	if (work < (double)threads) {
		kernel_parallel(call, n, work < 1 ? 1 + (int64_t)(1 / (work + 1e-6)) : 1, run_batch,
				&w);
		return;
	}
	w.call = call;
	run_batch(&w, 0, n);
}
