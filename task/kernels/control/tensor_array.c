/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of tensors that live as long as their step.  Loops collect their results in them.
 *
 * An element is written once; but in a gradient array, writes are added up.  A gradient array gets
 * its elements' shapes from the array that it belongs to, so that an element that was never written
 * reads as zeros. */
#include <string.h>

#include "task/kernels/control/sum.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/move.h"
#include "task/kernels/state/handles.h"

enum { MAX_ELEMENTS = 1 << 24 };

struct slot {
	struct mu_tensor value; /* unset: not written, or cleared by a read */
	struct mu_pshape shape;
	bool cleared;
};

struct tensor_array {
	struct resource base;
	pthread_mutex_t lock;
	enum mu_dtype dtype;
	struct mu_pshape element;
	bool dynamic, clear;
	bool is_gradient; /* writes to an element are added up */
	bool identical;   /* identical_element_shapes: the first write sets the shape of all */
	int64_t n;
	int64_t n_split; /* elements of the last unpack or split; the gradient has as many */
	struct slot *slots;
};

static void array_free(struct resource *r)
{
	struct tensor_array *a = MU_CONTAINER(r, struct tensor_array, base);

	for (int64_t i = 0; i < a->n; i++)
		mu_tensor_unref(&a->slots[i].value);
	free(a->slots);
	pthread_mutex_destroy(&a->lock);
	free(a);
}

static const struct resource_type array_type = {.name = "TensorArray", .free = array_free};

static int tensor_array_resize(struct tensor_array *a, int64_t n, struct mu_err *err)
{
	struct slot *resized =
	    n <= MAX_ELEMENTS ? realloc(a->slots, (size_t)(n + 1) * sizeof *resized) : NULL;

	if (!resized)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED,
			       "a TensorArray of %lld elements is too large", (long long)n);
	a->slots = resized;
	for (; a->n < n; a->n++)
		a->slots[a->n] = (struct slot){.shape = a->element};
	return 0;
}

/* ---- creation ---- */

static struct tensor_array *array_new(enum mu_dtype dtype, const struct mu_pshape *element)
{
	struct tensor_array *a = MU_NEW(struct tensor_array);

	resource_init(&a->base, &array_type);
	pthread_mutex_init(&a->lock, NULL);
	a->dtype = dtype;
	a->element = *element;
	return a;
}

static struct resource *return_array(void *arg, struct mu_err *err)
{
	return arg;
}

/* Outputs a new flow value, a scalar that only orders ops. */
static int new_flow(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_shape one = mu_shape_scalar();
	struct mu_tensor *flow;

	if (c->n_out < 2) /* of the first two versions of the op */
		return 0;
	MU_RETURN_IF_ERROR(kernel_out_on_device(c, 1, MU_FLOAT, &one, &flow, err));
	return move_fill(flow, NULL, err);
}

/* Forwards the flow value of the last input. */
static int output_flow(struct kernel_call *c)
{
	kernel_out_take(c, 0, mu_tensor_ref(kernel_in(c, c->n_in - 1)));
	return 0;
}

static int tensor_array_make(struct kernel_call *c, struct mu_err *err)
{
	static _Atomic unsigned long long next_id;
	const struct mu_attr *shape = mu_node_attr(c->node, "element_shape");
	const char *container = c->step ? step_own_container(c->step) : "";
	struct resource *r;
	int64_t size;
	int rc;

	MU_RETURN_IF_ERROR(args_int(c, 0, &size, err));
	if (size < 0)
		return mu_invalid(err, "Size should be >= 0.");
	struct tensor_array *a = array_new(
	    args_attr_type(c->node, "dtype", MU_FLOAT),
	    shape && shape->kind == MU_ATTR_SHAPE ? shape->shape : &(struct mu_pshape){.rank = -1});
	a->dynamic = args_attr_bool(c->node, "dynamic_size", false);
	a->clear = args_attr_bool(c->node, "clear_after_read", true);
	a->identical = args_attr_bool(c->node, "identical_element_shapes", false);
	if ((rc = tensor_array_resize(a, size, err))) {
		resource_unref(&a->base);
		return rc;
	}
	MU_AUTO_FREE char *name =
	    mu_xasprintf("%s_%llu", c->node->name, atomic_fetch_add(&next_id, 1));
	MU_RETURN_IF_ERROR(resources_find_or_create(c->runtime->resources, container, name,
						    &array_type, return_array, a, &r, err));
	resource_unref(r);
	MU_RETURN_IF_ERROR(handle_output(c, container, name, &array_type, err));
	return new_flow(c, err);
}

