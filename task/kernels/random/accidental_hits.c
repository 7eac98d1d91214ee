/* SPDX-License-Identifier: Apache-2.0 */
/* ComputeAccidentalHits: the sampled candidates that are true classes, so that a loss can exclude
 * them. */
#include <float.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/kernel_table.h"

struct sampled_class {
	int64_t class, at;
};

static int by_class(const void *a, const void *b)
{
	const struct sampled_class *x = a, *y = b;

	return x->class != y->class ? (x->class < y->class ? -1 : 1)
				    : (x->at > y->at) - (x->at < y->at);
}

/* The last index at which a class was sampled, or -1. */
static int64_t accidental_hits_find(const struct sampled_class *sorted, int64_t n, int64_t class)
{
	int64_t low = 0, high = n;

	while (low < high) {
		int64_t middle = low + (high - low) / 2;
		if (sorted[middle].class <= class)
			low = middle + 1;
		else
			high = middle;
	}
	return low && sorted[low - 1].class == class ? sorted[low - 1].at : -1;
}

static int accidental_hits(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0), *sampled = kernel_in(c, 1);
	int64_t n = sampled->shape.count, n_true = args_attr_int(c->node, "num_true", 0), hits = 0;
	struct mu_tensor *rows, *ids, *weights;

	if (in->shape.dim[1] != n_true)
		return mu_invalid(err,
				  "true_candidates must be a batch_size * num_true matrix, not %s",
				  mu_shape_str(&in->shape));
	MU_AUTO_FREE struct sampled_class *sorted = mu_xcalloc((size_t)n + 1, sizeof *sorted);
	for (int64_t i = 0; i < n; i++)
		sorted[i] = (struct sampled_class){MU_DATA(int64_t, sampled)[i], i};
	qsort(sorted, (size_t)n, sizeof *sorted, by_class);
	for (int64_t i = 0; i < in->shape.count; i++)
		hits += accidental_hits_find(sorted, n, MU_DATA(int64_t, in)[i]) >= 0;
	MU_RETURN_IF_ERROR(kernel_out_vec(c, 0, MU_INT32, hits, &rows, err));
	MU_RETURN_IF_ERROR(kernel_out_vec(c, 1, MU_INT64, hits, &ids, err));
	MU_RETURN_IF_ERROR(kernel_out_vec(c, 2, MU_FLOAT, hits, &weights, err));
	for (int64_t i = 0, k = 0; i < in->shape.count; i++) {
		int64_t at = accidental_hits_find(sorted, n, MU_DATA(int64_t, in)[i]);
		if (at < 0)
			continue;
		MU_DATA(int32_t, rows)[k] = (int32_t)(i / n_true);
		MU_DATA(int64_t, ids)[k] = at;
		MU_DATA(float, weights)[k++] = -FLT_MAX;
	}
	return 0;
}

static const struct kernel rows[] = {
    {"ComputeAccidentalHits", .run = accidental_hits},
};
KERNEL_TABLE(random_accidental_hits, rows)
