/* SPDX-License-Identifier: Apache-2.0 */
/* The ops that create, change and read lists. Placement puts all ops of a list, and therefore its
 * elements, on one device. */
#include "task/kernels/control/tensor_list.h"

#include <string.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/move.h"

/* ---- creation ---- */

static int tensor_list_make(struct kernel_call *c, bool reserve, struct mu_err *err)
{
	struct mu_pshape shape;
	enum mu_dtype type;
	int64_t n;

	MU_RETURN_IF_ERROR(list_element_shape(c, 0, &shape, err));
	MU_RETURN_IF_ERROR(args_int(c, 1, &n, err));
	MU_RETURN_IF_ERROR(mu_node_attr_type(c->node, "element_dtype", &type, err));
	if (reserve && (n < 0 || n > MAX_LIST))
		return mu_invalid(err,
				  "The num_elements to reserve must be a non negative number of at "
				  "most %d, but got %lld",
				  MAX_LIST, (long long)n);
	struct list *l = list_new(type, &shape, reserve ? n : 0);
	l->max_elements = reserve ? -1 : n;
	return list_output(c, l, 0, err);
}

KERNEL_RUN(tensor_list_empty, tensor_list_make(c, false, err))
KERNEL_RUN(tensor_list_reserve, tensor_list_make(c, true, err))

static int need_rows(const struct mu_tensor *t, struct mu_err *err)
{
	if (t->shape.rank < 1)
		return mu_invalid(err, "Tensor must be at least a vector, but saw shape: %s",
				  mu_shape_str(&t->shape));
	return 0;
}

static int check_length(int64_t n, struct mu_err *err)
{
	return n <= MAX_LIST
		   ? 0
		   : mu_fail(err, MU_RESOURCE_EXHAUSTED, "a list of %lld tensors, more than %d",
			     (long long)n, MAX_LIST);
}

static int from_tensor(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *t = kernel_in(c, 0);
	struct mu_pshape shape;
	int rc = 0;

	MU_RETURN_IF_ERROR(need_rows(t, err));
	MU_RETURN_IF_ERROR(check_length(t->shape.dim[0], err));
	MU_RETURN_IF_ERROR(list_element_shape(c, 1, &shape, err));
	struct mu_shape row = mu_shape_scalar();
	if (t->shape.dim[0] && (rc = mu_shape_set(&row, t->shape.rank - 1, t->shape.dim + 1, err)))
		return rc;
	struct list *l = list_new(t->dtype, &shape, t->shape.dim[0]);
	for (int64_t i = 0; i < l->n && !rc; i++)
		if (!(rc = move_scratch(c, t->dtype, &row, &l->items[i], err)) && !i)
			rc = list_check_item(l, &l->items[0], err);
	if (!rc)
		rc = move_cut(l->items, l->n, row.count, t, err);
	return list_output(c, l, rc, err);
}

static int tensor_list_split(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *t = kernel_in(c, 0), *lengths = kernel_in(c, 2);
	struct mu_pshape shape;
	int64_t at = 0;
	int rc = 0;

	MU_RETURN_IF_ERROR(need_rows(t, err));
	MU_RETURN_IF_ERROR(list_element_shape(c, 1, &shape, err));
	MU_RETURN_IF_ERROR(args_rank(c, 2, 1, err));
	MU_RETURN_IF_ERROR(check_length(lengths->shape.count, err));
	struct list *l = list_new(t->dtype, &shape, lengths->shape.count);
	for (int64_t i = 0; i < l->n && !rc; i++) {
		int64_t n = mu_tensor_int(lengths, i);
		if (n < 0 || n > t->shape.dim[0] - at)
			rc = mu_invalid(err, "Invalid value in lengths: %lld of the %lld rows left",
					(long long)n, (long long)(t->shape.dim[0] - at));
		else if (!(rc = move_rows_out(c, t, at, n, false, &l->items[i], err)))
			at += n;
	}
	if (!rc && at != t->shape.dim[0])
		rc = mu_invalid(err,
				"Unused values in tensor. Length of tensor: %lld Values used: %lld",
				(long long)t->shape.dim[0], (long long)at);
	return list_output(c, l, rc, err);
}

