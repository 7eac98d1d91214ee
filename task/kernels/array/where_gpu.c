/* SPDX-License-Identifier: Apache-2.0 */
/* CheckNumerics and Where on a GPU.  They need a result on the host before they can continue:
 * CheckNumerics whether all elements are finite, Where the number of true elements.  The completion
 * of the copy to the host finishes the call, so no thread waits. */

#include "task/kernels/engine/args.h"
#include "task/kernels/math/scan_gpu.h"

/* A call that waits for a copy of its result to the host. */
struct readback {
	struct kernel_call *c;
	struct mu_tensor device,
	    host; /* the result, on the GPU and on the host; Where: the counts */
	int (*on_copied)(struct readback *q, struct mu_err *err);
};

static void readback_end(struct readback *q, const struct mu_err *err)
{
	struct kernel_call *c = q->c;

	mu_tensor_unref(&q->device);
	mu_tensor_unref(&q->host);
	free(q);
	kernel_finish(c, err);
}

static void on_copy_end(void *arg, const struct mu_err *err)
{
	struct readback *q = arg;
	struct mu_err copy_err;

	if (!err && q->on_copied(q, &copy_err))
		err = &copy_err;
	readback_end(q, err);
}

/* Copies elements [at, at + n) of the result to the host. */
static int where_gpu_request(struct readback *q, int64_t at, int64_t n, struct mu_err *err)
{
	struct mu_tensor part = q->device;

	part.data = (char *)part.data + (size_t)at * mu_dtype_size(part.dtype);
	part.shape = mu_shape_vec(n);
	return gpu_copy_to_host(kernel_gpu(q->c), &part, &q->host, on_copy_end, q, err);
}

static struct readback *readback_new(struct kernel_call *c,
				     int (*on_copied)(struct readback *q, struct mu_err *err))
{
	struct readback *q = MU_NEW(struct readback);

	q->c = c;
	q->on_copied = on_copied;
	return q;
}

/* ---- CheckNumerics ---- */

static int check_numerics_done(struct readback *q, struct mu_err *err)
{
	const int32_t *wrong = q->host.data;

	if (wrong[0] || wrong[1])
		return mu_fail(err, MU_INVALID_ARGUMENT, "%s : Tensor had %s values",
			       args_attr_string(q->c->node, "message", ""),
			       wrong[0] && wrong[1] ? "Inf and NaN"
			       : wrong[0]           ? "Inf"
						    : "NaN");
	kernel_out_take(q->c, 0, mu_tensor_ref(kernel_in(q->c, 0)));
	return 0;
}

static void check_numerics_gpu(struct kernel_call *c)
{
	const struct mu_tensor *t = kernel_in(c, 0);
	struct check_numerics_args a = {.in = gpu_address(t), .n = t->shape.count};
	struct readback *q = readback_new(c, check_numerics_done);
	struct mu_err err;
	int rc = gpu_scratch(c, MU_INT32, 2, &q->device, &err);

	a.out = gpu_address(&q->device);
	if (rc || (rc = gpu_fill(kernel_gpu(c), &q->device, 0, &err)) ||
	    (rc = gpu_run_type(kernel_gpu(c), "wrong", t->dtype, a.n, &a, &err)) ||
	    (rc = where_gpu_request(q, 0, 2, &err)))
		readback_end(q, &err);
}

/* ---- Where ---- */

static int output_positions(struct readback *q, struct mu_err *err)
{
	const struct mu_shape *in = &kernel_in(q->c, 0)->shape;
	const int64_t n_true = q->host.data ? *MU_DATA(int64_t, &q->host) : 0;
	struct where_args a = {.counts = gpu_address(&q->device), .n = in->count, .rank = in->rank};
	struct mu_shape shape = mu_shape_vec(n_true);

	MU_RETURN_IF_ERROR(mu_shape_push(&shape, in->rank, err));
	MU_RETURN_IF_ERROR(gpu_out(q->c, 0, MU_INT64, &shape, &a.out, err));
	if (!shape.count)
		return 0;
	for (int d = 0; d < in->rank; d++)
		a.dim[d] = in->dim[d];
	return gpu_run(kernel_gpu(q->c), "where_put", a.n, &a, err);
}

static void where_gpu(struct kernel_call *c)
{
	const struct mu_tensor *t = kernel_in(c, 0);
	struct unary_args a = {.in = gpu_address(t), .n = t->shape.count};
	struct readback *q = readback_new(c, output_positions);
	struct mu_err err;
	int rc;

	if (!a.n) {
		rc = output_positions(q, &err);
		readback_end(q, rc ? &err : NULL);
		return;
	}
	rc = gpu_scratch(c, MU_INT64, a.n, &q->device, &err);
	a.out = gpu_address(&q->device);
	struct scan_args counts = {.out = a.out, .in = a.out, .outer = 1, .n = a.n, .inner = 1};
	if (rc || (rc = gpu_run_type(kernel_gpu(c), "is_true", t->dtype, a.n, &a, &err)) ||
	    (rc = gpu_scan(c, "Cumsum", MU_INT64, &counts, &err)) ||
	    (rc = where_gpu_request(q, a.n - 1, 1, &err)))
		readback_end(q, &err);
}

static const struct device_kernel rows[] = {
    {.k = {"CheckNumerics", .start = check_numerics_gpu}, .type_attr = "T", .types = GPU_FLT},
    {.k = {"Where", .start = where_gpu}, .type_attr = "T", .types = GPU_EQ | GPU_TYPE(MU_UINT8)},
};
KERNEL_TABLE(array_where_gpu, rows)
