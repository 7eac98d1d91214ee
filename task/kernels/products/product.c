/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products of reals, tile by tile, and plain loops for integers.
 *
 * k is taken in as few blocks as DEEP_BYTES allow, of equal size.  Of each block the right side is
 * copied into strips as wide as a tile, so that the inner loop reads it in one line (it stays in
 * the second-level cache or behind it); the left side is read where it lies, unless its rows fall
 * onto each other in the first-level cache, or it is stored by columns.  The result's tiles are
 * summed up block by block, in the order of k: neither the tiles nor the threads change a bit of
 * it. */
#include "task/kernels/products/product.h"

#include <string.h>

#include "task/kernels/loops/loops.h"
#include "task/kernels/products/pack.h"
#include "task/kernels/scratch.h"
#include "task/runtime/kernel.h"
#include "task/runtime/runtime.h"
#include "task/runtime/thread_pool.h"

enum {
	DEEP_BYTES = 4096,    /* of k in a block, at most: each more goes over all of c once more */
	WIDE = 2048,          /* columns whose strips are kept at a time: 8 MB */
	FEW_ROWS = 3,         /* at most, of … */
	LONG_ROWS = 64,       /* … at least: then b is read where it lies, row after row: */
	SHALLOW = 8,          /* … of k at a time */
	TALL = 112,           /* rows that go through all strips together: eight tiles, … */
	TALL_MANY = 28,       /* … two if there are many strips: 110 KB, and c's lines are near */
	ALIAS_BYTES = 4096,   /* a way of the first-level cache: rows so far apart share one set */
	MANY_STRIPS = 6,      /* worth copying columns of the left side for */
	FEW_LINES = 32,       /* of k at a time, of columns */
	TILES_DIRECT = 3,     /* tiles, at most, for which the right side is not copied either */
	EVEN = 4,             /* tiles or strips of a piece: one more or less is little */
	PIECE_WORK = 2 << 20, /* multiply-adds worth another thread: 30 us */
};

/* Strides count elements: a's element (i, l) is at a + i * a_m + l * a_k. */
struct real {
	const struct tile_loops *tile;
	size_t size; /* of an element */
	int64_t m, n, k;
	int64_t a_m, a_k, b_k, b_n, c_m;
	const char *a, *b;
	char *c;
	bool add, minus;
};

/* A part of the result, and the block of k that is being added to it. */
struct part {
	int64_t m0, m1, n0, n1, k0, deep;
};

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t strip_width(const struct real *r)
{
	return TILE_VECTORS * r->tile->lanes;
}

static int64_t strips_of(const struct real *r, const struct part *p)
{
	return (p->n1 - p->n0 + strip_width(r) - 1) / strip_width(r);
}

/* Rows that the first-level cache cannot hold together, and columns that are wanted often.  Other
 * rows are as fast where they lie, and copying them costs a fortieth of the product. */
static bool copies_left(const struct real *r, const struct part *p)
{
	int64_t strips = strips_of(r, p);
	size_t step = (size_t)(r->a_k == 1 ? r->a_m : r->a_k) * r->size;

	if (r->a_k == 1)
		return step % ALIAS_BYTES == 0;
	return strips >= MANY_STRIPS || (strips > 1 && step > 512);
}

static bool copies_right(const struct real *r, const struct part *p)
{
	return r->b_n != 1 || p->m1 - p->m0 > TILES_DIRECT * r->tile->rows;
}

/* ---- a block ---- */

struct strip {
	const char *b;
	int64_t b_k;
};

/* Strip of the columns from `at`: a copy in `to`, or where it lies. */
static struct strip strip_at(const struct real *r, const struct part *p, bool copy, int64_t at,
			     int64_t n, char *to)
{
	const char *b = r->b + (size_t)(p->k0 * r->b_k + at * r->b_n) * r->size;
	int64_t width = n <= r->tile->lanes ? r->tile->lanes : strip_width(r);

	if (!copy && n == width)
		return (struct strip){b, r->b_k};
	pack_right(r->size, to, b, p->deep, n, width, r->b_k, r->b_n);
	return (struct strip){to, width};
}

/* The tiles of rows [m0, m1), one behind the other.  Where neighbours in m lie side by side all
 * tiles take their part of a few lines of k before the next are touched. */
static void copy_left(const struct real *r, const struct part *p, int64_t m0, int64_t m1,
		      int64_t tiles, char *to)
{
	int64_t step = r->a_m == 1 ? FEW_LINES : p->deep;

	for (int64_t k = 0; k < p->deep; k += step)
		for (int64_t i = 0; i < tiles; i++) {
			int64_t at = (m1 - m0) * i / tiles, rows = (m1 - m0) * (i + 1) / tiles - at;
			const char *a =
			    r->a + (size_t)((m0 + at) * r->a_m + (p->k0 + k) * r->a_k) * r->size;
			pack_left(r->size, to + (size_t)(at * p->deep + k * rows) * r->size, a,
				  rows, least(step, p->deep - k), r->a_m, r->a_k);
		}
}