/* ---- modification ---- */

static int push_back(struct kernel_call *c, struct mu_err *err)
{
	struct list *l;
	int rc;

	MU_RETURN_IF_ERROR(list_get_mutable(c, &l, err));
	if (!(rc = list_check_item(l, kernel_in(c, 1), err)) &&
	    ((l->max_elements >= 0 && l->n >= l->max_elements) || l->n >= MAX_LIST))
		rc = mu_invalid(err, "Tried to push item into a full list list size: %lld",
				(long long)l->n);
	if (!rc) {
		list_set_length(l, l->n + 1);
		l->items[l->n - 1] = mu_tensor_ref(kernel_in(c, 1));
	}
	return list_output(c, l, rc, err);
}

/* Pushes row i of the tensor to list i. */
static int push_back_batch(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *lists = kernel_in(c, 0), *rows = kernel_in(c, 1);
	const struct list *from;
	struct mu_tensor *out;

	if (lists->shape.rank != 1)
		return mu_invalid(err, "input_handles is not a vector, saw shape: %s",
				  mu_shape_str(&lists->shape));
	MU_RETURN_IF_ERROR(need_rows(rows, err));
	if (rows->shape.dim[0] != lists->shape.count)
		return mu_invalid(err, "tensor.shape[0] != input_handles.size (%lld vs. %lld)",
				  (long long)rows->shape.dim[0], (long long)lists->shape.count);
	MU_RETURN_IF_ERROR(kernel_out(c, 0, MU_VARIANT, &lists->shape, &out, err));
	for (int64_t i = 0; i < lists->shape.count; i++) {
		MU_AUTO_TENSOR row = {0};
		MU_RETURN_IF_ERROR(list_get_at(c, 0, i, &from, err));
		MU_RETURN_IF_ERROR(move_rows_out(c, rows, i, 1, true, &row, err));
		MU_RETURN_IF_ERROR(list_check_item(from, &row, err));
		if (from->n >= MAX_LIST)
			return mu_invalid(err,
					  "Tried to push item into a full list list size: %lld",
					  (long long)from->n);
		struct list *l = list_copy(from);
		list_set_length(l, l->n + 1);
		l->items[l->n - 1] = mu_tensor_ref(&row);
		MU_DATA(struct mu_object *, out)[i] = &l->object;
	}
	return 0;
}

static bool is_same_pshape(const struct mu_pshape *a, const struct mu_pshape *b)
{
	return a->rank == b->rank &&
	       (a->rank <= 0 || memcmp(a->dim, b->dim, (size_t)a->rank * sizeof *a->dim) == 0);
}

/* Concatenates two lists; of two tensors of lists, each list with its counterpart. */
static int concat_lists(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *a = kernel_in(c, 0), *b = kernel_in(c, 1);
	const struct list *first, *second;
	struct mu_tensor *out;

	if (!mu_shape_eq(&a->shape, &b->shape))
		return mu_invalid(err,
				  "input_a and input_b must have the same shape, but got %s and %s",
				  mu_shape_str(&a->shape), mu_shape_str(&b->shape));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, MU_VARIANT, &a->shape, &out, err));
	for (int64_t i = 0; i < a->shape.count; i++) {
		MU_RETURN_IF_ERROR(list_get_at(c, 0, i, &first, err));
		MU_RETURN_IF_ERROR(list_get_at(c, 1, i, &second, err));
		if (!is_same_pshape(&first->shape, &second->shape))
			return mu_invalid(err,
					  "input_a and input_b TensorList element shapes are not "
					  "identical at index %lld.  Saw %s vs. %s",
					  (long long)i, mu_pshape_str(&first->shape),
					  mu_pshape_str(&second->shape));
		if (first->n + second->n > MAX_LIST)
			return mu_invalid(err,
					  "Tried to push item into a full list list size: %lld",
					  (long long)first->n);
		struct list *l = list_copy(first);
		list_set_length(l, first->n + second->n);
		for (int64_t k = 0; k < second->n; k++)
			l->items[first->n + k] = mu_tensor_ref(&second->items[k]);
		MU_DATA(struct mu_object *, out)[i] = &l->object;
	}
	return 0;
}

