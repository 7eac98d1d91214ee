/* SPDX-License-Identifier: Apache-2.0 */
/* Ragged tensors: rows of any length, given by their start positions ("row splits"), in nested
 * levels. */
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/variant.h"

struct ragged {
	const struct kernel_call *c;
	unsigned levels;
	const struct mu_tensor *values;
};

static int64_t ragged_split(const struct ragged *r, unsigned level, int64_t i)
{
	return mu_tensor_int(kernel_in(r->c, level), i);
}

/* The splits of a level must begin with 0 and not decrease.  The last split must be the number of
 * rows of the next level, or of the values. */
static int ragged_check_splits(const struct ragged *r, struct mu_err *err)
{
	for (unsigned l = 0; l < r->levels; l++) {
		int64_t n = kernel_in(r->c, l)->shape.count;
		MU_RETURN_IF_ERROR(args_rank(r->c, l, 1, err));
		if (!n)
			return mu_invalid(err, "ragged splits may not be empty.");
		if (ragged_split(r, l, 0))
			return mu_invalid(err, "First value of ragged splits must be 0.");
		for (int64_t i = 1; i < n; i++)
			if (ragged_split(r, l, i) < ragged_split(r, l, i - 1))
				return mu_invalid(err,
						  "Ragged splits should be non decreasing, but we "
						  "got %lld followed "
						  "by %lld",
						  (long long)ragged_split(r, l, i - 1),
						  (long long)ragged_split(r, l, i));
		int64_t below = l + 1 < r->levels ? kernel_in(r->c, l + 1)->shape.count - 1
						  : r->values->shape.dim[0];
		if (below < 0)
			return mu_invalid(err, "ragged splits may not be empty.");
		if (ragged_split(r, l, n - 1) != below)
			return mu_invalid(err,
					  "Final value of ragged splits must match the length the "
					  "corresponding ragged values.");
	}
	return 0;
}

static void put_shape(const struct ragged *r, int64_t *dim)
{
	dim[0] = kernel_in(r->c, 0)->shape.count - 1;
	for (unsigned l = 0; l < r->levels; l++) {
		dim[l + 1] = 0;
		for (int64_t i = 1; i < kernel_in(r->c, l)->shape.count; i++) {
			int64_t n = ragged_split(r, l, i) - ragged_split(r, l, i - 1);
			dim[l + 1] = n > dim[l + 1] ? n : dim[l + 1];
		}
	}
	for (int d = 1; d < r->values->shape.rank; d++)
		dim[r->levels + (unsigned)d] = r->values->shape.dim[d];
}

/* Writes the index of row v of the values at each level.  `at` holds the current row of each level;
 * v must not decrease from call to call. */
static void put_position(const struct ragged *r, int64_t v, int64_t *at, int64_t *position)
{
	for (unsigned l = r->levels; l-- > 0;) {
		while (ragged_split(r, l, at[l] + 1) <= v)
			at[l]++;
		position[l + 1] = v - ragged_split(r, l, at[l]);
		v = at[l];
	}
	position[0] = v;
}

static void put_positions(const struct ragged *r, int64_t *to, unsigned rank)
{
	const struct mu_shape *s = &r->values->shape;
	int64_t at[MU_MAX_RANK + 1] = {0}, position[2 * MU_MAX_RANK + 1];
	int64_t row_elements = s->dim[0] ? s->count / s->dim[0] : 0;

	for (int64_t v = 0; v < s->dim[0]; v++) {
		put_position(r, v, at, position);
		for (int64_t k = 0; k < row_elements; k++, to += rank) {
			int64_t rest = k;
			for (int d = s->rank - 1; d > 0; rest /= s->dim[d--])
				position[r->levels + (unsigned)d] = rest % s->dim[d];
			memcpy(to, position, rank * sizeof *to);
		}
	}
}

