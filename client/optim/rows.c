/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of gathered rows: a table of a million names of which a step has seen thirty is updated
 * in thirty places.
 *
 * The gradient of a gathering is an UnsortedSegmentSum as large as the table.  Nobody has run it
 * yet, so its two inputs, what came back and for which row, can be used in its place; what came
 * back for the same row is summed first, where the gathering was, so that each row travels once.
 */
#include "client/builder.h"
#include "client/optim/optimizers.h"

static bool is_sum_over_rows(struct mu_out g)
{
	return strcmp(g.node->op, "UnsortedSegmentSum") == 0;
}

static struct mu_out input(struct mu_out of, unsigned i)
{
	return (struct mu_out){of.node->inputs[i].node, of.node->inputs[i].port};
}

/* The parts of a sum, or the one that g is itself; 0 unless all of them are sums over rows. */
static unsigned parts_of(struct mu_out g, struct mu_out *parts, unsigned most)
{
	bool joined = strcmp(g.node->op, "AddN") == 0;
	unsigned n = joined ? g.node->n_inputs : 1;

	for (unsigned i = 0; i < n && n <= most; i++) {
		parts[i] = joined ? input(g, i) : g;
		if (!is_sum_over_rows(parts[i]))
			return 0;
	}
	return n <= most ? n : 0;
}

static struct mu_out joined(struct mu_builder *b, struct mu_out *parts, unsigned n)
{
	if (n == 1)
		return parts[0];
	parts[n] = mu_const_int(b, MU_INT32, 0);
	return mu_op_add(b, &(struct mu_op_args){.op = "ConcatV2", .in = parts, .n_in = n + 1});
}

enum { MOST_PARTS = 32 };

static void leave_at_rows(struct mu_builder *b, struct optim_grad *g)
{
	struct mu_out parts[MOST_PARTS], ids[MOST_PARTS + 1], values[MOST_PARTS + 1];
	unsigned n = parts_of(g->grad, parts, MOST_PARTS);
	struct mu_out all, unique, count, flat = mu_const_ints(b, (int32_t[]){-1}, 1);
	int32_t row[MU_MAX_RANK] = {-1};

	if (!n || g->var->shape.rank < 1)
		return;
	for (int i = 1; i < g->var->shape.rank; i++)
		row[i] = (int32_t)g->var->shape.dim[i];
	mu_push_device(b, parts[0].node->device);
	for (unsigned i = 0; i < n; i++) {
		ids[i] = mu_reshape(b, input(parts[i], 1), flat);
		if (n > 1) /* they need not be of one type */
			ids[i] = mu_cast(b, ids[i], MU_INT64);
		values[i] = mu_reshape(b, input(parts[i], 0),
				       mu_const_ints(b, row, (unsigned)g->var->shape.rank));
	}
	all = joined(b, values, n);
	unique = mu_op(b, "Unique", MU_IN(joined(b, ids, n)));
	count = mu_op(b, "Size", MU_IN(unique));
	g->grad = mu_op(b, "UnsortedSegmentSum", MU_IN(all, mu_port(unique, 1), count));
	g->rows = unique;
	mu_pop_device(b);
}

void optim_find_rows(struct mu_builder *b, struct optim_grad *grads, unsigned n)
{
	for (unsigned i = 0; i < n && !builder_failed(b); i++)
		leave_at_rows(b, &grads[i]);
}