static int item_or_zeros(struct kernel_call *c, unsigned shape_in, const struct list *l, int64_t i,
			 struct mu_tensor *out, struct mu_err *err)
{
	struct mu_shape s;
	int rc;

	if (mu_tensor_is_set(&l->items[i]))
		return move_to_device(c, &l->items[i], out, err);
	MU_RETURN_IF_ERROR(list_whole_shape(c, shape_in, l, NULL, &s, err));
	MU_RETURN_IF_ERROR(move_scratch(c, l->type, &s, out, err));
	if ((rc = move_fill(out, NULL, err)))
		mu_tensor_unref(out);
	return rc;
}

static int pop_back(struct kernel_call *c, struct mu_err *err)
{
	struct mu_tensor item;
	struct list *l;
	int rc = 0;

	MU_RETURN_IF_ERROR(list_get_mutable(c, &l, err));
	if (!l->n)
		rc = mu_invalid(err, "Trying to pop from an empty list.");
	else if (!(rc = item_or_zeros(c, 1, l, l->n - 1, &item, err))) {
		list_set_length(l, l->n - 1);
		kernel_out_take(c, 1, item);
	}
	return list_output(c, l, rc, err);
}

static int need_index(const struct kernel_call *c, const struct list *l, int64_t *out,
		      struct mu_err *err)
{
	MU_RETURN_IF_ERROR(args_int(c, 1, out, err));
	if (*out < 0 || *out >= l->n)
		return mu_invalid(err,
				  "Trying to access element %lld in a list with %lld elements.",
				  (long long)*out, (long long)l->n);
	return 0;
}

static int get_item(struct kernel_call *c, struct mu_err *err)
{
	const struct list *l;
	struct mu_tensor t;
	int64_t i;

	MU_RETURN_IF_ERROR(list_get(c, &l, err));
	MU_RETURN_IF_ERROR(need_index(c, l, &i, err));
	MU_RETURN_IF_ERROR(item_or_zeros(c, 2, l, i, &t, err));
	kernel_out_take(c, 0, t);
	return 0;
}

static int set_item(struct kernel_call *c, struct mu_err *err)
{
	struct list *l;
	int64_t i;
	int rc;

	MU_RETURN_IF_ERROR(list_get_mutable(c, &l, err));
	if (args_attr_bool(c->node, "resize_if_index_out_of_bounds", false) &&
	    !args_int(c, 1, &i, err) && i >= l->n && i < MAX_LIST)
		list_set_length(l, i + 1);
	if (!(rc = need_index(c, l, &i, err)) && !(rc = list_check_item(l, kernel_in(c, 2), err))) {
		mu_tensor_unref(&l->items[i]);
		l->items[i] = mu_tensor_ref(kernel_in(c, 2));
	}
	return list_output(c, l, rc, err);
}

static int tensor_list_resize(struct kernel_call *c, struct mu_err *err)
{
	struct list *l;
	int64_t n;
	int rc;

	MU_RETURN_IF_ERROR(list_get_mutable(c, &l, err));
	if (!(rc = args_int(c, 1, &n, err)) && (n < 0 || n > MAX_LIST))
		rc = mu_invalid(
		    err,
		    "TensorListSlice expects size to be non-negative and at most %d. Got: %lld",
		    MAX_LIST, (long long)n);
	if (!rc)
		list_set_length(l, n);
	return list_output(c, l, rc, err);
}

/* Sets the elements at `indices` to the rows of `values`.  may_grow: they may be beyond the end. */
static int put_rows(struct kernel_call *c, struct list *l, bool may_grow,
		    const struct mu_tensor *values, const struct mu_tensor *indices,
		    struct mu_err *err)
{
	int rc = need_rows(values, err);