static int ragged_to_sparse(struct kernel_call *c, struct mu_err *err)
{
	struct ragged r = {c, c->n_in - 1, kernel_in(c, c->n_in - 1)};
	struct mu_shape flat = mu_shape_vec(r.values->shape.count), sides;
	struct mu_tensor *indices, *values, *shape;

	if (c->n_in < 2 || r.levels > MU_MAX_RANK || r.values->shape.rank < 1)
		return mu_invalid(err,
				  "%u levels of splits over values of shape %s: expected 1 to %d, "
				  "and at least a vector",
				  c->n_in - 1, mu_shape_str(&r.values->shape), MU_MAX_RANK);
	unsigned rank = r.levels + (unsigned)r.values->shape.rank;
	sides = mu_shape_vec(rank);
	MU_RETURN_IF_ERROR(ragged_check_splits(&r, err));
	MU_RETURN_IF_ERROR(
	    kernel_out_dims(c, 0, MU_INT64, 2, (int64_t[]){flat.count, rank}, &indices, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 1, r.values->dtype, &flat, &values, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 2, MU_INT64, &sides, &shape, err));
	put_positions(&r, indices->data, rank);
	elems_copy(values->dtype, values->data, 0, r.values->data, 0, flat.count);
	put_shape(&r, shape->data);
	return 0;
}

/* ---- RaggedTensorToVariant ---- */

/* The parts of element i of a variant tensor, borrowed; NULL if it holds no ragged tensor. */
static struct mu_object *const *ragged_parts(const struct mu_tensor *t, int64_t i, unsigned *levels)
{
	const struct mu_tensor *all = variant_unbox(MU_DATA(struct mu_object *, t)[i]);
	bool fits = all && all->dtype == MU_VARIANT && all->shape.rank == 1 && all->shape.count;

	*levels = fits ? (unsigned)all->shape.count - 1 : 0;
	for (unsigned k = 0; fits && k <= *levels; k++)
		fits = variant_unbox(MU_DATA(struct mu_object *, all)[k]) != NULL;
	return fits ? MU_DATA(struct mu_object *, all) : NULL;
}

/* Copies splits [from, to] of a level, shifted to begin with 0. */
static int splits_part(const struct mu_tensor *splits, int64_t from, int64_t to,
		       struct mu_tensor *out, struct mu_err *err)
{
	struct mu_shape vector = mu_shape_vec(to - from + 1);

	MU_RETURN_IF_ERROR(mu_tensor_new(out, splits->dtype, &vector, err));
	for (int64_t k = from; k <= to; k++)
		mu_tensor_set_int(out, k - from,
				  mu_tensor_int(splits, k) - mu_tensor_int(splits, from));
	return 0;
}

/* Copies rows [from, to) of the values.  Without ragged levels, copies one row and drops its
 * dimension. */
static int values_part(const struct ragged *r, int64_t from, int64_t to, struct mu_tensor *out,
		       struct mu_err *err)
{
	int64_t rows = to - from;
	struct mu_shape s;

	MU_RETURN_IF_ERROR(
	    mu_shape_splice(&s, &r->values->shape, 0, 1, r->levels ? 1 : 0, &rows, err));
	MU_RETURN_IF_ERROR(mu_tensor_new(out, r->values->dtype, &s, err));
	if (rows)
		elems_copy(out->dtype, out->data, 0, r->values->data, s.count / rows * from,
			   s.count);
	return 0;
}

/* Encodes row `from` of a batch. */
static int encode_row(const struct ragged *r, int64_t from, struct mu_object **out,
		      struct mu_err *err)
{
	struct mu_tensor part[MU_MAX_RANK] = {0};
	int64_t to = from + 1;
	unsigned n = 0;
	int rc = 0;

