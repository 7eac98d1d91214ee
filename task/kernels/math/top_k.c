/* SPDX-License-Identifier: Apache-2.0 */
/* TopK, ApproxTopK and NthElement: the largest elements of each row.  NaN is below all numbers.
 * A heap finds k positions, a merge sort puts them in order. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/ints.h"
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/real_types.h"
#include "task/kernels/math/checks.h"

enum {
	ROWS_MIN_ELEMENTS = 1 << 14, /* of one piece of work */
	SORTED_RUN = 16,             /* elements sorted by insertion */
};

struct ranking {
	enum mu_dtype type;
	void *rows; /* of n elements; nth_element_rows reorders them */
	int64_t n, k;
	int32_t *best;          /* top_k_rows: k positions of each row */
	_Atomic bool no_memory; /* top_k_rows: to sort a row */
	void *out;              /* k elements of each row, or element k in descending order */
};

/* The heap holds positions, the one of the lowest rank first; of equal elements the last one. */
#define RANKING(T, ...)                                                                            \
	static inline bool above_##T(T x, T y)                                                     \
	{                                                                                          \
		return x > y || (y != y && x == x);                                                \
	}                                                                                          \
	static inline bool before_##T(const T *x, int32_t i, int32_t j)                            \
	{                                                                                          \
		return above_##T(x[i], x[j]) || (i < j && !above_##T(x[j], x[i]));                 \
	}                                                                                          \
	static void sift_down_##T(const T *x, int32_t *heap, int64_t n, int64_t at)                \
	{                                                                                          \
		const int32_t position = heap[at];                                                 \
		for (int64_t child; (child = 2 * at + 1) < n; at = child) {                        \
			child += child + 1 < n && before_##T(x, heap[child], heap[child + 1]);     \
			if (!before_##T(x, position, heap[child]))                                 \
				break;                                                             \
			heap[at] = heap[child];                                                    \
		}                                                                                  \
		heap[at] = position;                                                               \
	}                                                                                          \
	static void top_k_##T(const T *x, int64_t n, int32_t *heap, int64_t k)                     \
	{                                                                                          \
		for (int64_t i = 0; i < k; i++)                                                    \
			heap[i] = (int32_t)i;                                                      \
		for (int64_t i = k < n ? k / 2 : 0; i-- > 0;)                                      \
			sift_down_##T(x, heap, k, i);                                              \
		for (int64_t i = k; i < n; i++)                                                    \
			if (above_##T(x[i], x[heap[0]])) {                                         \
				heap[0] = (int32_t)i;                                              \
				sift_down_##T(x, heap, k, 0);                                      \
			}                                                                          \
	}                                                                                          \
	struct item_##T {                                                                          \
		T x;                                                                               \
		int32_t at;                                                                        \
	};                                                                                         \
	static inline bool item_before_##T(const struct item_##T *a, const struct item_##T *b)     \
	{                                                                                          \
		return above_##T(a->x, b->x) || (a->at < b->at && !above_##T(b->x, a->x));         \
	}                                                                                          \
	/* Sorts k positions in descending order: sorts runs by insertion and merges them without  \
	 * branches.  `items` has room for 2 * k. */                                               \
	static void sort_positions_##T(const T *x, int32_t *best, int64_t k,                       \
				       struct item_##T *items)                                     \
	{                                                                                          \
		struct item_##T *from = items, *to = items + k;                                    \
		for (int64_t i = 0; i < k; i++) {                                                  \
			struct item_##T item = {x[best[i]], best[i]};                              \
			int64_t j = i;                                                             \
			for (; j % SORTED_RUN && item_before_##T(&item, &from[j - 1]); j--)        \
				from[j] = from[j - 1];                                             \
			from[j] = item;                                                            \
		}                                                                                  \
		for (int64_t run = SORTED_RUN; run < k; run *= 2) {                                \
			for (int64_t i = 0; i < k; i += 2 * run) {                                 \
				int64_t a = i, a_end = mu_min(i + run, k), o = i;                  \
				int64_t b = a_end, b_end = mu_min(i + 2 * run, k);                 \
				while (a < a_end && b < b_end) {                                   \
					bool second = item_before_##T(&from[b], &from[a]);         \
					to[o++] = from[second ? b : a];                            \
					b += second;                                               \
					a += !second;                                              \
				}                                                                  \
				memcpy(&to[o], &from[a], (size_t)(a_end - a) * sizeof *to);        \
				o += a_end - a;                                                    \
				memcpy(&to[o], &from[b], (size_t)(b_end - b) * sizeof *to);        \
			}                                                                          \
			struct item_##T *sorted = to;                                              \
			to = from;                                                                 \
			from = sorted;                                                             \
		}                                                                                  \
		for (int64_t i = 0; i < k; i++)                                                    \
			best[i] = from[i].at;                                                      \
	}                                                                                          \
	/* Element k in descending order, by quickselect with pseudo-random pivots. */             \
	static T nth_element_##T(T *x, int64_t n, int64_t k)                                       \
	{                                                                                          \
		uint64_t random = 1;                                                               \
		for (int64_t low = 0, high = n - 1; low < high;) {                                 \
			random = random * 6364136223846793005u + 1442695040888963407u;             \
			T pivot = x[low + (int64_t)((random >> 32) % (uint64_t)(high - low + 1))]; \
			int64_t i = low, j = high;                                                 \
			while (i <= j) {                                                           \
				while (above_##T(x[i], pivot))                                     \
					i++;                                                       \
				while (above_##T(pivot, x[j]))                                     \
					j--;                                                       \
				if (i <= j) {                                                      \
					T y = x[i];                                                \
					x[i++] = x[j];                                             \
					x[j--] = y;                                                \
				}                                                                  \
			}                                                                          \
			if (k <= j)                                                                \
				high = j;                                                          \
			else if (k >= i)                                                           \
				low = i;                                                           \
			else                                                                       \
				break;                                                             \
		}                                                                                  \
		return x[k];                                                                       \
	}
REAL_TYPES(RANKING)

static void top_k_rows(void *arg, int64_t from, int64_t to)
{
	struct ranking *r = arg;

	switch ((int)r->type) {
#define TOP_K_CASE(T, dt, ...)                                                                     \
	case dt: {                                                                                 \
		MU_AUTO_FREE struct item_##T *items = malloc((size_t)r->k * 2 * sizeof *items);    \
		if (!items)                                                                        \
			atomic_store(&r->no_memory, true);                                         \
		for (int64_t i = from; i < to && items; i++) {                                     \
			const T *x = (const T *)r->rows + i * r->n;                                \
			int32_t *best = r->best + i * r->k;                                        \
			top_k_##T(x, r->n, best, r->k);                                            \
			sort_positions_##T(x, best, r->k, items);                                  \
			for (int64_t j = 0; j < r->k; j++)                                         \
				((T *)r->out)[i * r->k + j] = x[best[j]];                          \
		}                                                                                  \
		break;                                                                             \
	}
		REAL_TYPES(TOP_K_CASE)
	}
}

static void nth_element_rows(void *arg, int64_t from, int64_t to)
{
	const struct ranking *r = arg;

	switch ((int)r->type) {
#define NTH_CASE(T, dt, ...)                                                                       \
	case dt:                                                                                   \
		for (int64_t i = from; i < to; i++)                                                \
			((T *)r->out)[i] = nth_element_##T((T *)r->rows + i * r->n, r->n, r->k);   \
		break;
		REAL_TYPES(NTH_CASE)
	}
}

int check_top_k(const struct kernel_call *c, int64_t *k, struct mu_shape *shape, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	int64_t n, dim[MU_MAX_RANK];
	int rc = 0;

	if (c->n_in > 1)
		rc = args_int(c, 1, k, err);
	else
		*k = args_attr_int(c->node, "k", 0);
	if (rc)
		return rc;
	if (in->shape.rank < 1)
		return mu_invalid(err, "input must be >= 1-D, got shape %s",
				  mu_shape_str(&in->shape));
	n = in->shape.dim[in->shape.rank - 1];
	if (*k < 0)
		return mu_invalid(err, "Need k >= 0, got %lld", (long long)*k);
	if (n < *k)
		return mu_invalid(err, "input must have at least k columns. Had %lld, needed %lld",
				  (long long)n, (long long)*k);
	if (!mu_dtype_size(in->dtype) || !convert_supports(MU_DOUBLE, in->dtype) || n > INT32_MAX)
		return args_no_kernel(c, in->dtype, err);
	memcpy(dim, in->shape.dim, sizeof dim);
	dim[in->shape.rank - 1] = *k;
	return mu_shape_set(shape, in->shape.rank, dim, err);
}

static int top_k(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	const enum mu_dtype index_type = args_attr_type(c->node, "index_type", MU_INT32);
	struct mu_tensor *values, *at;
	struct mu_shape shape;
	int64_t k;

	MU_RETURN_IF_ERROR(check_top_k(c, &k, &shape, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, in->dtype, &shape, &values, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 1, index_type, &shape, &at, err));
	if (!at->shape.count)
		return 0;
	MU_AUTO_TENSOR positions = {0};
	if (index_type != MU_INT32)
		MU_RETURN_IF_ERROR(mu_tensor_new(&positions, MU_INT32, &shape, err));
	struct ranking r = {.type = in->dtype,
			    .rows = in->data,
			    .n = in->shape.dim[in->shape.rank - 1],
			    .k = k,
			    .best = index_type == MU_INT32 ? at->data : positions.data,
			    .out = values->data};
	kernel_parallel(c, in->shape.count / r.n, 1 + ROWS_MIN_ELEMENTS / r.n, top_k_rows, &r);
	if (r.no_memory)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "out of memory for sorting rows");
	if (index_type != MU_INT32)
		convert(index_type, at->data, MU_INT32, positions.data, at->shape.count);
	return 0;
}

/* Exact, as in TensorFlow on a CPU, which has no kernel for other attributes either. */
static int approx_top_k(struct kernel_call *c, struct mu_err *err)
{
	if (!args_attr_bool(c->node, "is_max_k", true) ||
	    args_attr_int(c->node, "reduction_dimension", -1) != -1)
		return args_no_kernel(c, kernel_in(c, 0)->dtype, err);
	return top_k(c, err);
}

/* Element n of each row in ascending order; in descending order if `reverse`. */
static int nth_element(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	bool reverse = args_attr_bool(c->node, "reverse", false);
	struct mu_shape shape = in->shape;
	MU_AUTO_TENSOR work = {0};
	struct mu_tensor *out;
	int64_t k;

	MU_RETURN_IF_ERROR(args_int(c, 1, &k, err));
	int64_t n = shape.rank ? shape.dim[shape.rank - 1] : 0;
	if (k < 0 || k >= n)
		return mu_invalid(err,
				  "Input must be at least 1-D and n in [0, %lld), but got %lld",
				  (long long)n, (long long)k);
	if (!mu_dtype_size(in->dtype) || !convert_supports(MU_DOUBLE, in->dtype) || n > INT32_MAX)
		return args_no_kernel(c, in->dtype, err);
	MU_RETURN_IF_ERROR(mu_shape_set(&shape, shape.rank - 1, in->shape.dim, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, in->dtype, &shape, &out, err));
	MU_RETURN_IF_ERROR(mu_tensor_new(&work, in->dtype, &in->shape, err));
	if (!shape.count)
		return 0;
	memcpy(work.data, in->data, (size_t)in->shape.count * mu_dtype_size(in->dtype));
	struct ranking r = {.type = in->dtype,
			    .n = n,
			    .k = reverse ? k : n - 1 - k,
			    .rows = work.data,
			    .out = out->data};
	kernel_parallel(c, shape.count, 1 + ROWS_MIN_ELEMENTS / n, nth_element_rows, &r);
	return 0;
}

static const struct kernel rows[] = {
    {"TopK TopKV2", KERNEL_EXPENSIVE, .run = top_k},
    {"ApproxTopK", KERNEL_EXPENSIVE, .run = approx_top_k},
    {"NthElement", KERNEL_EXPENSIVE, .run = nth_element},
};
KERNEL_TABLE(math_top_k, rows)
