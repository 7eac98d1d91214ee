/* SPDX-License-Identifier: Apache-2.0 */
/* Builders of test graphs. One call adds one node: node(g, "sum", "Add", "a b:1 ^c", device). */
#ifndef MU_TESTS_TASK_BUILD_H
#define MU_TESTS_TASK_BUILD_H

#include <string.h>

#include "lib/graph/graph.h"
#include "tests/test.h"

__attribute__((unused)) static struct mu_node *
node(struct mu_graph *g, const char *name, const char *op, const char *inputs, const char *device)
{
	struct mu_err err = {0};
	struct mu_input in[64], ctl[64];
	unsigned n_in = 0, n_ctl = 0;
	struct mu_node *n;
	char text[1024], *save = NULL;

	assert_ok(mu_graph_add(g, name, op, &n, &err), &err);
	assert_true(strlen(inputs) < sizeof text);
	strcpy(text, inputs);
	for (char *w = strtok_r(text, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
		struct mu_input i;
		assert_ok(mu_graph_resolve(g, w, &i, &err), &err);
		if (i.port == MU_CONTROL)
			ctl[n_ctl++] = i;
		else
			in[n_in++] = i;
	}
	mu_node_set_inputs(g, n, in, n_in, ctl, n_ctl);
	mu_node_set_device(g, n, device ? device : "");
	return n;
}

__attribute__((unused)) static void attr_type(struct mu_graph *g, struct mu_node *n,
					      const char *name, enum mu_dtype t)
{
	struct mu_attr a = {.kind = MU_ATTR_TYPE, .type = t};

	mu_node_set_attr(g, n, name, &a);
}

__attribute__((unused)) static void attr_int(struct mu_graph *g, struct mu_node *n,
					     const char *name, int64_t v)
{
	struct mu_attr a = {.kind = MU_ATTR_INT, .i = v};

	mu_node_set_attr(g, n, name, &a);
}

__attribute__((unused)) static void attr_string(struct mu_graph *g, struct mu_node *n,
						const char *name, const char *v)
{
	struct mu_attr a = {.kind = MU_ATTR_STRING, .s = mu_span_of(v)};

	mu_node_set_attr(g, n, name, &a);
}

__attribute__((unused)) static void attr_class(struct mu_graph *g, struct mu_node *n,
					       const char *loc)
{
	struct mu_span s = mu_span_of(loc);
	struct mu_attr a = {
	    .kind = (enum mu_attr_kind)(MU_ATTR_LIST + MU_ATTR_STRING), .n = 1, .ss = &s};

	mu_node_set_attr(g, n, "_class", &a);
}

__attribute__((unused)) static struct mu_node *constant(struct mu_graph *g, const char *name,
							enum mu_dtype t, const void *value,
							const char *inputs, const char *device)
{
	struct mu_node *n = node(g, name, "Const", inputs, device);
	MU_AUTO_TENSOR v = {0};
	struct mu_attr a = {.kind = MU_ATTR_TENSOR, .tensor = &v};

	assert_int_equal(mu_tensor_scalar(&v, t, value, NULL), 0);
	mu_node_set_attr(g, n, "value", &a);
	attr_type(g, n, "dtype", t);
	return n;
}

__attribute__((unused)) static void string_constant(struct mu_graph *g, const char *name,
						    const char *value)
{
	struct mu_node *n = node(g, name, "Const", "", "");
	MU_AUTO_TENSOR v = {0};
	struct mu_attr a = {.kind = MU_ATTR_TENSOR, .tensor = &v};

	assert_int_equal(mu_tensor_string(&v, value, strlen(value), NULL), 0);
	mu_node_set_attr(g, n, "value", &a);
	attr_type(g, n, "dtype", MU_STRING);
}

__attribute__((unused)) static struct mu_node *scalar(struct mu_graph *g, const char *name,
						      float value, const char *device)
{
	return constant(g, name, MU_FLOAT, &value, "", device);
}

/* An op with attribute T = float. */
__attribute__((unused)) static struct mu_node *
floats(struct mu_graph *g, const char *name, const char *op, const char *inputs, const char *device)
{
	struct mu_node *n = node(g, name, op, inputs, device);

	attr_type(g, n, "T", MU_FLOAT);
	return n;
}

/* A _Send or _Recv node of the edge, with EDGE_KEY(edge) as its rendezvous key. */
__attribute__((unused)) static struct mu_node *
end(struct mu_graph *g, const char *name, const char *op, const char *inputs, const char *edge)
{
	struct mu_node *n = node(g, name, op, inputs, "");

	attr_type(g, n, op[1] == 'S' ? "T" : "tensor_type", MU_FLOAT);
	attr_string(g, n, "tensor_name", edge);
	attr_string(g, n, "send_device", "/job:w/replica:0/task:0/device:CPU:0");
	attr_string(g, n, "recv_device", "/job:w/replica:0/task:0/device:CPU:0");
	attr_int(g, n, "send_device_incarnation", 1);
	return n;
}

#define EDGE_KEY(edge)                                                                             \
	"/job:w/replica:0/task:0/device:CPU:0;0000000000000001;"                                   \
	"/job:w/replica:0/task:0/device:CPU:0;" edge ";0:0"

#endif
