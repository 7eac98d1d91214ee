/* SPDX-License-Identifier: Apache-2.0 */
#include "task/runtime/kernel.h"

#include "lib/ops/op_def.h"
#include "task/runtime/exec_graph.h"

/* The patterns of an op's row do not apply to references and dead values: these get rank -1. */
int kernel_check_shapes(const struct mu_node *n, const struct value *in, unsigned n_in,
			struct mu_err *err)
{
	struct mu_pshape embedded[8], *shapes = embedded;
	MU_AUTO_FREE struct mu_pshape *allocated = NULL;

	if (n_in > MU_COUNT(embedded))
		shapes = allocated = MU_NEW_ARRAY(struct mu_pshape, n_in);
	struct mu_shape_ctx c = {.node = n, .n_in = n_in, .in = shapes};

	for (unsigned i = 0; i < n_in; i++)
		if (in[i].ref || in[i].dead)
			shapes[i].rank = -1;
		else
			shapes[i] = mu_pshape_of(&in[i].tensor.shape);
	return mu_op_shapes(&c, err);
}

int kernel_out(struct kernel_call *c, unsigned i, enum mu_dtype dtype, const struct mu_shape *shape,
	       struct mu_tensor **out, struct mu_err *err)
{
	int rc = mu_tensor_new(&c->out[i].tensor, dtype, shape, err);

	if (!rc)
		*out = &c->out[i].tensor;
	return rc;
}

int kernel_out_dims(struct kernel_call *c, unsigned i, enum mu_dtype dtype, int n,
		    const int64_t *dims, struct mu_tensor **out, struct mu_err *err)
{
	struct mu_shape shape;

	MU_RETURN_IF_ERROR(mu_shape_set(&shape, n, dims, err));
	return kernel_out(c, i, dtype, &shape, out, err);
}

int kernel_out_vec(struct kernel_call *c, unsigned i, enum mu_dtype dtype, int64_t n,
		   struct mu_tensor **out, struct mu_err *err)
{
	struct mu_shape shape = mu_shape_vec(n);

	return kernel_out(c, i, dtype, &shape, out, err);
}

int kernel_out_scalar(struct kernel_call *c, unsigned i, enum mu_dtype dtype,
		      struct mu_tensor **out, struct mu_err *err)
{
	struct mu_shape shape = mu_shape_scalar();

	return kernel_out(c, i, dtype, &shape, out, err);
}

int kernel_out_value(struct kernel_call *c, unsigned i, enum mu_dtype dtype, const void *value,
		     struct mu_err *err)
{
	struct mu_tensor t;

	MU_RETURN_IF_ERROR(mu_tensor_scalar(&t, dtype, value, err));
	kernel_out_take(c, i, t);
	return 0;
}

int kernel_out_string(struct kernel_call *c, unsigned i, struct mu_span text, struct mu_err *err)
{
	struct mu_tensor t;

	MU_RETURN_IF_ERROR(mu_tensor_string(&t, text.data, text.len, err));
	kernel_out_take(c, i, t);
	return 0;
}

/* Moves the buffer to the output.  The input keeps shape and pointer, so the kernel may still read
 * it, but not the reference. */
int kernel_out_reuse(struct kernel_call *c, unsigned i, unsigned from, enum mu_dtype dtype,
		     const struct mu_shape *shape, struct mu_tensor **out, struct mu_err *err)
{
	struct mu_tensor *in = &c->in[from].tensor;
	struct mu_tbuf *b = in->buf;

	if (!b || b->dtype != dtype || in->dtype != dtype || in->shape.count != shape->count ||
	    b->count != shape->count || in->data != b->data || !mu_dtype_size(dtype) ||
	    !mu_tensor_is_own(in))
		return kernel_out(c, i, dtype, shape, out, err);
	struct mu_tensor *to = *out = &c->out[i].tensor;
	to->dtype = dtype;
	to->buf = b;
	to->data = in->data;
	mu_shape_copy(&to->shape, shape);
	in->buf = NULL;
	return 0;
}

void kernel_out_take(struct kernel_call *c, unsigned i, struct mu_tensor t)
{
	mu_tensor_unref(&c->out[i].tensor);
	c->out[i].tensor = t;
}

int kernel_out_take_all(struct kernel_call *c, struct mu_tensor *all, int rc)
{
	for (unsigned i = 0; i < c->n_out; i++)
		if (rc)
			mu_tensor_unref(&all[i]);
		else
			kernel_out_take(c, i, all[i]);
	return rc;
}

void kernel_out_ref(struct kernel_call *c, unsigned i, struct variable *v)
{
	resource_ref(&v->base);
	c->out[i].ref = v;
}

void kernel_out_dead(struct kernel_call *c, unsigned i)
{
	c->out[i].dead = true;
}

void kernel_parallel(struct kernel_call *c, int64_t n, int64_t grain,
		     void (*body)(void *arg, int64_t from, int64_t to), void *arg)
{
	thread_pool_parallel(c->runtime->pool, n, grain, body, arg);
}