/* Finds and locks the array of input 0.  Undone by tensor_array_release. */
static int tensor_array_hold(const struct kernel_call *c, struct tensor_array **out,
			     struct mu_err *err)
{
	struct resource *r;

	MU_RETURN_IF_ERROR(handle_find(c, 0, &array_type, &r, err));
	*out = MU_CONTAINER(r, struct tensor_array, base);
	pthread_mutex_lock(&(*out)->lock);
	return 0;
}

static void tensor_array_release(struct tensor_array **a)
{
	if (*a) {
		pthread_mutex_unlock(&(*a)->lock);
		resource_unref(&(*a)->base);
	}
}
#define AUTO_ARRAY __attribute__((cleanup(tensor_array_release))) struct tensor_array

/* Inserts the dimensions of `prefix` before those of a shape, unless its rank is unknown. */
static int prepend(const struct mu_shape *prefix, struct mu_pshape *to, struct mu_err *err)
{
	struct mu_pshape old = *to;

	if (old.rank < 0)
		return 0;
	if (old.rank + prefix->rank > MU_MAX_RANK)
		return mu_invalid(err, "%s before %s would be more than %d dimensions",
				  mu_shape_str(prefix), mu_pshape_str(&old), MU_MAX_RANK);
	to->rank += prefix->rank;
	memcpy(to->dim, prefix->dim, (size_t)prefix->rank * sizeof *to->dim);
	memcpy(to->dim + prefix->rank, old.dim, (size_t)old.rank * sizeof *to->dim);
	return 0;
}

/* Creates a gradient array for a.  The element shapes begin with `prefix`. */
static int gradient_new(const struct tensor_array *a, const struct mu_shape *prefix,
			struct tensor_array **out, struct mu_err *err)
{
	struct tensor_array *g = array_new(a->dtype, &a->element);
	int rc;

	g->is_gradient = true;
	g->identical = a->identical;
	g->n_split = a->n_split;
	rc = tensor_array_resize(g, a->n, err);
	if (!rc)
		rc = prepend(prefix, &g->element, err);
	for (int64_t i = 0; i < a->n && !rc; i++) {
		g->slots[i].shape = a->slots[i].shape;
		rc = prepend(prefix, &g->slots[i].shape, err);
	}
	if (rc)
		resource_unref(&g->base);
	else
		*out = g;
	return rc;
}

/* Outputs the gradient array for the attribute `source`. The first call creates it. */
static int output_gradient(struct kernel_call *c, const struct mu_shape *prefix, struct mu_err *err)
{
	MU_AUTO_FREE char *container = NULL, *name = NULL;
	struct tensor_array *g;
	struct resource *r;
	int rc;

	{
		AUTO_ARRAY *a = NULL; /* released before the call below, which takes another lock */

		MU_RETURN_IF_ERROR(tensor_array_hold(c, &a, err));
		MU_RETURN_IF_ERROR(gradient_new(a, prefix, &g, err));
		container = mu_xstrdup(a->base.container);
		name = mu_xasprintf("%s@%s", a->base.name, args_attr_string(c->node, "source", ""));
	}
	resource_ref(&g->base);
	rc = resources_find_or_create(c->runtime->resources, container, name, &array_type,
				      return_array, g, &r, err);
	if (rc || r != &g->base)
		resource_unref(&g->base); /* the table did not take it */
	resource_unref(&g->base);
	if (rc)
		return rc;
	resource_unref(r);
	MU_RETURN_IF_ERROR(handle_output(c, container, name, &array_type, err));
	return new_flow(c, err);
}

