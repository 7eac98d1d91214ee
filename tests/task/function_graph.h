/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs whose nodes call a function of their library. */
#ifndef MU_TESTS_TASK_FUNCTION_GRAPH_H
#define MU_TESTS_TASK_FUNCTION_GRAPH_H

#include "lib/base/pb.h"
#include "lib/graph/library.h"
#include "tests/task/build.h"

static void attr_types(struct mu_graph *g, struct mu_node *n, const char *name, enum mu_dtype t)
{
	struct mu_attr a = {.kind = MU_ATTR_LIST + MU_ATTR_TYPE, .n = 1, .types = &t};

	mu_node_set_attr(g, n, name, &a);
}

static void attr_func(struct mu_graph *g, struct mu_node *n, const char *name, const char *f)
{
	struct mu_func func = {.name = f};
	struct mu_attr a = {.kind = MU_ATTR_FUNC, .func = &func};

	mu_node_set_attr(g, n, name, &a);
}

/* Adds the function name(x: int64) -> (y: output_type) with the body `nodes`; y is the output
 * `last` of the body. */
static void add_function(struct mu_graph *g, const char *name, enum mu_dtype output_type,
			 struct mu_graph *nodes, const char *last)
{
	const char *const arg[] = {"x", "y"};
	const enum mu_dtype type[] = {MU_INT64, output_type};
	MU_AUTO_BUF library = {0};
	MU_AUTO_BUF body = {0};
	struct mu_err err;
	size_t f = mu_pb_begin(&library, 1), s = mu_pb_begin(&library, 1);

	mu_pb_put_str(&library, 1, name);
	for (uint32_t i = 0; i < 2; i++) {
		size_t a = mu_pb_begin(&library, 2 + i);
		mu_pb_put_str(&library, 1, arg[i]);
		mu_pb_put_int(&library, 3, type[i]);
		mu_pb_end(&library, a);
	}
	mu_pb_end(&library, s);
	mu_graph_write(nodes, &body);
	struct mu_pb r = mu_pb_of(mu_buf_span(&body));
	for (struct mu_pb_field x; mu_pb_next(&r, &x);)
		if (x.number == 1)
			mu_pb_put_bytes(&library, 3, x.bytes);
	size_t ret = mu_pb_begin(&library, 4);
	mu_pb_put_str(&library, 1, "y");
	mu_pb_put_str(&library, 2, last);
	mu_pb_end(&library, ret);
	mu_pb_end(&library, f);
	assert_ok(mu_library_extend(&g->library, mu_buf_span(&library), &err), &err);
}

#endif