	for (unsigned l = 0; l < r->levels && !rc; l++) {
		if (l)
			rc = splits_part(kernel_in(r->c, l), from, to, &part[n++], err);
		from = ragged_split(r, l, from);
		to = ragged_split(r, l, to);
	}
	if (!rc && !(rc = values_part(r, from, to, &part[n++], err)))
		rc = variant_box_ragged(part, n, out, err);
	while (n--)
		mu_tensor_unref(&part[n]);
	return rc;
}

static int ragged_to_variant(struct kernel_call *c, struct mu_err *err)
{
	struct ragged r = {c, c->n_in - 1, kernel_in(c, c->n_in - 1)};
	bool batched = args_attr_bool(c->node, "batched_input", false);
	struct mu_tensor part[MU_MAX_RANK + 1], *out;
	struct mu_object *all;

	if (r.levels > MU_MAX_RANK || ((r.levels || batched) && !r.values->shape.rank))
		return mu_invalid(err, "%u levels of splits over values of shape %s", r.levels,
				  mu_shape_str(&r.values->shape));
	MU_RETURN_IF_ERROR(ragged_check_splits(&r, err));
	if (!batched) {
		for (unsigned i = 0; i < c->n_in; i++)
			part[i] = *kernel_in(c, i);
		MU_RETURN_IF_ERROR(variant_box_ragged(part, c->n_in, &all, err));
		return variant_out(c, 0, all, err);
	}
	int64_t rows = r.levels ? kernel_in(c, 0)->shape.count - 1 : r.values->shape.dim[0];
	MU_RETURN_IF_ERROR(kernel_out_vec(c, 0, MU_VARIANT, rows, &out, err));
	for (int64_t i = 0; i < rows; i++)
		MU_RETURN_IF_ERROR(encode_row(&r, i, &MU_DATA(struct mu_object *, out)[i], err));
	return 0;
}

/* ---- RaggedTensorFromVariant and the gradient ---- */

/* The elements of a variant tensor, which become one ragged tensor. */
struct stack {
	struct kernel_call *c;
	const struct mu_tensor *in;
	unsigned levels; /* of each element */
	enum mu_dtype splits, values;
};

static const struct mu_tensor *stack_part(const struct stack *s, int64_t i, unsigned k)
{
	unsigned levels;

	return variant_unbox(ragged_parts(s->in, i, &levels)[k]);
}

static int check_element(const struct stack *s, int64_t i, struct mu_err *err)
{
	unsigned levels;

	if (!ragged_parts(s->in, i, &levels))
		return mu_invalid(
		    err, "Input Variant element at index %lld doesn't hold a ragged tensor",
		    (long long)i);
	if (levels != s->levels)
		return mu_invalid(err,
				  "Encoded input RaggedTensorVariant has ragged_rank=%u.  Expected "
				  "ragged_rank=%u.",
				  levels, s->levels);
	for (unsigned k = 0; k <= levels; k++) {
		const struct mu_tensor *t = stack_part(s, i, k);
		enum mu_dtype want = k < levels ? s->splits : s->values;
		if (t->dtype != want)
			return mu_invalid(err, "Expected %s dtype: %s, found: %s",
					  k < levels ? "row_splits" : "values", mu_dtype_name(want),
					  mu_dtype_name(t->dtype));
		if (k < levels && (t->shape.rank != 1 || !t->shape.count))
			return mu_invalid(err, "Ragged splits must have rank 1, not shape %s",
					  mu_shape_str(&t->shape));
		if (k == levels && s->c->n_out > 1 && !t->shape.rank)
			return mu_invalid(err, "Ragged values must have rank >= 1");
	}
	return 0;
}

/* Writes the splits of a level of `rows` rows of length `width`.  With width -1, row i is as long
 * as element i. */
static int put_rows(const struct stack *s, unsigned level, int64_t rows, int64_t width,
		    struct mu_err *err)
{
	int64_t max_split = s->splits == MU_INT32 ? INT32_MAX : INT64_MAX >> 8, last = 0;
	struct mu_tensor *out;