static int gradient(struct kernel_call *c, struct mu_err *err)
{
	struct mu_shape none = mu_shape_scalar();

	return output_gradient(c, &none, err);
}

static int gradient_with_shape(struct kernel_call *c, struct mu_err *err)
{
	struct mu_shape prefix;
	int rc = args_rank(c, 2, 1, err);

	if (!rc)
		rc = args_shape(c, 2, &prefix, err);
	return rc ? rc : output_gradient(c, &prefix, err);
}

static int close_array(struct kernel_call *c, struct mu_err *err)
{
	return handle_remove(c, &array_type, err);
}

static int tensor_array_size_of(struct kernel_call *c, struct mu_err *err)
{
	AUTO_ARRAY *a = NULL;

	MU_RETURN_IF_ERROR(tensor_array_hold(c, &a, err));
	int32_t n = (int32_t)a->n;
	return kernel_out_value(c, 0, MU_INT32, &n, err);
}

static int check_dtype(const struct kernel_call *c, const struct tensor_array *a,
		       struct mu_err *err)
{
	enum mu_dtype dtype = args_attr_type(c->node, "dtype", MU_DT_INVALID);

	return dtype == a->dtype
		   ? 0
		   : mu_invalid(err, "TensorArray dtype is %s but Op requested dtype %s.",
				mu_dtype_name(a->dtype), mu_dtype_name(dtype));
}

/* ---- one element ---- */

/* Takes t's reference, also on failure. */
static int tensor_array_put(struct tensor_array *a, int64_t at, struct mu_tensor t,
			    struct mu_err *err)
{
	int rc = 0;

	if (t.dtype != a->dtype)
		rc = mu_invalid(err, "TensorArray dtype is %s but Op is trying to write dtype %s.",
				mu_dtype_name(a->dtype), mu_dtype_name(t.dtype));
	else if (!mu_shape_matches(&t.shape, &a->element))
		rc =
		    mu_invalid(err,
			       "TensorArray %s: Could not write to TensorArray index %lld because "
			       "the value shape is %s which is incompatible with the TensorArray's "
			       "inferred element shape: %s (consider setting infer_shape=False).",
			       a->base.name, (long long)at, mu_shape_str(&t.shape),
			       mu_pshape_str(&a->element));
	else if (at < 0 || (at >= a->n && !a->dynamic))
		rc = mu_invalid(err,
				"TensorArray %s: Tried to write to index %lld but array is not "
				"resizeable and size is: %lld",
				a->base.name, (long long)at, (long long)a->n);
	else if (at >= a->n)
		rc = tensor_array_resize(a, at + 1, err);
	if (!rc) {
		struct slot *s = &a->slots[at];
		if (!a->is_gradient && (s->cleared || mu_tensor_is_set(&s->value)))
			rc = mu_invalid(err,
					"TensorArray %s: Could not write to TensorArray index %lld "
					"because it has already been %s.",
					a->base.name, (long long)at,
					s->cleared ? "read" : "written to");
		else if (!(rc = sum_add(&s->value, &t, err))) {
			s->shape.rank = t.shape.rank;
			memcpy(s->shape.dim, t.shape.dim, sizeof s->shape.dim);
			if (a->identical)
				a->element = s->shape;
		}
	}
	mu_tensor_unref(&t);
	return rc;
}

static int zeros(struct kernel_call *c, enum mu_dtype t, const struct mu_pshape *p,
		 struct mu_tensor *out, struct mu_err *err)
{
	struct mu_shape s;
	int rc;

	if (p->rank < 0)
		return mu_invalid(err, "its shape is not known");
	MU_RETURN_IF_ERROR(mu_shape_set(&s, p->rank, p->dim, err));
	MU_RETURN_IF_ERROR(move_scratch(c, t, &s, out, err));
	if ((rc = move_fill(out, NULL, err)))
		mu_tensor_unref(out);
	return rc;
}

