/* SPDX-License-Identifier: Apache-2.0 */
/* Sets in the last dimension: union, intersection, difference, and size.
 *
 * A dense or sparse input becomes a list of members, each with the number of its set (the other
 * dimensions in row-major order). Two lists sorted by set and value are merged in one pass, which
 * gives TensorFlow's order: sets in order, values ascending. */
#include <string.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/sparse/sparse.h"

struct member {
	int64_t set, at;           /* number of the set; index in the values */
	int64_t i;                 /* the value, if it is an integer */
	const struct mu_string *s; /* the value, if it is a string */
};
struct members {
	struct member *list;
	int64_t n;
	const struct mu_tensor *values;
	struct mu_shape sets; /* all dimensions but the last */
};

static void members_fini(struct members *m)
{
	free(m->list);
}
#define MEMBERS __attribute__((cleanup(members_fini))) struct members

static int compare_values(const struct member *a, const struct member *b)
{
	if (!a->s)
		return (a->i > b->i) - (a->i < b->i);
	return mu_span_compare((struct mu_span){a->s->data, a->s->len},
			       (struct mu_span){b->s->data, b->s->len});
}

static int member_compare(const void *x, const void *y)
{
	const struct member *a = x, *b = y;
	int order = (a->set > b->set) - (a->set < b->set);

	return order ? order : compare_values(a, b);
}

static void set_load(struct member *m, const struct mu_tensor *t, int64_t at)
{
	m->at = at;
	if (t->dtype == MU_STRING)
		m->s = &MU_DATA(struct mu_string, t)[at];
	else
		convert(MU_INT64, &m->i, t->dtype, elems_bytes(t, at).data, 1);
}

/* Sorts the members and removes duplicates within a set. */
static void sort_unique(struct members *m)
{
	int64_t n_unique = 0;

	if (m->n)
		qsort(m->list, (size_t)m->n, sizeof *m->list, member_compare);
	for (int64_t i = 0; i < m->n; i++)
		if (!n_unique || member_compare(&m->list[n_unique - 1], &m->list[i]))
			m->list[n_unique++] = m->list[i];
	m->n = n_unique;
}

static int read_dense(const struct kernel_call *c, unsigned in, struct members *m,
		      struct mu_err *err)
{
	const struct mu_tensor *t = kernel_in(c, in);
	const struct mu_shape *s = &t->shape;

	if (s->rank < 2)
		return mu_invalid(err, "Input set shape %s is invalid: rank %d < 2",
				  mu_shape_str(s), s->rank);
	MU_RETURN_IF_ERROR(mu_shape_set(&m->sets, s->rank - 1, s->dim, err));
	m->values = t;
	m->list = mu_xcalloc((size_t)s->count + 1, sizeof *m->list);
	for (int64_t i = 0; i < s->count; i++, m->n++) {
		m->list[i].set = i / s->dim[s->rank - 1];
		set_load(&m->list[i], t, i);
	}
	sort_unique(m);
	return 0;
}

/* The number of the set of a position; -1 if the position is outside the shape. */
static int64_t set_of(const int64_t *row, const struct mu_shape *sets, int64_t last)
{
	int64_t at = 0;

	for (int d = 0; d <= sets->rank; d++) {
		int64_t size = d < sets->rank ? sets->dim[d] : last;
		if (row[d] < 0 || row[d] >= size)
			return -1;
		if (d < sets->rank)
			at = at * size + row[d];
	}
	return at;
}

/* Positions, values and shape are inputs `in`, in + 1 and in + 2. */
static int read_sparse(const struct kernel_call *c, unsigned in, struct members *m,
		       struct mu_err *err)
{
	bool check_order = args_attr_bool(c->node, "validate_indices", true);
	int64_t dims[MU_MAX_RANK];
	int rank;

	MU_RETURN_IF_ERROR(args_ints(c, in + 2, dims, MU_MAX_RANK, &rank, err));
	const struct mu_tensor *at = kernel_in(c, in), *values = kernel_in(c, in + 1);
	if (rank < 2 || at->shape.dim[1] != rank || at->shape.dim[0] != values->shape.count)
		return mu_invalid(err, "positions %s, values %s and a shape of rank %d are no sets",
				  mu_shape_str(&at->shape), mu_shape_str(&values->shape), rank);
	if (dims[rank - 1] < 0)
		return mu_invalid(err, "Invalid shape: a dimension is negative");
	MU_RETURN_IF_ERROR(mu_shape_set(&m->sets, rank - 1, dims, err));
	m->values = values;
	m->list = mu_xcalloc((size_t)values->shape.count + 1, sizeof *m->list);
	for (int64_t i = 0; i < values->shape.count; i++, m->n++) {
		const int64_t *row = &MU_DATA(int64_t, at)[i * rank];
		int order = 1;
		m->list[i].set = set_of(row, &m->sets, dims[rank - 1]);
		if (m->list[i].set < 0)
			return sparse_out_of_bounds(i, row, rank, dims, err);
		for (int d = 0; i && order == 1 && d < rank; d++)
			order = row[d] > row[d - rank] ? 2 : row[d] < row[d - rank] ? 0 : 1;
		if (check_order && i && order < 2)
			return mu_invalid(err,
					  "indices[%lld] is out of order. Many sparse ops require "
					  "sorted indices.",
					  (long long)i);
		set_load(&m->list[i], values, i);
	}
	sort_unique(m);
	return 0;
}

