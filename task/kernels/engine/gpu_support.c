/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that GPU kernels share: finding and launching device code, outputs, scratch memory. */
#include <stdio.h>

#include "task/kernels/engine/gpu_table.h"

const char *gpu_type_name(enum mu_dtype t)
{
	static const char *const names[MU_DT_COUNT] = {
	    [MU_FLOAT] = "f32", [MU_DOUBLE] = "f64", [MU_HALF] = "f16", [MU_BFLOAT16] = "bf16",
	    [MU_INT64] = "i64", [MU_INT32] = "i32",  [MU_BOOL] = "u8",  [MU_UINT8] = "u8",
	};

	return (unsigned)t < MU_DT_COUNT ? names[t] : NULL;
}

static int launch(struct gpu *g, const char *name, struct gpu_grid grid, const void *args,
		  size_t size, struct mu_err *err)
{
	void *kernel;

	MU_RETURN_IF_ERROR(gpu_kernel(g, name, &kernel, err));
	return gpu_launch_sized(g, kernel, grid, args, size, err);
}

int gpu_run_sized(struct gpu *g, const char *name, int64_t n, const void *args, size_t size,
		  struct mu_err *err)
{
	return n ? launch(g, name, gpu_grid_for(g, n), args, size, err) : 0;
}

enum { NAME_LEN = 96 };

static int name_of(char *out, const char *name, enum mu_dtype type, struct mu_err *err)
{
	const char *t = gpu_type_name(type);

	if (!t)
		return mu_fail(err, MU_UNIMPLEMENTED, "%s has no GPU kernel for type %s", name,
			       mu_dtype_name(type));
	snprintf(out, NAME_LEN, "%s_%s", name, t);
	return 0;
}

int gpu_run_type_sized(struct gpu *g, const char *name, enum mu_dtype type, int64_t n,
		       const void *args, size_t size, struct mu_err *err)
{
	char full_name[NAME_LEN];

	MU_RETURN_IF_ERROR(name_of(full_name, name, type, err));
	return gpu_run_sized(g, full_name, n, args, size, err);
}

int gpu_run_width_sized(struct gpu *g, const char *name, enum mu_dtype type, int64_t n,
			const void *args, size_t size, struct mu_err *err)
{
	char full_name[NAME_LEN];

	snprintf(full_name, sizeof full_name, "%s_%zu", name, 8 * mu_dtype_size(type));
	return gpu_run_sized(g, full_name, n, args, size, err);
}

int gpu_run_rows_sized(struct gpu *g, const char *name, enum mu_dtype type, int64_t rows,
		       const void *args, size_t size, struct mu_err *err)
{
	enum { THREADS = 64, MAX_BLOCKS = 65535 }; /* THREADS: ROW_THREADS of engine/cuda/block.h */
	const unsigned blocks = rows < MAX_BLOCKS ? (unsigned)rows : MAX_BLOCKS;
	char full_name[NAME_LEN];
	int rc = name_of(full_name, name, type, err);

	return rc || !rows
		   ? rc
		   : launch(g, full_name, (struct gpu_grid){blocks, THREADS}, args, size, err);
}

int gpu_out(struct kernel_call *c, unsigned i, enum mu_dtype dtype, const struct mu_shape *shape,
	    uint64_t *at, struct mu_err *err)
{
	MU_RETURN_IF_ERROR(
	    gpu_tensor_new(kernel_gpu(c), dtype, shape, c->node->name, &c->out[i].tensor, err));
	*at = gpu_address(&c->out[i].tensor);
	return 0;
}

int gpu_out_reuse(struct kernel_call *c, unsigned i, unsigned from, enum mu_dtype dtype,
		  const struct mu_shape *shape, uint64_t *at, struct mu_err *err)
{
	struct mu_tensor *in = &c->in[from].tensor;
	struct mu_tbuf *b = in->buf;

	if (c->in[from].is_constant || !b || !b->device || b->dtype != dtype ||
	    b->count != shape->count || in->shape.count != shape->count || in->data != b->data ||
	    !mu_tensor_is_sole(in))
		return gpu_out(c, i, dtype, shape, at, err);
	struct mu_tensor *to = &c->out[i].tensor;
	to->dtype = dtype;
	to->buf = b;
	to->data = in->data;
	mu_shape_copy(&to->shape, shape);
	*at = gpu_address(to);
	in->buf = NULL;
	return 0;
}

int gpu_scratch(struct kernel_call *c, enum mu_dtype dtype, int64_t count, struct mu_tensor *out,
		struct mu_err *err)
{
	struct mu_shape s = mu_shape_vec(count);

	return gpu_tensor_new(kernel_gpu(c), dtype, &s, c->node->name, out, err);
}
