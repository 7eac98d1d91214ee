/* SPDX-License-Identifier: Apache-2.0 */
/* See move.h.  On a GPU: engine/move.cu.h. */
#include "task/kernels/engine/move.h"

#include <string.h>

#include "task/kernels/array/rows.h"
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/gpu_runs.h"
#include "task/runtime/runtime.h"

_Static_assert((int)VIEW_MAX_RANK <= 2 * CUDA_MAX_RANK, "every view has to fit");

/* A call without a step folds a constant, in host memory. */
static bool outputs_on_gpu(const struct kernel_call *c, enum mu_dtype t)
{
	return mu_dtype_size(t) && c->step && kernel_gpu(c) &&
	       c->runtime->kernels->find_device(c->node);
}

int kernel_out_on_device(struct kernel_call *c, unsigned i, enum mu_dtype dtype,
			 const struct mu_shape *shape, struct mu_tensor **out, struct mu_err *err)
{
	uint64_t at;

	if (!outputs_on_gpu(c, dtype))
		return kernel_out(c, i, dtype, shape, out, err);
	*out = &c->out[i].tensor;
	return gpu_out(c, i, dtype, shape, &at, err);
}

int move_out_reuse(struct kernel_call *c, unsigned i, unsigned from, enum mu_dtype dtype,
		   const struct mu_shape *shape, struct mu_tensor **out, struct mu_err *err)
{
	uint64_t at;

	if (!outputs_on_gpu(c, dtype))
		return kernel_out_reuse(c, i, from, dtype, shape, out, err);
	*out = &c->out[i].tensor;
	return gpu_out_reuse(c, i, from, dtype, shape, &at, err);
}

int move_scratch(struct kernel_call *c, enum mu_dtype dtype, const struct mu_shape *shape,
		 struct mu_tensor *out, struct mu_err *err)
{
	struct device *d =
	    outputs_on_gpu(c, dtype) ? device_of_node(c->node, c->runtime) : &host_device;

	return d->ops->tensor_new(d, dtype, shape, c->node->name, out, err);
}

int move_numbers(struct kernel_call *c, const struct mu_tensor *out,
		 const struct mu_tensor *numbers, struct mu_tensor *copy, struct mu_err *err)
{
	struct device *d = device_of_tensor(out);

	return d->ops->copy_in(d, numbers, c->node->name, copy, err);
}

static int launch_view(struct gpu *g, const char *name, const struct mu_tensor *out,
		       const struct mu_tensor *in, const struct view *v, struct mu_err *err)
{
	struct view_args a = {
	    gpu_address(out), gpu_address(in), 1, v->offset, v->rank, 0, {0}, {0}};

	for (int d = 0; d < v->rank; d++) {
		a.n *= v->dim[d];
		a.dim[d] = v->dim[d];
		a.stride[d] = v->stride[d];
	}
	return gpu_run_width(g, name, out->dtype, a.n, &a, err);
}

int move_read(const struct mu_tensor *out, const struct mu_tensor *in, const struct view *v,
	      struct mu_err *err)
{
	struct gpu *g = gpu_of_tensor(out);

	if (g)
		return launch_view(g, "view_read", out, in, v, err);
	view_read(in->dtype, out->data, in->data, v);
	return 0;
}

int move_write(const struct mu_tensor *out, const struct view *v, const struct mu_tensor *in,
	       struct mu_err *err)
{
	struct gpu *g = gpu_of_tensor(out);

	if (g)
		return launch_view(g, "view_write", out, in, v, err);
	view_write(out->dtype, out->data, v, in->data);
	return 0;
}

int move_fill(const struct mu_tensor *out, const struct mu_tensor *one, struct mu_err *err)
{
	struct gpu *g = gpu_of_tensor(out);

	if (g && one) {
		struct view repeated = {.rank = 1, .dim = {out->shape.count}, .stride = {0}};
		return launch_view(g, "view_read", out, one, &repeated, err);
	}
	if (g)
		return gpu_fill(g, out, 0, err);
	if (one)
		elems_fill(out->dtype, out->data, 0, one->data, out->shape.count);
	else
		elems_zero(out->dtype, out->data, 0, out->shape.count);
	return 0;
}

int move_to_device(struct kernel_call *c, const struct mu_tensor *stored, struct mu_tensor *out,
		   struct mu_err *err)
{
	struct gpu *to = outputs_on_gpu(c, stored->dtype) ? kernel_gpu(c) : NULL,
		   *from = gpu_of_tensor(stored);