static int tensor_array_get(struct kernel_call *c, struct tensor_array *a, int64_t at,
			    struct mu_tensor *out, struct mu_err *err)
{
	if (at < 0 || at >= a->n)
		return mu_invalid(
		    err, "TensorArray %s: Tried to read from index %lld but array size is: %lld",
		    a->base.name, (long long)at, (long long)a->n);
	struct slot *s = &a->slots[at];
	if (s->cleared)
		return mu_invalid(
		    err,
		    "TensorArray %s: Could not read index %lld twice because it was cleared after "
		    "a previous read (perhaps try setting clear_after_read = false?).",
		    a->base.name, (long long)at);
	if (!mu_tensor_is_set(&s->value)) {
		/* Writes since then may have completed the shape. */
		const struct mu_pshape *shape = a->identical ? &a->element : &s->shape;

		if (zeros(c, a->dtype, shape, out, err))
			return mu_invalid(
			    err,
			    "TensorArray %s: Could not read from TensorArray index %lld.  "
			    "Furthermore, the element shape is not fully defined: %s.  It is "
			    "possible you are working with a resizeable TensorArray and "
			    "stop_gradients is not allowing the gradients to be written.  If you "
			    "set the full element_shape property on the forward TensorArray, the "
			    "proper all-zeros tensor will be returned instead of incurring this "
			    "error.",
			    a->base.name, (long long)at, mu_pshape_str(shape));
		return 0;
	}
	MU_RETURN_IF_ERROR(move_to_device(c, &s->value, out, err));
	if (a->clear) {
		mu_tensor_unref(&s->value);
		s->cleared = true;
	}
	return 0;
}

static int write(struct kernel_call *c, struct mu_err *err)
{
	AUTO_ARRAY *a = NULL;
	int64_t at;

	MU_RETURN_IF_ERROR(args_int(c, 1, &at, err));
	MU_RETURN_IF_ERROR(tensor_array_hold(c, &a, err));
	MU_RETURN_IF_ERROR(tensor_array_put(a, at, mu_tensor_ref(kernel_in(c, 2)), err));
	return output_flow(c);
}

static int read(struct kernel_call *c, struct mu_err *err)
{
	AUTO_ARRAY *a = NULL;
	struct mu_tensor t;
	int64_t at;

	MU_RETURN_IF_ERROR(args_int(c, 1, &at, err));
	MU_RETURN_IF_ERROR(tensor_array_hold(c, &a, err));
	MU_RETURN_IF_ERROR(check_dtype(c, a, err));
	MU_RETURN_IF_ERROR(tensor_array_get(c, a, at, &t, err));
	kernel_out_take(c, 0, t);
	return 0;
}

/* ---- many elements ---- */

struct element_refs { /* elements that are to be joined */
	struct mu_tensor *items;
	int64_t n;
};

static void element_refs_free(struct element_refs *p)
{
	for (int64_t i = 0; p->items && i < p->n; i++)
		mu_tensor_unref(&p->items[i]);
	free(p->items);
}

static int array_collect(struct kernel_call *c, struct tensor_array *a,
			 const struct mu_tensor *indices, struct element_refs *p,
			 struct mu_err *err)
{
	int64_t n = indices ? indices->shape.count : a->is_gradient ? a->n_split : a->n;
	int rc = 0;

	MU_RETURN_IF_ERROR(check_dtype(c, a, err));
	p->items = calloc((size_t)n + 1, sizeof *p->items);
	if (!p->items)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for %lld elements",
			       (long long)n);
	for (; p->n < n && !rc; p->n += !rc)
		rc = tensor_array_get(c, a, indices ? mu_tensor_int(indices, p->n) : p->n,
				      &p->items[p->n], err);
	return rc;
}

/* Joins elements along their first dimension (Concat) or, with new_dim, a new one (Gather). */
static int tensor_array_join(struct kernel_call *c, const struct element_refs *p, enum mu_dtype t,
			     bool new_dim, const struct mu_pshape *element, struct mu_tensor **out,
			     struct mu_err *err)
{
	struct mu_shape shape = mu_shape_scalar();
	struct mu_pshape tail = *element;
	int64_t first_dim = 0, at = 0;
	int rc = 0, skip = new_dim ? 0 : 1;