	if (!rc && values->shape.dim[0] != indices->shape.count)
		return mu_invalid(err,
				  "Invalid number of rows in input tensor. Expected: %lld Actual: "
				  "%lld",
				  (long long)indices->shape.count, (long long)values->shape.dim[0]);
	for (int64_t k = 0; k < indices->shape.count && !rc; k++) {
		int64_t at = mu_tensor_int(indices, k);
		struct mu_tensor t;
		if (at < 0 || at >= MAX_LIST)
			return mu_invalid(err,
					  "Indices in TensorListScatter must all be non-negative.");
		if (at >= l->n && !may_grow)
			return mu_invalid(err,
					  "TensorListScatter: Trying to scatter at index %lld in "
					  "list with size %lld",
					  (long long)at, (long long)l->n);
		if (at >= l->n)
			list_set_length(l, at + 1);
		if ((rc = move_rows_out(c, values, k, 1, true, &t, err)))
			break;
		mu_tensor_unref(&l->items[at]);
		l->items[at] = t;
		rc = list_check_item(l, &t, err);
	}
	return rc;
}

static int scatter_into(struct kernel_call *c, struct mu_err *err)
{
	struct list *l;

	MU_RETURN_IF_ERROR(list_get_mutable(c, &l, err));
	return list_output(c, l, put_rows(c, l, true, kernel_in(c, 1), kernel_in(c, 2), err), err);
}

/* tensor, indices, element_shape [, num_elements] */
static int tensor_list_scatter(struct kernel_call *c, struct mu_err *err)
{
	struct mu_pshape shape;
	int64_t n = -1;

	MU_RETURN_IF_ERROR(list_element_shape(c, 2, &shape, err));
	if (c->n_in > 3)
		MU_RETURN_IF_ERROR(args_int(c, 3, &n, err));
	if (n > MAX_LIST || n < -1)
		return mu_invalid(err, "TensorListScatter expects num_elements >= -1, found: %lld",
				  (long long)n);
	struct list *l = list_new(kernel_in(c, 0)->dtype, &shape, n < 0 ? 0 : n);
	return list_output(c, l, put_rows(c, l, n < 0, kernel_in(c, 0), kernel_in(c, 1), err), err);
}

/* ---- access ---- */

static int length(struct kernel_call *c, struct mu_err *err)
{
	const struct list *l;

	MU_RETURN_IF_ERROR(list_get(c, &l, err));
	int32_t n = (int32_t)l->n;
	return kernel_out_value(c, 0, MU_INT32, &n, err);
}

static int tensor_list_shape_of(struct kernel_call *c, struct mu_err *err)
{
	enum mu_dtype type = args_attr_type(c->node, "shape_type", MU_INT32);
	const struct list *l;
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(list_get(c, &l, err));
	int rank = l->shape.rank;
	struct mu_shape s = rank < 0 ? mu_shape_scalar() : mu_shape_vec(rank);
	MU_RETURN_IF_ERROR(kernel_out(c, 0, type, &s, &out, err));
	for (int d = 0; d < s.count; d++) {
		int64_t v = rank < 0 ? -1 : l->shape.dim[d];
		mu_tensor_set_int(out, d, v);
	}
	return 0;
}

struct element_refs { /* elements that are to be joined */
	struct mu_tensor *items;
	int64_t n;
};

static void element_refs_free(struct element_refs *p)
{
	for (int64_t i = 0; i < p->n; i++)
		mu_tensor_unref(&p->items[i]);
	free(p->items);
}

/* Collects the elements at `indices` (NULL: all).  Each has this shape or is not set. */
static int list_collect(struct kernel_call *c, const struct list *l,
			const struct mu_tensor *indices, const struct mu_shape *shape, int64_t n,
			struct element_refs *p, struct mu_err *err)
{
	int rc = 0;

	p->items = calloc((size_t)n + 1, sizeof *p->items);
	if (!p->items)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for %lld elements",
			       (long long)n);
	for (; p->n < n && !rc; p->n += !rc) {
		int64_t i = indices ? mu_tensor_int(indices, p->n) : p->n;
		if (i < 0 || i >= l->n)
			return mu_invalid(err,
					  "Index %lld out o range; list only has %lld elements.",
					  (long long)i, (long long)l->n);
		const struct mu_tensor *t = &l->items[i];
		if (!mu_tensor_is_set(t))
			continue;
		if (!mu_shape_eq(&t->shape, shape))
			return mu_invalid(
			    err, "Tried to stack list which contains tensors of shapes %s and %s",
			    mu_shape_str(&t->shape), mu_shape_str(shape));
		rc = move_to_device(c, t, &p->items[p->n], err);
	}
	return rc;
}