	if (rows > max_split)
		return mu_invalid(err, "too many rows");
	MU_RETURN_IF_ERROR(kernel_out_vec(s->c, level, s->splits, rows + 1, &out, err));
	mu_tensor_set_int(out, 0, 0);
	for (int64_t i = 0; i < rows; i++) {
		int64_t length =
		    width < 0 ? stack_part(s, i, 0)->shape.dim[0] - (s->levels > 0) : width;
		if (length > max_split - last)
			return mu_invalid(err, "too many values");
		mu_tensor_set_int(out, i + 1, last += length);
	}
	return 0;
}

/* Joins level `from` of the elements to level `level` of the output. */
static int join_splits(const struct stack *s, unsigned from, unsigned level, struct mu_err *err)
{
	int64_t n = 1, at = 1;
	uint64_t last = 0;
	struct mu_tensor *out;

	for (int64_t i = 0; i < s->in->shape.count; i++)
		n += stack_part(s, i, from)->shape.count - 1;
	MU_RETURN_IF_ERROR(kernel_out_vec(s->c, level, s->splits, n, &out, err));
	mu_tensor_set_int(out, 0, 0);
	for (int64_t i = 0; i < s->in->shape.count; i++) {
		const struct mu_tensor *t = stack_part(s, i, from);
		uint64_t before = last;
		for (int64_t k = 1; k < t->shape.count; k++) {
			last = before + (uint64_t)mu_tensor_int(t, k);
			mu_tensor_set_int(out, at++, (int64_t)last);
		}
	}
	return s->splits == MU_INT32 && last > INT32_MAX ? mu_invalid(err, "too many values") : 0;
}

/* Joins the values of the elements along their first dimension, or along a new one. */
static int join_values(const struct stack *s, unsigned output, bool along_new, struct mu_err *err)
{
	int64_t n = s->in->shape.count, rows = along_new ? n : 0, at = 0;
	const struct mu_shape *first = n ? &stack_part(s, 0, s->levels)->shape : NULL;
	int removed = along_new ? 0 : 1;
	struct mu_shape shape = mu_shape_vec(0);
	struct mu_tensor *out;

	for (int64_t i = 0; i < n; i++) {
		const struct mu_shape *v = &stack_part(s, i, s->levels)->shape;
		if (v->rank < removed || v->rank != first->rank ||
		    memcmp(v->dim + removed, first->dim + removed,
			   (size_t)(v->rank - removed) * sizeof *v->dim))
			return mu_invalid(err,
					  "All flat_values must have compatible shapes.  Shape at "
					  "index 0: %s.  Shape at index %lld: %s.",
					  mu_shape_str(first), (long long)i, mu_shape_str(v));
		if (!along_new && __builtin_add_overflow(rows, v->dim[0], &rows))
			return mu_invalid(err, "too many values");
	}
	if (n)
		MU_RETURN_IF_ERROR(mu_shape_splice(&shape, first, 0, removed, 1, &rows, err));
	MU_RETURN_IF_ERROR(kernel_out(s->c, output, s->values, &shape, &out, err));
	for (int64_t i = 0; i < n; i++) {
		const struct mu_tensor *v = stack_part(s, i, s->levels);
		elems_copy(s->values, out->data, at, v->data, 0, v->shape.count);
		at += v->shape.count;
	}
	return 0;
}

static int check_stack(const struct stack *s, int64_t in_rank, int64_t out_rank, struct mu_err *err)
{
	if (in_rank < -1 || (in_rank == -1 && out_rank) ||
	    out_rank != in_rank + s->in->shape.rank || s->c->n_out != out_rank + 1)
		return mu_invalid(
		    err,
		    "output_ragged_rank must be equal to input_ragged_rank + "
		    "encoded_ragged.dims(); output_ragged_rank: %lld, input_ragged_rank: "
		    "%lld, encoded_variant.dims(): %d.",
		    (long long)out_rank, (long long)in_rank, s->in->shape.rank);
	for (int64_t i = 0; i < s->in->shape.count; i++)
		MU_RETURN_IF_ERROR(check_element(s, i, err));
	return 0;
}