	if (from == to) {
		*out = mu_tensor_ref(stored);
		return 0;
	}
	if (!from)
		return gpu_copy_to_device(to, stored, c->node->name, out, err);
	return mu_fail(err, MU_FAILED_PRECONDITION,
		       "%s reads a stored tensor that is in the memory of a GPU, but runs on "
		       "another device: place it on the GPU of the op that stored the tensor",
		       c->node->op);
}

int move_all(const struct mu_tensor *out, const struct mu_tensor *in, struct mu_err *err)
{
	struct gpu *g = gpu_of_tensor(out);

	if (out->data == in->data || !out->shape.count)
		return 0;
	if (g)
		return gpu_copy_within(g, gpu_address(out), gpu_address(in), mu_tensor_bytes(out),
				       err);
	elems_copy(out->dtype, out->data, 0, in->data, 0, out->shape.count);
	return 0;
}

int move_runs(const struct mu_tensor *out, const struct mu_tensor *in, const struct runs *r,
	      struct mu_err *err)
{
	struct gpu *g = gpu_of_tensor(out);

	if (!r->run) /* the loop over rows could be as long as the largest dimension */
		return 0;
	if (g) {
		size_t size = mu_dtype_size(out->dtype);
		struct part_args a = {gpu_address(out) + (size_t)r->to.at * size,
				      gpu_address(in) + (size_t)r->from.at * size,
				      r->rows,
				      r->run,
				      r->to.step,
				      r->from.step};
		return gpu_run_width(g, "part", out->dtype, r->rows * r->run, &a, err);
	}
	for (int64_t i = 0; i < r->rows; i++)
		elems_copy(out->dtype, out->data, r->to.at + i * r->to.step, in->data,
			   r->from.at + i * r->from.step, r->run);
	return 0;
}

/* Launches a kernel for CUDA_MAX_LIST parts at a time. */
static int parts_launch(struct gpu *g, const struct mu_tensor *whole, const struct mu_tensor *parts,
			int64_t n, int64_t part_size, bool cut, struct mu_err *err)
{
	const size_t size = mu_dtype_size(whole->dtype);

	for (int64_t i = 0; i < n;) {
		struct parts_args a = {.whole = gpu_address(whole) + (size_t)(i * part_size) * size,
				       .each = part_size,
				       .cut = cut};
		int count = 0;
		for (; i < n && count < CUDA_MAX_LIST; i++)
			a.part[count++] = gpu_address(&parts[i]);
		a.n = count * part_size;
		MU_RETURN_IF_ERROR(gpu_run_width(g, "parts", whole->dtype, a.n, &a, err));
	}
	return 0;
}

int move_join(const struct mu_tensor *whole, const struct mu_tensor *parts, int64_t n,
	      int64_t part_size, struct mu_err *err)
{
	struct gpu *g = gpu_of_tensor(whole);

	if (g)
		return parts_launch(g, whole, parts, n, part_size, false, err);
	for (int64_t i = 0; i < n; i++)
		if (mu_tensor_is_set(&parts[i]))
			elems_copy(whole->dtype, whole->data, i * part_size, parts[i].data, 0,
				   part_size);
		else
			elems_zero(whole->dtype, whole->data, i * part_size, part_size);
	return 0;
}

int move_cut(const struct mu_tensor *parts, int64_t n, int64_t part_size,
	     const struct mu_tensor *whole, struct mu_err *err)
{
	struct gpu *g = gpu_of_tensor(whole);

	if (g)
		return parts_launch(g, whole, parts, n, part_size, true, err);
	for (int64_t i = 0; i < n; i++)
		elems_copy(whole->dtype, parts[i].data, 0, whole->data, i * part_size, part_size);
	return 0;
}

static int picks_launch(struct gpu *g, const struct mu_tensor *out, const struct mu_tensor *in,
			const struct mu_tensor *indices, const struct picks *p, struct mu_err *err)
{
	uint64_t size = mu_dtype_size(out->dtype), index = mu_dtype_size(indices->dtype);
	int64_t out_count = p->outer * p->count * p->inner,
		in_count = p->outer * p->limit * p->inner;

	for (uint64_t b = 0; b < (uint64_t)p->batches; b++) {
		struct gather_args a = {
		    .out = gpu_address(out) + b * (uint64_t)out_count * size,
		    .in = gpu_address(in) + b * (uint64_t)in_count * size,
		    .indices = gpu_address(indices) + b * (uint64_t)p->count * index,
		    .outer = p->outer,
		    .count = p->count,
		    .inner = p->inner,
		    .limit = p->limit,
		    .wide = indices->dtype == MU_INT64,
		};
		MU_RETURN_IF_ERROR(gpu_run_width(g, "gather", out->dtype, out_count, &a, err));
	}
	return 0;
}