/* ---- two sets ---- */

/* The members that an operation keeps: only in the first, in both, only in the second. */
static const struct operation {
	const char *name;
	bool first, both, second;
} operations[] = {
    {"a-b", true, false, false},
    {"b-a", false, false, true},
    {"intersection", false, true, false},
    {"union", true, true, true},
};

struct set_element {
	const struct member *m;
	const struct mu_tensor *values;
};

static int64_t set_merge(const struct members *a, const struct members *b,
			 const struct operation *op, struct set_element *out)
{
	int64_t i = 0, j = 0, n = 0;

	while (i < a->n || j < b->n) {
		int order = i == a->n   ? 1
			    : j == b->n ? -1
					: member_compare(&a->list[i], &b->list[j]);
		if (order <= 0 ? (order ? op->first : op->both) : op->second)
			out[n++] = order <= 0 ? (struct set_element){&a->list[i], a->values}
					      : (struct set_element){&b->list[j], b->values};
		i += order <= 0;
		j += order >= 0;
	}
	return n;
}

static int set_output(struct kernel_call *c, const struct mu_shape *sets,
		      const struct set_element *elements, int64_t n, enum mu_dtype type,
		      struct mu_err *err)
{
	struct mu_tensor *at, *values, *shape;
	int64_t largest_set = 0, rank = sets->rank + 1, k = 0;

	MU_RETURN_IF_ERROR(kernel_out_dims(c, 0, MU_INT64, 2, (int64_t[]){n, rank}, &at, err));
	MU_RETURN_IF_ERROR(kernel_out_vec(c, 1, type, n, &values, err));
	MU_RETURN_IF_ERROR(kernel_out_vec(c, 2, MU_INT64, sets->rank + 1, &shape, err));
	for (int64_t i = 0; i < n; i++) {
		int64_t rest = elements[i].m->set, *row = &MU_DATA(int64_t, at)[i * rank];
		k = i && elements[i - 1].m->set == rest ? k + 1 : 0;
		largest_set = k + 1 > largest_set ? k + 1 : largest_set;
		row[rank - 1] = k;
		for (int d = sets->rank - 1; d >= 0; d--) {
			row[d] = rest % sets->dim[d];
			rest /= sets->dim[d];
		}
		elems_copy(type, values->data, i, elements[i].values->data, elements[i].m->at, 1);
	}
	memcpy(shape->data, sets->dim, (size_t)sets->rank * sizeof(int64_t));
	MU_DATA(int64_t, shape)[rank - 1] = largest_set;
	return 0;
}

typedef int (*reader)(const struct kernel_call *c, unsigned in, struct members *m,
		      struct mu_err *err);

static int set_operation(struct kernel_call *c, reader first, reader second, struct mu_err *err)
{
	const char *name = args_attr_string(c->node, "set_operation", "");
	const struct operation *op = NULL;
	MEMBERS a = {0}, b = {0};

	for (unsigned i = 0; i < MU_COUNT(operations); i++)
		if (strcmp(operations[i].name, name) == 0)
			op = &operations[i];
	if (!op)
		return mu_invalid(err, "Invalid set_operation %.40s.", name);
	MU_RETURN_IF_ERROR(first(c, 0, &a, err));
	MU_RETURN_IF_ERROR(second(c, first == read_dense ? 1 : 3, &b, err));
	if (a.values->dtype != b.values->dtype || !mu_shape_eq(&a.sets, &b.sets))
		return mu_invalid(err, "Mismatched group shapes %s vs %s", mu_shape_str(&a.sets),
				  mu_shape_str(&b.sets));
	MU_AUTO_FREE struct set_element *elements =
	    mu_xcalloc((size_t)(a.n + b.n) + 1, sizeof *elements);
	return set_output(c, &a.sets, elements, set_merge(&a, &b, op, elements), a.values->dtype,
			  err);
}

KERNEL_RUN(dense_dense, set_operation(c, read_dense, read_dense, err))
KERNEL_RUN(dense_sparse, set_operation(c, read_dense, read_sparse, err))
KERNEL_RUN(sparse_sparse, set_operation(c, read_sparse, read_sparse, err))

static int set_size(struct kernel_call *c, struct mu_err *err)
{
	MEMBERS m = {0};
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(read_sparse(c, 0, &m, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, MU_INT32, &m.sets, &out, err));
	elems_zero(MU_INT32, out->data, 0, m.sets.count);
	for (int64_t i = 0; i < m.n; i++)
		MU_DATA(int32_t, out)[m.list[i].set]++;
	return 0;
}

static const struct kernel rows[] = {
    {"DenseToDenseSetOperation", .run = dense_dense},
    {"DenseToSparseSetOperation", .run = dense_sparse},
    {"SparseToSparseSetOperation", .run = sparse_sparse},
    {"SetSize", .run = set_size},
};
KERNEL_TABLE(sparse_set, rows)
