/* SPDX-License-Identifier: Apache-2.0 */
/* CTC decoders, and EditDistance between sequences. */
#include <math.h>
#include <string.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/rnn/ctc.h"
#include "task/kernels/sparse/sparse.h"

/* ---- CTCGreedyDecoder: the best class of each time step ---- */

struct scores {
	struct ctc_scores s;
	int64_t blank;
	bool merge;
};

static int read_scores(const struct kernel_call *c, struct scores *g, struct mu_err *err)
{
	int64_t blank = args_attr_int(c->node, "blank_index", -1);

	MU_RETURN_IF_ERROR(ctc_scores_in(c, 1, MU_FAILED_PRECONDITION, &g->s, err));
	g->blank = blank < 0 ? blank + g->s.classes : blank;
	g->merge = args_attr_bool(c->node, "merge_repeated", false);
	if (g->blank < 0 || g->blank >= g->s.classes)
		return mu_invalid(err, "blank_index %lld is not one of the %lld classes",
				  (long long)blank, (long long)g->s.classes);
	return 0;
}

/* Returns the largest score of a row; *class is the first class with it. */
static double best_class(const struct ctc_scores *s, int64_t t, int64_t b, int64_t *class)
{
	size_t size = mu_dtype_size(s->in->dtype);
	double max_score = 0;

	for (int64_t k = 0; k < s->classes; k++) {
		int64_t at = (t * s->batch + b) * s->classes + k;
		double v;
		convert(MU_DOUBLE, &v, s->in->dtype, (char *)s->in->data + (size_t)at * size, 1);
		if (!k || v > max_score) {
			max_score = v;
			*class = k;
		}
	}
	return max_score;
}

/* Writes sequence b to `to` and returns its length. */
static int64_t decode_row(const struct scores *g, int64_t b, int64_t n, int64_t *to, double *score)
{
	int64_t class = 0, previous = -1, n_kept = 0;

	*score = 0;
	for (int64_t t = 0; t < n; t++, previous = class) {
		*score -= best_class(&g->s, t, b, &class);
		if (class != g->blank && !(g->merge && class == previous))
			to[n_kept++] = class;
	}
	return n_kept;
}

static int greedy(struct kernel_call *c, struct mu_err *err)
{
	int64_t longest = 0, total = 0, k = 0, *at;
	struct mu_tensor *values, *scores;
	struct mu_shape shape, column;
	struct scores g;
	int rc = read_scores(c, &g, err);
	struct ctc_scores s = g.s;

	if (rc || (rc = mu_shape_set(&shape, 2, (int64_t[]){s.batch, s.time}, err)) ||
	    (rc = mu_shape_set(&column, 2, (int64_t[]){s.batch, 1}, err)) ||
	    (rc = kernel_out(c, 3, s.in->dtype, &column, &scores, err)))
		return rc;
	MU_AUTO_FREE int64_t *labels = calloc((size_t)shape.count + 1, sizeof *labels);
	MU_AUTO_FREE int64_t *n = calloc((size_t)s.batch + 1, sizeof *n);
	if (!labels || !n)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for sequences of %s",
			       mu_shape_str(&shape));
	for (int64_t b = 0; b < s.batch; b++) {
		double score;
		n[b] = decode_row(&g, b, s.length[b], labels + b * s.time, &score);
		convert(s.in->dtype, (char *)scores->data + (size_t)b * mu_dtype_size(s.in->dtype),
			MU_DOUBLE, &score, 1);
		total += n[b];
		longest = n[b] > longest ? n[b] : longest;
	}
	MU_RETURN_IF_ERROR(mu_shape_set(&shape, 2, (int64_t[]){s.batch, longest}, err));
	MU_RETURN_IF_ERROR(
	    sparse_out(c, (unsigned[]){0, 1, 2}, total, &shape, MU_INT64, &at, &values, err));
	for (int64_t b = 0; b < s.batch; b++)
		for (int64_t i = 0; i < n[b]; i++, k++) {
			at[2 * k] = b;
			at[2 * k + 1] = i;
			MU_DATA(int64_t, values)[k] = labels[b * s.time + i];
		}
	return 0;
}

/* ---- EditDistance: hypotheses and truths, sequences along the last dimension ---- */

/* The index of the row of entry i in a tensor of this shape. */
static int64_t row_number(const struct sparse *s, int64_t i, const struct mu_shape *shape)
{
	int64_t at = 0;

	for (int d = 0; d < shape->rank; d++)
		at = at * shape->dim[d] + MU_DATA(int64_t, s->at)[i * s->shape.rank + d];
	return at;
}

struct pair {
	const struct sparse *a, *b;
	int64_t i, n, k, m; /* entries [i, i + n) of a and [k, k + m) of b */
};

