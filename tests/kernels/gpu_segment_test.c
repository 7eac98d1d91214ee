/* SPDX-License-Identifier: Apache-2.0 */
/* Segment reductions on the GPU compared with the CPU kernels. */
#include <stdio.h>

#include "tests/kernels/gpu_compare.h"

static const enum mu_dtype types[] = {MU_FLOAT, MU_DOUBLE, MU_HALF, MU_BFLOAT16};
enum { ROWS = 7, PICKS = 9 };

static void drop(struct mu_tensor *t, unsigned n)
{
	while (n--)
		mu_tensor_unref(&t[n]);
}

static struct mu_tensor table(enum mu_dtype t, int64_t rows, int64_t columns, unsigned seed)
{
	struct mu_shape s = dims_of(3, (int64_t[]){rows, columns, 2});

	return filled(t, &s, -1, 2, seed);
}

static double slack_of(enum mu_dtype t)
{
	return mu_dtype_size(t) == 2 ? 12 : 20;
}

/* Empty segments, a segment of several rows, and the last segment. */
static void segments__by_every_op__match_the_cpu(void **state)
{
	static const char *const ops[] = {"SegmentSum", "SegmentProd", "SegmentMax", "SegmentMin",
					  "SegmentMean"};
	static const int64_t ids[][ROWS] = {{0, 0, 2, 2, 2, 5, 6},
					    {1, 1, 1, 1, 1, 1, 1},
					    {0, 1, 2, 3, 4, 5, 6},
					    {0, 2, 1, 3, 4, 5, 6},
					    {-1, 0, 0, 1, 1, 1, 1}};

	for (unsigned o = 0; o < MU_COUNT(ops); o++)
		for (unsigned k = 0; k < 8 * MU_COUNT(ids); k++) {
			enum mu_dtype t = types[k & 3], number = k & 4 ? MU_INT64 : MU_INT32;
			const struct attr attrs[] = {{"T", A_TYPE, (long)t, NULL},
						     {"Tindices", A_TYPE, (long)number, NULL},
						     {0}};
			struct mu_tensor in[2] = {table(t, ROWS, 3, k),
						  ints(number, ROWS, ids[k / 8])};
			compare(ops[o], attrs, in, 2, slack_of(t));
			drop(in, 2);
		}
}

static const struct picks {
	int64_t rows[PICKS], ids[PICKS], n;
} picks[] = {
    {{0, 3, 3, 6, 1, 1, 1, 0, 5}, {0, 0, 0, 2, 2, 3, 3, 3, 3}, 6},
    {{6, 5, 4, 3, 2, 1, 0, 6, 6}, {0, 1, 2, 3, 4, 5, 6, 6, 6}, 7},
    {{2, 2, 2, 2, 2, 2, 2, 2, 2}, {4, 4, 4, 4, 4, 4, 4, 4, 4}, 5},
    {{2, 2, 2, 2, 7, 2, 2, 2, 2}, {4, 4, 4, 4, 4, 4, 4, 4, 4}, 5}, /* there is no row 7 */
    {{2, 2, 2, 2, 2, 2, 2, 2, 2}, {4, 4, 4, 3, 4, 4, 4, 4, 4}, 5}, /* not sorted */
    {{2, 2, 2, 2, 2, 2, 2, 2, 2}, {4, 4, 4, 4, 4, 4, 4, 4, 9}, 5}, /* segment id out of range */
};

/* ending: "Sum", "Mean" or "SqrtN" */
static void compare_sparse(const char *ending, const struct picks *p, enum mu_dtype t,
			   enum mu_dtype number, int64_t columns)
{
	const struct attr attrs[] = {{"T", A_TYPE, (long)t, NULL},
				     {"Tidx", A_TYPE, (long)number, NULL},
				     {"Tsegmentids", A_TYPE, (long)number, NULL},
				     {"Tnumsegments", A_TYPE, MU_INT32, NULL},
				     {0}};
	const int64_t n = p->n, rows = ROWS;
	struct mu_tensor in[4] = {table(t, ROWS, columns, 1), ints(number, PICKS, p->rows),
				  ints(number, PICKS, p->ids), ints(MU_INT32, -1, &n)};
	struct mu_tensor back[4] = {table(t, n, columns, 2), in[1], in[2],
				    ints(MU_INT32, -1, &rows)};
	char op[48];

	snprintf(op, sizeof op, "SparseSegment%s", ending);
	compare(op, attrs, in, 3, slack_of(t));
	if (strcmp(ending, "SqrtN") != 0) {
		snprintf(op, sizeof op, "SparseSegment%sWithNumSegments", ending);
		compare(op, attrs, in, 4, slack_of(t));
	}
	snprintf(op, sizeof op, "SparseSegment%sGrad", ending);
	compare(op, attrs, back, 4, slack_of(t));
	snprintf(op, sizeof op, "SparseSegment%sGradV2", ending);
	compare(op, attrs, back, 4, slack_of(t));
	drop(in, 4);
	drop(back, 1);
	drop(back + 3, 1);
}

static void sparse_segments__by_every_op__match_the_cpu(void **state)
{
	static const char *const endings[] = {"Sum", "Mean", "SqrtN"};

	for (unsigned e = 0; e < MU_COUNT(endings); e++)
		for (unsigned i = 0; i < MU_COUNT(picks); i++)
			for (unsigned k = 0; k < 8; k++)
				compare_sparse(endings[e], &picks[i], types[k & 3],
					       k & 4 ? MU_INT64 : MU_INT32, k == 7 ? 0 : 1 + k);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
	    T(segments__by_every_op__match_the_cpu),
	    T(sparse_segments__by_every_op__match_the_cpu),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
