/* SPDX-License-Identifier: Apache-2.0 */
/* Constant folding: runs a node whose inputs are all constants once and replaces its outputs by
 * constants.  A node whose kernel fails here is not changed: the step reports the error. */
#include <string.h>

#include "task/graph/optimize.h"
#include "task/kernels/engine/kernel_table.h"

/* Larger results are not folded, because they would occupy memory as long as the graph exists. */
enum { MAX_FOLDED_BYTES = 10 << 20, MAX_OUTPUTS = 64 };

static const struct mu_tensor *constant_value(const struct mu_node *n)
{
	const struct mu_attr *v = mu_node_is_constant(n) ? mu_node_attr(n, "value") : NULL;
	enum mu_dtype dtype;

	if (!v || v->kind != MU_ATTR_TENSOR || mu_node_attr_type(n, "dtype", &dtype, NULL) ||
	    dtype != v->tensor->dtype)
		return NULL;
	return v->tensor;
}

static bool can_fold(struct opt *o, const struct mu_node *n)
{
	if (!n->n_inputs || n->n_controls)
		return false;
	for (unsigned i = 0; i < n->n_inputs; i++)
		if (!constant_value(n->inputs[i].node))
			return false;
	return optimize_is_pure(n);
}

static int fold_run(struct opt *o, const struct mu_node *n, struct value *in, struct value *out,
		    unsigned n_out)
{
	const struct kernel *k = cpu_kernel_find(n->op);
	struct kernel_call c = {
	    .node = n, .n_in = n->n_inputs, .n_out = n_out, .in = in, .out = out, .runtime = o->rt};
	struct mu_err err;
	int rc = k->prepare ? k->prepare(n, o->rt, &c.state, &err) : 0;

	if (rc)
		return rc;
	rc = kernel_check_shapes(n, in, n->n_inputs, &err);
	if (!rc)
		rc = cpu_kernel_run(k, n)(&c, &err);
	if (c.state && k->release)
		k->release(c.state);
	else
		free(c.state);
	return rc;
}

static struct mu_input fold_add_constant(struct opt *o, const struct mu_node *source, unsigned port,
					 struct mu_tensor *t)
{
	const char *name = mu_arena_printf(&o->scratch, "%s/folded_%u", source->name, port);
	struct mu_attr value = {.kind = MU_ATTR_TENSOR, .tensor = t};
	struct mu_node *n = mu_graph_add_unique(o->g, name, "Const", source->device, NULL, 0);

	mu_node_set_attr(o->g, n, "value", &value);
	mu_node_set_type(o->g, n, "dtype", t->dtype);
	return (struct mu_input){n, 0};
}

/* True if the outputs have the types that the graph declares and fit into the budget. */
static bool outputs_fit(const struct opt *o, const struct value *out, const enum mu_dtype *types,
			unsigned n)
{
	size_t bytes = 0;

	for (unsigned i = 0; i < n; i++) {
		if (out[i].dead || out[i].ref || out[i].tensor.dtype != types[i] ||
		    types[i] == MU_RESOURCE || types[i] == MU_VARIANT)
			return false;
		bytes += mu_tensor_bytes(&out[i].tensor);
	}
	return bytes <= MAX_FOLDED_BYTES && bytes <= o->budget;
}

bool fold_node(struct opt *o, struct mu_node *n)
{
	struct value out[MAX_OUTPUTS] = {0}, *in;
	enum mu_dtype *types;
	unsigned n_out;
	bool is_folded = false;

	if (!can_fold(o, n) || mu_op_check_node(n, &o->scratch, NULL) ||
	    mu_op_output_types(n, &o->scratch, &types, &n_out, NULL) || !n_out ||
	    n_out > MAX_OUTPUTS)
		return false;
	in = MU_ARENA_ARRAY(&o->scratch, struct value, n->n_inputs);
	for (unsigned i = 0; i < n->n_inputs; i++)
		in[i].tensor = mu_tensor_ref(constant_value(n->inputs[i].node));
	mu_tensor_thread_limit = MAX_FOLDED_BYTES;
	int rc = fold_run(o, n, in, out, n_out);
	mu_tensor_thread_limit = SIZE_MAX;
	if (!rc && outputs_fit(o, out, types, n_out)) {
		struct mu_input *to = MU_ARENA_ARRAY(&o->scratch, struct mu_input, n_out);
		for (unsigned i = 0; i < n_out; i++) {
			o->budget -= mu_tensor_bytes(&out[i].tensor);
			to[i] = fold_add_constant(o, n, i, &out[i].tensor);
		}
		o->replacement[n->id] = to;
		o->removed[n->id] = is_folded = true;
	}
	for (unsigned i = 0; i < n->n_inputs; i++)
		mu_tensor_unref(&in[i].tensor);
	for (unsigned i = 0; i < n_out; i++)
		mu_tensor_unref(&out[i].tensor);
	return is_folded;
}