/* Computes the Levenshtein distance to row[p->m]. */
static int find_distance(struct kernel_call *c, const struct pair *p, int64_t *row,
			 struct mu_err *err)
{
	for (int64_t y = 0; y <= p->m; y++)
		row[y] = y;
	for (int64_t x = 1; x <= p->n; x++) {
		int64_t diagonal = row[0];
		MU_RETURN_IF_ERROR(kernel_check_cancelled(c, err));
		row[0] = x;
		for (int64_t y = 1; y <= p->m; y++) {
			bool is_equal = mu_span_eq(elems_bytes(p->a->values, p->i + x - 1),
						   elems_bytes(p->b->values, p->k + y - 1));
			int64_t distance = diagonal + !is_equal;
			distance = row[y] + 1 < distance ? row[y] + 1 : distance;
			distance = row[y - 1] + 1 < distance ? row[y - 1] + 1 : distance;
			diagonal = row[y];
			row[y] = distance;
		}
	}
	return 0;
}

static int check_sequence_order(const struct sparse *s, const struct mu_shape *shape,
				struct mu_err *err)
{
	for (int64_t i = 1; i < s->n; i++)
		if (row_number(s, i, shape) < row_number(s, i - 1, shape))
			return mu_invalid(
			    err, "indices[%lld] is out of order: sequences must follow each other",
			    (long long)i);
	return 0;
}

/* The number of entries from i on that belong to sequence `at`. */
static int64_t sequence_length(const struct sparse *s, int64_t i, int64_t at,
			       const struct mu_shape *shape)
{
	int64_t n = 0;

	while (i + n < s->n && row_number(s, i + n, shape) == at)
		n++;
	return n;
}

static int decode_sequence_check_pair(const struct kernel_call *c, struct sparse *a,
				      struct sparse *b, struct mu_shape *shape, struct mu_err *err)
{
	*shape = mu_shape_scalar();
	MU_RETURN_IF_ERROR(sparse_in(c, 0, a, err));
	MU_RETURN_IF_ERROR(sparse_in(c, 3, b, err));
	if (a->shape.rank != b->shape.rank || a->shape.rank < 1)
		return mu_invalid(err,
				  "hypothesis %s and truth %s must have one rank, of at least 1",
				  mu_shape_str(&a->shape), mu_shape_str(&b->shape));
	if (a->values->dtype != MU_STRING && !mu_dtype_size(a->values->dtype))
		return mu_fail(err, MU_UNIMPLEMENTED, "no EditDistance of %s",
			       mu_dtype_name(a->values->dtype));
	for (int d = 0; d < a->shape.rank - 1; d++) {
		int64_t x = a->shape.dim[d], y = b->shape.dim[d];
		MU_RETURN_IF_ERROR(mu_shape_push(shape, x > y ? x : y, err));
	}
	MU_RETURN_IF_ERROR(check_sequence_order(a, shape, err));
	return check_sequence_order(b, shape, err);
}

static int edit_distance(struct kernel_call *c, struct mu_err *err)
{
	bool normalize = args_attr_bool(c->node, "normalize", true);
	struct mu_tensor *out;
	struct mu_shape shape;
	struct sparse a, b;

	MU_RETURN_IF_ERROR(decode_sequence_check_pair(c, &a, &b, &shape, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, MU_FLOAT, &shape, &out, err));
	elems_zero(MU_FLOAT, out->data, 0, shape.count);
	MU_AUTO_FREE int64_t *row = calloc((size_t)b.n + 1, sizeof *row);
	if (!row)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for %lld entries",
			       (long long)b.n);
	struct pair p = {&a, &b, 0, 0, 0, 0};
	for (; p.i < a.n || p.k < b.n; p.i += p.n, p.k += p.m) {
		int64_t x = p.i < a.n ? row_number(&a, p.i, &shape) : INT64_MAX;
		int64_t y = p.k < b.n ? row_number(&b, p.k, &shape) : INT64_MAX;
		int64_t at = x < y ? x : y;
		p.n = sequence_length(&a, p.i, at, &shape);
		p.m = sequence_length(&b, p.k, at, &shape);
		MU_RETURN_IF_ERROR(find_distance(c, &p, row, err));
		float d = (float)row[p.m];
		MU_DATA(float, out)[at] = !normalize ? d : p.m ? d / (float)p.m : INFINITY;
	}
	return 0;
}

static const struct kernel rows[] = {
    {"CTCGreedyDecoder", .flags = KERNEL_EXPENSIVE, .run = greedy},
    {"EditDistance", .flags = KERNEL_EXPENSIVE, .run = edit_distance},
};
KERNEL_TABLE(rnn_decode_sequence, rows)