	for (int64_t i = 0; i < p->n; i++) {
		const struct mu_shape *s = &p->items[i].shape, *s0 = &p->items[0].shape;
		if (s->rank != s0->rank || s->rank < skip ||
		    !mu_shape_part_eq(s, skip, s0, skip, s->rank - skip))
			return mu_invalid(err,
					  "TensorArray has inconsistent shapes.  Index 0 has "
					  "shape: %s but index %lld has shape: %s",
					  mu_shape_str(s0), (long long)i, mu_shape_str(s));
		first_dim += new_dim ? 1 : s->dim[0];
		tail = (struct mu_pshape){.rank = s->rank - skip};
		memcpy(tail.dim, s->dim + skip, (size_t)tail.rank * sizeof *tail.dim);
	}
	if (tail.rank < 0)
		return mu_fail(err, MU_UNIMPLEMENTED,
			       "TensorArray has size zero, but element shape %s is not fully "
			       "defined. Currently only static shapes are supported when "
			       "packing zero-size TensorArrays.",
			       mu_pshape_str(&tail));
	MU_RETURN_IF_ERROR(mu_shape_push(&shape, first_dim, err));
	MU_RETURN_IF_ERROR(mu_shape_append(&shape, tail.rank, tail.dim, err));
	MU_RETURN_IF_ERROR(kernel_out_on_device(c, 0, t, &shape, out, err));
	for (int64_t i = 0; i < p->n && !rc; at += p->items[i++].shape.count)
		rc = move_runs(*out, &p->items[i],
			       &(struct runs){1, p->items[i].shape.count, {at, 0}, {0, 0}}, err);
	return rc;
}

/* Without indices (TensorArrayPack) the op returns all elements. */
static int tensor_array_gather(struct kernel_call *c, struct mu_err *err)
{
	__attribute__((cleanup(element_refs_free))) struct element_refs p = {0};
	const struct mu_attr *shape = mu_node_attr(c->node, "element_shape");
	AUTO_ARRAY *a = NULL;
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(tensor_array_hold(c, &a, err));
	MU_RETURN_IF_ERROR(array_collect(c, a, c->n_in > 2 ? kernel_in(c, 1) : NULL, &p, err));
	const struct mu_pshape *element = &a->element;
	if (element->rank < 0 && shape && shape->kind == MU_ATTR_SHAPE)
		element = shape->shape;
	return tensor_array_join(c, &p, a->dtype, true, element, &out, err);
}

static int tensor_array_concat(struct kernel_call *c, struct mu_err *err)
{
	__attribute__((cleanup(element_refs_free))) struct element_refs p = {0};
	const struct mu_attr *shape = mu_node_attr(c->node, "element_shape_except0");
	AUTO_ARRAY *a = NULL;
	struct mu_tensor *out, *lengths;

	MU_RETURN_IF_ERROR(tensor_array_hold(c, &a, err));
	MU_RETURN_IF_ERROR(array_collect(c, a, NULL, &p, err));
	MU_RETURN_IF_ERROR(tensor_array_join(
	    c, &p, a->dtype, false,
	    shape && shape->kind == MU_ATTR_SHAPE ? shape->shape : &(struct mu_pshape){.rank = -1},
	    &out, err));
	MU_RETURN_IF_ERROR(kernel_out_vec(c, 1, MU_INT64, p.n, &lengths, err));
	for (int64_t i = 0; i < p.n; i++)
		MU_DATA(int64_t, lengths)[i] = p.items[i].shape.dim[0];
	return 0;
}

static int tensor_array_scatter(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *indices = kernel_in(c, 1), *value = kernel_in(c, 2);
	AUTO_ARRAY *a = NULL;
	int rc = 0;

	MU_RETURN_IF_ERROR(tensor_array_hold(c, &a, err));
	if (indices->shape.rank != 1 || value->shape.rank < 1 ||
	    indices->shape.count != value->shape.dim[0])
		return mu_invalid(err,
				  "Expected len(indices) == values.shape[0], but saw: %lld vs. %s",
				  (long long)indices->shape.count, mu_shape_str(&value->shape));
	for (int64_t i = 0; i < indices->shape.count && !rc; i++) {
		struct mu_tensor row;
		if (!(rc = move_rows_out(c, value, i, 1, true, &row, err)))
			rc = tensor_array_put(a, mu_tensor_int(indices, i), row, err);
	}
	return rc ? rc : output_flow(c);
}