/* Outputs the elements at `indices` (NULL: all) as the rows of one tensor. */
static int stack_rows(struct kernel_call *c, const struct list *l, unsigned shape_in,
		      const struct mu_tensor *indices, struct mu_err *err)
{
	__attribute__((cleanup(element_refs_free))) struct element_refs p = {0};
	int64_t n = indices ? indices->shape.count : l->n;
	struct mu_shape element, all = mu_shape_vec(n);
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(list_whole_shape(c, shape_in, l, indices, &element, err));
	MU_RETURN_IF_ERROR(mu_shape_append(&all, element.rank, element.dim, err));
	MU_RETURN_IF_ERROR(list_collect(c, l, indices, &element, n, &p, err));
	MU_RETURN_IF_ERROR(kernel_out_on_device(c, 0, l->type, &all, &out, err));
	return move_join(out, p.items, n, element.count, err);
}

static int stack(struct kernel_call *c, struct mu_err *err)
{
	int64_t want = args_attr_int(c->node, "num_elements", -1);
	const struct list *l;
	int rc = list_get(c, &l, err);

	if (!rc && want >= 0 && want != l->n)
		return mu_invalid(err,
				  "Operation expected a list with %lld elements but got a list "
				  "with %lld elements.",
				  (long long)want, (long long)l->n);
	return rc ? rc : stack_rows(c, l, 1, NULL, err);
}

static int tensor_list_gather(struct kernel_call *c, struct mu_err *err)
{
	const struct list *l;

	MU_RETURN_IF_ERROR(list_get(c, &l, err));
	return stack_rows(c, l, 2, kernel_in(c, 1), err);
}

/* TensorListConcat has the shape as an attribute. */
static int attr_shape(const struct kernel_call *c, struct mu_pshape *out, struct mu_err *err)
{
	const struct mu_attr *a = mu_node_attr(c->node, "element_shape");

	*out = a && a->kind == MU_ATTR_SHAPE ? *a->shape : (struct mu_pshape){.rank = -1};
	return 0;
}

/* The shapes of the elements, which may differ in their first dimension. */
struct concat {
	struct mu_pshape element; /* first dimension -1: differs between elements, or unknown */
	const struct mu_tensor *leading_dims; /* of elements that are not set, or NULL */
	int64_t n_rows;                       /* of all elements */
	bool has_unset;                       /* elements */
};

/* The first dimension of element i. */
static int concat_rows(const struct concat *k, const struct list *l, int64_t i, int64_t *out,
		       struct mu_err *err)
{
	int64_t n_leading = k->leading_dims ? k->leading_dims->shape.count : 0;

	if (mu_tensor_is_set(&l->items[i]))
		*out = l->items[i].shape.dim[0];
	else if (i < n_leading)
		*out = mu_tensor_int(k->leading_dims, i);
	else if (k->element.dim[0] >= 0)
		*out = k->element.dim[0];
	else
		return mu_invalid(err,
				  "List contains uninitialized tensor at index %lld but "
				  "leading_dims has only %lld elements.",
				  (long long)i, (long long)n_leading);
	return *out < 0
		   ? mu_invalid(err, "element %lld has %lld rows", (long long)i, (long long)*out)
		   : 0;
}