int move_rows_out(struct kernel_call *c, const struct mu_tensor *t, int64_t at, int64_t n, bool row,
		  struct mu_tensor *out, struct mu_err *err)
{
	int64_t dims[MU_MAX_RANK],
	    row_size = t->shape.dim[0] ? t->shape.count / t->shape.dim[0] : 0;
	struct mu_shape s;
	int rc;

	memcpy(dims, t->shape.dim, sizeof dims);
	dims[0] = n;
	MU_RETURN_IF_ERROR(mu_shape_set(&s, t->shape.rank - row, dims + row, err));
	MU_RETURN_IF_ERROR(move_scratch(c, t->dtype, &s, out, err));
	rc = move_runs(out, t, &(struct runs){1, s.count, {0, 0}, {at * row_size, 0}}, err);
	if (rc)
		mu_tensor_unref(out);
	return rc;
}

int move_picks(const struct mu_tensor *out, const struct mu_tensor *in,
	       const struct mu_tensor *indices, const struct picks *p, struct mu_err *err)
{
	struct gpu *g = gpu_of_tensor(out);
	size_t size = elems_size(in->dtype);

	if (g)
		return picks_launch(g, out, in, indices, p, err);
	MU_RETURN_IF_ERROR(rows_check(indices, p->limit, err));
	for (int64_t b = 0; b < p->batches; b++)
		rows_gather(in->dtype,
			    (char *)out->data + (size_t)(b * p->outer * p->count * p->inner) * size,
			    (char *)in->data + (size_t)(b * p->outer * p->limit * p->inner) * size,
			    indices, b * p->count, p->count, p->outer, p->limit, p->inner);
	return 0;
}

static int positions_launch(struct kernel_call *c, const struct mu_tensor *out,
			    const struct mu_tensor *in, const struct mu_tensor *indices, int64_t n,
			    int depth, struct mu_err *err)
{
	GPU_RUNS_AUTO at = {0};

	if (!out->shape.count)
		return 0;
	MU_RETURN_IF_ERROR(gpu_positions(c, indices, n, &in->shape, depth, &at, err));
	int64_t row = mu_shape_product(&in->shape, depth, in->shape.rank);
	struct picks p = {1, 1, n, row, in->shape.count / row};
	return picks_launch(kernel_gpu(c), out, in, &at.keys, &p, err);
}

int move_positions(struct kernel_call *c, const struct mu_tensor *out, const struct mu_tensor *in,
		   const struct mu_tensor *indices, int64_t n, int depth, struct mu_err *err)
{
	const struct mu_shape *s = &in->shape;
	int64_t row = mu_shape_product(s, depth, s->rank);

	if (gpu_of_tensor(out))
		return positions_launch(c, out, in, indices, n, depth, err);
	for (int64_t i = 0; i < n; i++) {
		int64_t at = 0;
		for (int d = 0; d < depth; d++) {
			int64_t k = mu_tensor_int(indices, i * depth + d);
			if (k < 0 || k >= s->dim[d])
				return args_fail_position(indices, i, depth, "param shape", s,
							  c->node, err);
			at = at * s->dim[d] + k;
		}
		elems_copy(in->dtype, out->data, i * row, in->data, at * row, row);
	}
	return 0;
}

int move_one_hot(const struct mu_tensor *out, const struct mu_tensor *indices, int64_t depth,
		 int64_t inner, const struct mu_tensor *on, const struct mu_tensor *off,
		 struct mu_err *err)
{
	struct gpu *g = gpu_of_tensor(out);

	if (g) {
		struct one_hot_args a = {.out = gpu_address(out),
					 .indices = gpu_address(indices),
					 .prefix = inner ? indices->shape.count / inner : 0,
					 .depth = depth,
					 .suffix = inner,
					 .wide = indices->dtype == MU_INT64};
		memcpy(&a.on, on->data, mu_dtype_size(on->dtype));
		memcpy(&a.off, off->data, mu_dtype_size(off->dtype));
		return gpu_run_width(g, "one_hot", out->dtype, out->shape.count, &a, err);
	}
	elems_fill(out->dtype, out->data, 0, off->data, out->shape.count);
	for (int64_t i = 0; i < indices->shape.count && depth; i++) {
		int64_t v = mu_tensor_int(indices, i);
		if (v >= 0 && v < depth)
			elems_copy(out->dtype, out->data,
				   (i / inner * depth + v) * inner + i % inner, on->data, 0, 1);
	}
	return 0;
}