/* The tiles of rows [m0, m1), all strips: those at `strips`, columns from p->n0. */
static void run_rows(const struct real *r, const struct part *p, const struct strip *strips,
		     int64_t m0, int64_t m1, char *left)
{
	static const int64_t one_run[1] = {0};
	int64_t tiles = (m1 - m0 + r->tile->rows - 1) / r->tile->rows, width = strip_width(r);

	if (left)
		copy_left(r, p, m0, m1, tiles, left);
	for (int64_t n = p->n0; n < p->n1; n += width, strips++) {
		struct tile t = {.runs = one_run,
				 .n_runs = 1,
				 .run = p->deep,
				 .b = strips->b,
				 .b_k = strips->b_k,
				 .c_row = r->c_m,
				 .columns = least(width, p->n1 - n),
				 .add = r->add || p->k0,
				 .minus = r->minus};
		for (int64_t i = 0; i < tiles; i++) {
			int64_t at = (m1 - m0) * i / tiles, rows = (m1 - m0) * (i + 1) / tiles - at;
			t.a = left ? left + (size_t)(at * p->deep) * r->size
				   : r->a + (size_t)((m0 + at) * r->a_m + p->k0 * r->a_k) * r->size;
			t.a_row = left ? 1 : r->a_m;
			t.a_k = left ? rows : r->a_k;
			t.c = r->c + (size_t)((m0 + at) * r->c_m + n) * r->size;
			r->tile->run[t.columns > r->tile->lanes][rows - 1](&t);
		}
	}
}

static void run_block(const struct real *r, const struct part *p)
{
	struct strip strips[WIDE / 4];
	bool left = copies_left(r, p), copy = copies_right(r, p);
	int64_t width = strip_width(r), tall;
	size_t strip_bytes = (size_t)(p->deep * width) * r->size;
	size_t n_strips = (size_t)strips_of(r, p);

	tall = (n_strips < MANY_STRIPS ? TALL : TALL_MANY) / r->tile->rows * r->tile->rows;
	size_t left_bytes = left ? ((size_t)(tall * p->deep) * r->size + 63) & ~(size_t)63 : 0;
	char *memory = scratch_get(strip_bytes * (copy ? n_strips : 1) + left_bytes), *to = memory;

	to += left_bytes;
	for (size_t i = 0; i < n_strips; i++) {
		int64_t n = p->n0 + (int64_t)i * width;
		strips[i] = strip_at(r, p, copy, n, least(width, p->n1 - n), to);
		to += copy ? strip_bytes : 0;
	}
	for (int64_t m = p->m0; m < p->m1; m += tall)
		run_rows(r, p, strips, m, least(m + tall, p->m1), left ? memory : NULL);
}

/* Asked of the whole result, so that its parts are summed alike. */
static bool is_flat(const struct real *r)
{
	return r->m <= FEW_ROWS && r->n >= LONG_ROWS && r->b_n == 1;
}

/* One pass over b, whatever the rows. */
static void run_flat(const struct real *r, int64_t m0, int64_t m1, int64_t n0, int64_t n1)
{
	const int64_t deep = m1 - m0 > 1 ? SHALLOW : r->k;

	for (int64_t k = 0; k < r->k; k += deep)
		for (int64_t m = m0; m < m1; m++) {
			struct tile t = {
			    .a = r->a + (size_t)(m * r->a_m + k * r->a_k) * r->size,
			    .b = r->b + (size_t)(k * r->b_k + n0) * r->size,
			    .c = r->c + (size_t)(m * r->c_m + n0) * r->size,
			    .run = least(deep, r->k - k),
			    .a_k = r->a_k,
			    .b_k = r->b_k,
			    .columns = n1 - n0,
			    .add = r->add || k,
			    .minus = r->minus,
			};
			r->tile->row(&t);
		}
}

static void run_part(const struct real *r, int64_t m0, int64_t m1, int64_t n0, int64_t n1)
{
	/* Equal: each block reads and writes the whole result, a thin last one for next to nothing.
	 */
	int64_t most = DEEP_BYTES / (int64_t)r->size, blocks = (r->k + most - 1) / most, k = 0;

	if (is_flat(r)) {
		run_flat(r, m0, m1, n0, n1);
		return;
	}
	for (int64_t i = 1; i <= blocks; i++) {
		int64_t deep = r->k * i / blocks - k;
		for (int64_t n = n0; n < n1; n += WIDE) {
			struct part p = {m0, m1, n, least(n + WIDE, n1), k, deep};
			run_block(r, &p);
		}
		k += deep;
	}
}

/* ---- integers, and what has no tiles ---- */