/* Merges the shapes of the elements into k->element and adds up their rows. */
static int concat_shapes(struct concat *k, const struct list *l, struct mu_err *err)
{
	bool has_set = false;

	for (int64_t i = 0; i < l->n; i++) {
		struct mu_pshape have = list_pshape(&l->items[i].shape);
		if (!mu_tensor_is_set(&l->items[i])) {
			k->has_unset = true;
			continue;
		}
		MU_RETURN_IF_ERROR(need_rows(&l->items[i], err));
		if (!has_set && k->element.rank < 0)
			k->element = have;
		else if (k->element.rank > 0 && k->element.dim[0] != have.dim[0])
			k->element.dim[0] = has_set ? -1 : have.dim[0];
		has_set = true;
		have.dim[0] = -1;
		MU_RETURN_IF_ERROR(list_merge_shape(&k->element, &have, err));
	}
	if (k->element.rank < 1)
		return mu_invalid(err, "Concat requires elements to be at least vectors, found "
				       "scalars instead or an empty list without a shape.");
	for (int d = 1; d < k->element.rank; d++)
		if (k->element.dim[d] < 0)
			return mu_invalid(err,
					  "%s but element_shape_except_first_dim_ is not fully "
					  "defined",
					  l->n ? "Trying to concat list with only uninitialized "
						 "tensors"
					       : "All except the first dimension must be fully "
						 "defined when concating an empty tensor list");
	for (int64_t i = 0; i < l->n; i++) {
		int64_t n;
		MU_RETURN_IF_ERROR(concat_rows(k, l, i, &n, err));
		if (__builtin_add_overflow(k->n_rows, n, &k->n_rows))
			return mu_invalid(err, "too many rows");
	}
	return 0;
}

/* Joins the elements along their first dimension and outputs the length of each.  Unset elements
 * are zeros. */
static int tensor_list_concat(struct kernel_call *c, struct mu_err *err)
{
	struct concat k = {.leading_dims = c->n_in > 2 ? kernel_in(c, 2) : NULL};
	const struct list *l;
	struct mu_tensor *out, *lengths;
	struct mu_shape s;
	int64_t at = 0, n, row;

	MU_RETURN_IF_ERROR(list_get(c, &l, err));
	MU_RETURN_IF_ERROR(c->n_in > 1 ? list_element_shape(c, 1, &k.element, err)
				       : attr_shape(c, &k.element, err));
	MU_RETURN_IF_ERROR(list_merge_shape(&k.element, &l->shape, err));
	MU_RETURN_IF_ERROR(concat_shapes(&k, l, err));
	struct mu_pshape all = k.element;
	all.dim[0] = k.n_rows;
	MU_RETURN_IF_ERROR(mu_shape_set(&s, all.rank, all.dim, err));
	row = mu_shape_product(&s, 1, s.rank);
	MU_RETURN_IF_ERROR(kernel_out_on_device(c, 0, l->type, &s, &out, err));
	MU_RETURN_IF_ERROR(kernel_out_vec(c, 1, MU_INT64, l->n, &lengths, err));
	if (k.has_unset)
		MU_RETURN_IF_ERROR(move_fill(out, NULL, err));
	for (int64_t i = 0; i < l->n; i++, at += n * row) {
		MU_AUTO_TENSOR t = {0};

		concat_rows(&k, l, i, &n, err);
		MU_DATA(int64_t, lengths)[i] = n;
		if (!mu_tensor_is_set(&l->items[i]))
			continue;
		MU_RETURN_IF_ERROR(move_to_device(c, &l->items[i], &t, err));
		MU_RETURN_IF_ERROR(
		    move_runs(out, &t, &(struct runs){1, n * row, {at, 0}, {0, 0}}, err));
	}
	return 0;
}

static const struct kernel rows[] = {
    {"EmptyTensorList", .run = tensor_list_empty},
    {"TensorListReserve", .run = tensor_list_reserve},
    {"TensorListFromTensor", .run = from_tensor},
    {"TensorListSplit", .run = tensor_list_split},
    {"TensorListPushBack", .run = push_back},
    {"TensorListPushBackBatch", .run = push_back_batch},
    {"TensorListConcatLists", .run = concat_lists},
    {"TensorListPopBack", .run = pop_back},
    {"TensorListGetItem", .run = get_item},
    {"TensorListSetItem", .run = set_item},
    {"TensorListResize", .run = tensor_list_resize},
    {"TensorListScatterIntoExistingList", .run = scatter_into},
    {"TensorListScatter TensorListScatterV2", .run = tensor_list_scatter},
    {"TensorListLength", .run = length},
    {"TensorListElementShape", .run = tensor_list_shape_of},
    {"TensorListStack", .run = stack},
    {"TensorListGather", .run = tensor_list_gather},
    {"TensorListConcat TensorListConcatV2", .run = tensor_list_concat},
};
KERNEL_TABLE(control_tensor_list_ops, rows)