/* A gradient array keeps the n_split of the array that it belongs to. */
static void mark_split(struct tensor_array *a, int64_t n)
{
	if (!a->is_gradient)
		a->n_split = n;
}

static int tensor_array_unpack(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *value = kernel_in(c, 1);
	AUTO_ARRAY *a = NULL;
	int rc = 0;

	MU_RETURN_IF_ERROR(tensor_array_hold(c, &a, err));
	if (value->shape.rank < 1)
		return mu_invalid(err,
				  "Input value for unpack must be at least a vector but "
				  "received: %s",
				  mu_shape_str(&value->shape));
	for (int64_t i = 0; i < value->shape.dim[0] && !rc; i++) {
		struct mu_tensor row;
		if (!(rc = move_rows_out(c, value, i, 1, true, &row, err)))
			rc = tensor_array_put(a, i, row, err);
	}
	mark_split(a, value->shape.dim[0]);
	return rc ? rc : output_flow(c);
}

static int tensor_array_split(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *value = kernel_in(c, 1), *lengths = kernel_in(c, 2);
	AUTO_ARRAY *a = NULL;
	int64_t at = 0;
	int rc = 0;

	MU_RETURN_IF_ERROR(tensor_array_hold(c, &a, err));
	if (value->shape.rank < 1 || lengths->shape.rank != 1)
		return mu_invalid(err,
				  "Expected value to be at least a vector, and lengths a vector");
	for (int64_t i = 0; i < lengths->shape.count && !rc; i++) {
		int64_t n = mu_tensor_int(lengths, i);
		struct mu_tensor part;
		if (n < 0 || n > value->shape.dim[0] - at)
			return mu_invalid(err,
					  "Expected sum of lengths to be equal to values.shape[0], "
					  "but sum of lengths is over it and value's shape is: %s",
					  mu_shape_str(&value->shape));
		if (!(rc = move_rows_out(c, value, at, n, false, &part, err)))
			rc = tensor_array_put(a, i, part, err);
		at += n;
	}
	mark_split(a, lengths->shape.count);
	if (!rc && at != value->shape.dim[0])
		return mu_invalid(err,
				  "Expected sum of lengths to be equal to values.shape[0], but sum "
				  "of lengths is %lld and value's shape is: %s",
				  (long long)at, mu_shape_str(&value->shape));
	return rc ? rc : output_flow(c);
}

/* The versions of an op have the same kernel: handle_find and handle_output accept all handles. */
static const struct kernel rows[] = {
    {"TensorArray TensorArrayV2 TensorArrayV3", .run = tensor_array_make},
    {"TensorArrayGrad TensorArrayGradV2 TensorArrayGradV3", .run = gradient},
    {"TensorArrayWrite TensorArrayWriteV2 TensorArrayWriteV3", .run = write},
    {"TensorArrayRead TensorArrayReadV2 TensorArrayReadV3", .run = read},
    {"TensorArrayGather TensorArrayGatherV2 TensorArrayGatherV3 TensorArrayPack",
     .run = tensor_array_gather},
    {"TensorArrayScatter TensorArrayScatterV2 TensorArrayScatterV3", .run = tensor_array_scatter},
    {"TensorArrayUnpack", .run = tensor_array_unpack},
    {"TensorArrayConcat TensorArrayConcatV2 TensorArrayConcatV3", .run = tensor_array_concat},
    {"TensorArraySplit TensorArraySplitV2 TensorArraySplitV3", .run = tensor_array_split},
    {"TensorArraySize TensorArraySizeV2 TensorArraySizeV3", .run = tensor_array_size_of},
    {"TensorArrayClose TensorArrayCloseV2 TensorArrayCloseV3", .run = close_array},
    {"TensorArrayGradWithShape", .run = gradient_with_shape},
};
KERNEL_TABLE(control_tensor_array, rows)
