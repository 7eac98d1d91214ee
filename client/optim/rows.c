/* SPDX-License-Identifier: Apache-2.0 */
/* Sparse gradients: if a step gathers thirty rows of a table of a million, only these thirty rows
 * are updated.
 *
 * The gradient of a Gather is an UnsortedSegmentSum of the size of the table. It does not need to
 * run: its inputs (row gradients and row indices) are used instead. Gradients of the same row are
 * summed on the device of the Gather, so that each row crosses the network once.
 */
#include "client/optim/optimizers.h"
#include "lib/builder/builder.h"

static bool is_sum_over_rows(struct mu_out g)
{
	return strcmp(g.node->op, "UnsortedSegmentSum") == 0;
}

static struct mu_out input_of(struct mu_out x, unsigned i)
{
	return (struct mu_out){x.node->inputs[i].node, x.node->inputs[i].port};
}

/* The terms of an AddN, or g as the only term. Returns 0 unless all terms are sums over rows. */
static unsigned parts_of(struct mu_out g, struct mu_out *parts, unsigned max_parts)
{
	bool is_sum = strcmp(g.node->op, "AddN") == 0;
	unsigned n = is_sum ? g.node->n_inputs : 1;

	for (unsigned i = 0; i < n && n <= max_parts; i++) {
		parts[i] = is_sum ? input_of(g, i) : g;
		if (!is_sum_over_rows(parts[i]))
			return 0;
	}
	return n <= max_parts ? n : 0;
}

static struct mu_out concat_parts(struct mu_builder *b, struct mu_out *parts, unsigned n)
{
	if (n == 1)
		return parts[0];
	parts[n] = mu_const_int(b, MU_INT32, 0);
	return mu_op_add(b, &(struct mu_op_args){.op = "ConcatV2", .in = parts, .n_in = n + 1});
}

enum { MAX_PARTS = 32 };

static void reduce_to_rows(struct mu_builder *b, struct optim_grad *g)
{
	struct mu_out parts[MAX_PARTS], ids[MAX_PARTS + 1], values[MAX_PARTS + 1];
	unsigned n = parts_of(g->grad, parts, MAX_PARTS);
	struct mu_out row_grads, unique, count, flat = mu_const_ints(b, (int32_t[]){-1}, 1);
	int32_t row[MU_MAX_RANK] = {-1};

	if (!n || g->var->shape.rank < 1)
		return;
	for (int i = 1; i < g->var->shape.rank; i++)
		row[i] = (int32_t)g->var->shape.dim[i];
	mu_push_device(b, parts[0].node->device);
	for (unsigned i = 0; i < n; i++) {
		ids[i] = mu_reshape(b, input_of(parts[i], 1), flat);
		if (n > 1) /* their index types can differ */
			ids[i] = mu_cast(b, ids[i], MU_INT64);
		values[i] = mu_reshape(b, input_of(parts[i], 0),
				       mu_const_ints(b, row, (unsigned)g->var->shape.rank));
	}
	row_grads = concat_parts(b, values, n);
	unique = mu_op(b, "Unique", MU_IN(concat_parts(b, ids, n)));
	count = mu_op(b, "Size", MU_IN(unique));
	g->grad = mu_op(b, "UnsortedSegmentSum", MU_IN(row_grads, mu_port(unique, 1), count));
	g->rows = unique;
	mu_pop_device(b);
}

void optim_find_rows(struct mu_builder *b, struct optim_grad *grads, unsigned n)
{
	for (unsigned i = 0; i < n && !builder_failed(b); i++)
		reduce_to_rows(b, &grads[i]);
}
