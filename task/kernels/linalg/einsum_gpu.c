/* SPDX-License-Identifier: Apache-2.0 */
/* Einsum on a GPU.  Operands whose memory does not have the order of the product are transposed and
 * summed first.  One launch computes all products of the batch. */

#include "task/kernels/engine/move.h"
#include "task/kernels/linalg/einsum.h"
#include "task/kernels/linalg/matmul_gpu.h"

struct matrix {
	struct mu_tensor copy; /* if the operand has to be transposed or summed */
	uint64_t at;
	bool trans;
};

static int new_scratch(struct kernel_call *c, const struct einsum *e, const int64_t *counts, int n,
		       struct mu_tensor *t, struct mu_err *err)
{
	struct mu_shape s;

	MU_RETURN_IF_ERROR(mu_shape_set(&s, n, counts, err));
	return move_scratch(c, e->type, &s, t, err);
}

static int matrix_of_gpu(struct kernel_call *c, const struct einsum *e, unsigned i,
			 struct matrix *m, struct mu_err *err)
{
	MU_AUTO_TENSOR transposed = {0};
	struct einsum_operand_view s;

	einsum_view_operand(e, i, &s);
	m->at = gpu_address(e->op[i].t);
	m->trans = s.trans;
	if (s.ready)
		return 0;
	struct mu_tensor *to = s.sums ? &transposed : &m->copy;
	MU_RETURN_IF_ERROR(new_scratch(c, e, s.count, 4, to, err));
	if (to->shape.count)
		MU_RETURN_IF_ERROR(move_read(to, e->op[i].t, &s.v, err));
	if (s.sums)
		MU_RETURN_IF_ERROR(new_scratch(c, e, s.count, 3, &m->copy, err));
	m->at = gpu_address(&m->copy);
	struct reduce_args sum = {.out = m->at,
				  .in = gpu_address(&transposed),
				  .outer = m->copy.shape.count,
				  .reduced = s.count[3],
				  .inner = 1,
				  .pieces = 1,
				  .scale = 1};
	return s.sums ? gpu_run_type(kernel_gpu(c), "Sum", e->type, sum.outer, &sum, err) : 0;
}

/* to[batch, rows, columns] = a * b. */
static int einsum_gpu_multiply(struct kernel_call *c, const struct einsum *e,
			       const struct matrix *a, const struct matrix *b, uint64_t to,
			       struct mu_err *err)
{
	const struct product p = {.m = e->op[0].outer.count,
				  .n = e->op[1].outer.count,
				  .k = e->inner.count,
				  .trans_a = a->trans,
				  .trans_b = b->trans};
	const struct broadcast_args by = {.rank = 1, .dim = {e->batch.count}, .stride = {{1}, {1}}};

	return gpu_matmul(kernel_gpu(c), e->type, &p, to, a->at, b->at, &by, err);
}

static int einsum_gpu_output(struct kernel_call *c, const struct einsum *e, struct matrix *a,
			     struct matrix *b, struct mu_err *err)
{
	const int64_t counts[] = {e->batch.count, e->op[0].outer.count, e->op[1].outer.count};
	MU_AUTO_TENSOR product = {0};
	struct mu_tensor *out, from;
	struct view v;
	int rc = kernel_out_on_device(c, 0, e->type, &e->shape, &out, err);

	if (rc || !e->shape.count || (rc = matrix_of_gpu(c, e, 0, a, err)))
		return rc;
	const bool is_direct = einsum_view_result(e, &v); /* the product is written to the output */
	from = a->copy.buf ? a->copy : *e->op[0].t;
	if (e->n_in > 1) {
		if ((rc = matrix_of_gpu(c, e, 1, b, err)) ||
		    (!is_direct && (rc = new_scratch(c, e, counts, 3, &product, err))) ||
		    (rc = einsum_gpu_multiply(c, e, a, b, gpu_address(is_direct ? out : &product),
					      err)) ||
		    is_direct)
			return rc;
		from = product;
	}
	if (einsum_repeats(e) && (rc = move_fill(out, NULL, err)))
		return rc;
	return move_write(out, &v, &from, err);
}

static int einsum_gpu_run(struct kernel_call *c, struct mu_err *err)
{
	struct matrix a = {0}, b = {0};
	struct einsum e;
	int rc = einsum_read(c, c->state, &e, err);

	if (!rc)
		rc = einsum_gpu_output(c, &e, &a, &b, err);
	mu_tensor_unref(&a.copy);
	mu_tensor_unref(&b.copy);
	return rc;
}

static const struct device_kernel rows[] = {
    {.k = {"Einsum", .run = einsum_gpu_run, .prepare = einsum_prepare},
     .type_attr = "T",
     .types = GPU_FLT},
};
KERNEL_TABLE(linalg_einsum_gpu, rows)
