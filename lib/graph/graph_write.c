/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes a graph as a GraphDef. */
#include "lib/base/pb.h"
#include "lib/graph/library.h"

static void write_input(struct mu_buf *b, struct mu_input in)
{
	size_t at = mu_pb_begin(b, 3);

	if (in.port == MU_CONTROL)
		mu_buf_putc(b, '^');
	mu_buf_puts(b, in.node->name);
	if (in.port > 0)
		mu_buf_printf(b, ":%d", in.port);
	mu_pb_end(b, at);
}

void mu_node_write_attrs(const struct mu_node *n, bool internal, struct mu_buf *out)
{
	for (unsigned i = 0; i < n->n_attrs; i++)
		if (internal || n->attrs[i].name[0] != '_')
			mu_attr_entry_write(out, 5, &n->attrs[i]);
}

static void write_node(struct mu_buf *b, const struct mu_node *n)
{
	mu_pb_put_str(b, 1, n->name);
	mu_pb_put_str(b, 2, n->op);
	for (unsigned i = 0; i < n->n_inputs + n->n_controls; i++)
		write_input(b, n->inputs[i]);
	if (*n->device)
		mu_pb_put_str(b, 4, n->device);
	mu_node_write_attrs(n, true, b);
}

void mu_graph_write_from(const struct mu_graph *g, unsigned from, struct mu_buf *out)
{
	size_t at;

	for (unsigned i = from; i < g->n_nodes; i++) {
		at = mu_pb_begin(out, 1);
		write_node(out, g->nodes[i]);
		mu_pb_end(out, at);
	}
	if (g->library) {
		at = mu_pb_begin(out, 2);
		mu_library_write(g->library, out);
		mu_pb_end(out, at);
	}
	at = mu_pb_begin(out, 4);
	if (g->producer)
		mu_pb_put_int(out, 1, g->producer);
	mu_pb_end(out, at);
}

void mu_graph_write(const struct mu_graph *g, struct mu_buf *out)
{
	mu_graph_write_from(g, 0, out);
}