#define PLAIN_PRODUCT(T)                                                                           \
	static void product_##T(const struct product *p, const struct real *s)                     \
	{                                                                                          \
		const T *a = (const void *)s->a, *b = (const void *)s->b;                          \
		T *c = (void *)s->c;                                                               \
		for (int64_t i = 0; i < p->m; i++) {                                               \
			T *row = c + i * s->c_m;                                                   \
			for (int64_t j = 0; j < p->n && !s->add; j++)                              \
				row[j] = 0;                                                        \
			for (int64_t l = 0; l < p->k; l++) {                                       \
				T x = a[i * s->a_m + l * s->a_k];                                  \
				x = s->minus ? -x : x;                                             \
				if (!p->trans_b)                                                   \
					for (int64_t j = 0; j < p->n; j++)                         \
						row[j] += x * b[l * s->b_k + j];                   \
				else                                                               \
					for (int64_t j = 0; j < p->n; j++)                         \
						row[j] += x * b[j * s->b_n + l];                   \
			}                                                                          \
		}                                                                                  \
	}
PLAIN_PRODUCT(uint32_t)
PLAIN_PRODUCT(uint64_t)

bool product_known(enum mu_dtype t)
{
	return t == MU_FLOAT || t == MU_DOUBLE || t == MU_INT32 || t == MU_INT64;
}

/* ---- the whole ---- */

struct spread {
	struct real real;
	const struct product *p;
	enum mu_dtype type;
	int64_t pieces;
};

static struct spread spread_of(enum mu_dtype t, const struct product *p, const void *a,
			       const void *b, void *c)
{
	int64_t a_line = p->a_line ? p->a_line : p->trans_a ? p->m : p->k;
	int64_t b_line = p->b_line ? p->b_line : p->trans_b ? p->k : p->n;

	return (struct spread){
	    .p = p,
	    .type = t,
	    .pieces = 1,
	    .real = {.tile = &loops->tile[t],
		     .size = mu_dtype_size(t),
		     .m = p->m,
		     .n = p->n,
		     .k = p->k,
		     .a_m = p->trans_a ? 1 : a_line,
		     .a_k = p->trans_a ? a_line : 1,
		     .b_k = p->trans_b ? 1 : b_line,
		     .b_n = p->trans_b ? b_line : 1,
		     .c_m = p->c_line ? p->c_line : p->n,
		     .a = a,
		     .b = b,
		     .c = c,
		     .add = p->add || p->minus,
		     .minus = p->minus},
	};
}

static int64_t units_of(const struct real *r, bool along_m)
{
	int64_t unit = along_m ? r->tile->rows : strip_width(r), all = along_m ? r->m : r->n;

	return (all + unit - 1) / unit;
}

/* Pieces of rows each copy the whole right side, pieces of columns read the whole left side again
 * or copy it; reading costs about a quarter of copying.  But only a side with enough tiles or
 * strips makes pieces of one size: else the longer one is cut. */
static bool cut_along_m(const struct real *r, int64_t pieces)
{
	const struct part all = {.m1 = r->m, .n1 = r->n, .deep = r->k};
	int64_t right = copies_right(r, &all) ? 4 * r->n : r->n;
	int64_t left = copies_left(r, &all) ? 4 * r->m : r->m;
	bool along_m = left > right;

	return units_of(r, along_m) >= EVEN * pieces ? along_m : r->m >= r->n;
}

/* Cut at whole tiles or strips. */
static void run_pieces(void *arg, int64_t from, int64_t to)
{
	const struct spread *s = arg;
	const struct real *r = &s->real;
	bool along_m = cut_along_m(r, s->pieces);
	int64_t unit = along_m ? r->tile->rows : strip_width(r), all = along_m ? r->m : r->n;
	int64_t units = units_of(r, along_m);
	int64_t first = units * from / s->pieces * unit, last = units * to / s->pieces * unit;

	last = least(last, all);
	if (first >= last)
		return;
	if (along_m)
		run_part(r, first, last, 0, r->n);
	else
		run_part(r, 0, r->m, first, last);
}

static void run_all(struct kernel_call *call, struct spread *s)
{
	const struct real *r = &s->real;

	if (s->type == MU_INT32) { /* unsigned, so that overflow wraps */
		product_uint32_t(s->p, r);
	} else if (s->type == MU_INT64) {
		product_uint64_t(s->p, r);
	} else if (!r->k || !r->m || !r->n) {
		for (int64_t i = 0; i < r->m && !r->add; i++)
			memset(r->c + (size_t)(i * r->c_m) * r->size, 0, (size_t)r->n * r->size);
	} else if (s->pieces > 1) {
		kernel_parallel(call, s->pieces, 1, run_pieces, s);
	} else {
		run_pieces(s, 0, 1);
	}
}

void product(enum mu_dtype t, const struct product *p, const void *a, const void *b, void *c)
{
	struct spread s = spread_of(t, p, a, b, c);

	run_all(NULL, &s);
}

void product_spread(struct kernel_call *call, enum mu_dtype t, const struct product *p,
		    const void *a, const void *b, void *c)
{
	struct spread s = spread_of(t, p, a, b, c);
	double work = (double)p->m * (double)p->n * (double)p->k / PIECE_WORK;
	int64_t threads = call->runtime ? thread_pool_size(call->runtime->pool) : 1;

	s.pieces = work < 2 ? 1 : work < (double)threads ? (int64_t)work : threads;
	run_all(call, &s);
}
