/* SPDX-License-Identifier: Apache-2.0 */
/* Infers static shapes for tests/compat/shapes_diff.py: reads GraphDefs from standard input, each
 * after its 32-bit length, and prints one line per graph.
 *
 * The shapes of the node "n" follow from its row of the op table.  Its inputs are nodes with a
 * `value` or a `shape`.  A line is the error code, then the shapes of the outputs or the message.
 */
#include <stdio.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/graph/graph.h"
#include "lib/ops/shape.h"

enum { MAX_TENSORS = 256 };

static bool read_graph(struct mu_buf *b)
{
	uint32_t n;

	mu_buf_clear(b);
	if (fread(&n, sizeof n, 1, stdin) != 1)
		return false;
	mu_buf_reserve(b, n);
	b->len = n;
	return fread(b->data, 1, n, stdin) == n;
}

/* For VarHandleOp, `shape` is the shape of the variable; the handle is a scalar. */
static void describe_input(const struct mu_node *n, struct mu_pshape *shape,
			   const struct mu_tensor **value)
{
	const struct mu_attr *v = mu_node_attr(n, "value"), *s = mu_node_attr(n, "shape");

	*value = v ? v->tensor : NULL;
	*shape = v ? mu_pshape_of(&v->tensor->shape) : mu_pshape_unknown(-1);
	if (!v && s)
		*shape = strcmp(n->op, "VarHandleOp") == 0 ? mu_pshape_unknown(0) : *s->shape;
}

static int infer(const struct mu_node *n, struct mu_pshape *out, unsigned *n_out,
		 struct mu_arena *a, struct mu_err *err)
{
	struct mu_pshape in[MAX_TENSORS];
	const struct mu_tensor *value[MAX_TENSORS];
	enum mu_dtype *types;

	MU_RETURN_IF_ERROR(mu_op_check_node(n, a, err));
	MU_RETURN_IF_ERROR(mu_op_output_types(n, a, &types, n_out, err));
	if (*n_out > MAX_TENSORS || n->n_inputs > MAX_TENSORS)
		return mu_fail(err, MU_UNIMPLEMENTED, "too many inputs or outputs");
	for (unsigned i = 0; i < n->n_inputs; i++)
		describe_input(n->inputs[i].node, &in[i], &value[i]);
	for (unsigned i = 0; i < *n_out; i++)
		out[i] = mu_pshape_unknown(-1);
	return mu_op_shapes(&(struct mu_shape_ctx){n, n->n_inputs, *n_out, in, value, out}, err);
}

int main(void)
{
	MU_AUTO_BUF b = {0};

	while (read_graph(&b)) {
		MU_AUTO(mu_graph_free) struct mu_graph *g = mu_graph_new();
		struct mu_pshape out[MAX_TENSORS];
		struct mu_err err = {0};
		unsigned n_out = 0;
		int rc = mu_graph_parse(g, mu_buf_span(&b), &err);
		struct mu_node *n = rc ? NULL : mu_graph_find(g, "n");

		if (!rc)
			rc = n && n->def ? infer(n, out, &n_out, &g->arena, &err)
					 : mu_fail(&err, MU_NOT_FOUND, "no node n of a known op");
		for (char *s = err.msg; *s; s++)
			*s = *s == '\n' ? ' ' : *s;
		printf("%d", -rc);
		for (unsigned i = 0; i < n_out && !rc; i++)
			printf(" %s", mu_pshape_str(&out[i]));
		printf("%s%s\n", rc ? " " : "", rc ? err.msg : "");
		fflush(stdout);
	}
	return 0;
}
