/* SPDX-License-Identifier: Apache-2.0 */
/* GatherTree: the sequences of a beam search, followed from their last step to the first one. */
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/kernel_table.h"

struct beam_tree {
	int64_t time_steps, batch, width;
	const int32_t *ids, *parents;
	int32_t end, *beams;
};

/* Copies the sequence that ends in beam `k` at step n-1, and fills it from its first end token on.
 */
static int follow_parents(const struct beam_tree *t, int64_t b, int64_t k, int64_t n,
			  struct mu_err *err)
{
	int64_t step = t->batch * t->width, row = b * t->width, from = k;

	for (int64_t i = n - 1; i >= 0; i--) {
		if (from < 0 || from >= t->width)
			return mu_invalid(err,
					  "Saw invalid parent id %lld at (batch, time, beam) == "
					  "(%lld, %lld, %lld)",
					  (long long)from, (long long)b, (long long)i,
					  (long long)k);
		t->beams[i * step + row + k] = t->ids[i * step + row + from];
		from = t->parents[i * step + row + from];
	}
	bool is_ended = false;
	for (int64_t i = 0; i < n; i++) {
		int32_t *id = &t->beams[i * step + row + k];
		if (is_ended)
			*id = t->end;
		is_ended |= *id == t->end;
	}
	return 0;
}

static int gather_tree(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *ids = kernel_in(c, 0), *lengths = kernel_in(c, 2);
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(kernel_out(c, 0, MU_INT32, &ids->shape, &out, err));
	struct beam_tree t = {.time_steps = ids->shape.dim[0],
			      .batch = ids->shape.dim[1],
			      .width = ids->shape.dim[2],
			      .ids = ids->data,
			      .parents = kernel_in(c, 1)->data,
			      .end = *MU_DATA(int32_t, kernel_in(c, 3)),
			      .beams = out->data};
	for (int64_t i = 0; i < out->shape.count; i++)
		t.beams[i] = t.end;
	for (int64_t b = 0; b < t.batch; b++) {
		int64_t n = MU_DATA(int32_t, lengths)[b];
		for (int64_t k = 0; k < t.width; k++)
			MU_RETURN_IF_ERROR(
			    follow_parents(&t, b, k, n < t.time_steps ? n : t.time_steps, err));
	}
	return 0;
}

static const struct kernel rows[] = {{"GatherTree", KERNEL_EXPENSIVE, .run = gather_tree}};
KERNEL_TABLE(rnn_gather_tree, rows)