static int ragged_from_variant(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	int64_t out_rank = args_attr_int(c->node, "output_ragged_rank", 0);
	int64_t in_rank = args_attr_int(c->node, "input_ragged_rank", -1), rows = 1;
	unsigned level = 0;

	if (in_rank == -1)
		in_rank = out_rank - in->shape.rank;
	struct stack s = {c, in, in_rank > 0 ? (unsigned)in_rank : 0,
			  args_attr_type(c->node, "Tsplits", MU_INT64),
			  args_attr_type(c->node, "Tvalues", MU_DT_INVALID)};
	MU_RETURN_IF_ERROR(check_stack(&s, in_rank, out_rank, err));
	if (!in->shape.rank) {
		for (unsigned k = 0; k < c->n_out; k++)
			kernel_out_take(c, k, mu_tensor_ref(stack_part(&s, 0, k)));
		return 0;
	}
	for (int d = 0; d < in->shape.rank && out_rank; d++) {
		bool last = d + 1 == in->shape.rank;
		rows *= in->shape.dim[d];
		MU_RETURN_IF_ERROR(
		    put_rows(&s, level++, rows, last ? -1 : in->shape.dim[d + 1], err));
	}
	for (unsigned k = 0; k < s.levels; k++)
		MU_RETURN_IF_ERROR(join_splits(&s, k, level++, err));
	return join_values(&s, level, !out_rank, err);
}

/* The number of values in row i of a batch; -1 if the splits are invalid. */
static int64_t row_value_count(const struct mu_shape *s, const struct mu_tensor *splits, int64_t i)
{
	int64_t rows;

	if (i + 1 >= splits->shape.count || s->rank < 1 ||
	    __builtin_sub_overflow(mu_tensor_int(splits, i + 1), mu_tensor_int(splits, i), &rows) ||
	    rows < 0 || rows > s->dim[0])
		return -1;
	return rows * mu_shape_product(s, 1, s->rank);
}

/* Joins the gradients of the rows of a batch.  A row without a gradient gets zeros. */
static int ragged_variant_grad(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0), *splits = kernel_in(c, 1);
	enum mu_dtype type = args_attr_type(c->node, "Tvalues", MU_DT_INVALID);
	struct mu_tensor *out;
	struct mu_shape shape;
	int64_t at = 0;

	MU_RETURN_IF_ERROR(args_shape(c, 2, &shape, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, type, &shape, &out, err));
	elems_zero(type, out->data, 0, shape.count);
	for (int64_t i = 0; i < in->shape.count; i++) {
		unsigned levels;
		struct mu_object *const *parts = ragged_parts(in, i, &levels);
		const struct mu_tensor *v = parts ? variant_unbox(parts[levels]) : NULL;
		int64_t n = v ? v->shape.count : row_value_count(&shape, splits, i);
		if (n < 0 || n > shape.count - at || (v && v->dtype != type))
			return mu_invalid(err, "the gradient of row %lld does not fit into %s",
					  (long long)i, mu_shape_str(&shape));
		if (v)
			elems_copy(type, out->data, at, v->data, 0, n);
		at += n;
	}
	return at == shape.count ? 0
				 : mu_invalid(err, "%lld values of a gradient of shape %s",
					      (long long)at, mu_shape_str(&shape));
}

static const struct kernel rows[] = {
    {"RaggedTensorToSparse", .run = ragged_to_sparse},
    {"RaggedTensorToVariant", .run = ragged_to_variant},
    {"RaggedTensorFromVariant", .run = ragged_from_variant},
    {"RaggedTensorToVariantGradient", .run = ragged_variant_grad},
};
KERNEL_TABLE(sparse_ragged, rows)
