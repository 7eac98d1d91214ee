/* SPDX-License-Identifier: Apache-2.0 */
/* DatasetToGraph: writes the GraphDef that creates a dataset again.  Keras reads it to find out if
 * the dataset is shuffled.
 *
 * Each dataset is a node after the nodes of its inputs.  Each parameter is a Const.  A constant
 * cannot hold a resource or a variant, so these are Placeholders. */
#include <stdio.h>
#include <string.h>

#include "lib/base/map.h"
#include "lib/base/pb.h"
#include "lib/graph/library.h"
#include "lib/tensor/tensor_proto.h"
#include "task/kernels/data/dataset.h"
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/variant.h"

enum { GRAPH_NODE = 1, GRAPH_LIBRARY = 2, GRAPH_VERSIONS = 4 };
enum { LIBRARY_FUNCTION = 1, VERSIONS_PRODUCER = 1, PRODUCER = 1645 /* TensorFlow 2.15's */ };
enum { NODE_NAME = 1, NODE_OP = 2, NODE_INPUT = 3, NODE_ATTR = 5 };
enum { POLICY_FAIL = 2 }; /* of external_state_policy */

struct writer {
	struct mu_buf out; /* the GraphDef */
	unsigned n_nodes;
	struct mu_arena arena;   /* the names of nodes */
	struct mu_map datasets;  /* pointer -> the name of its node */
	struct mu_map functions; /* names of the functions in the GraphDef's library */
	struct mu_library *library;
	bool fails_on_state; /* a stateful op in a function is an error */
};

static void writer_init(struct writer *w, struct mu_library *library, bool fails_on_state)
{
	*w = (struct writer){.library = library, .fails_on_state = fails_on_state};
	mu_arena_init(&w->arena);
	mu_map_init(&w->datasets);
	mu_map_init(&w->functions);
}

static void writer_fini(struct writer *w)
{
	mu_map_fini(&w->functions);
	mu_map_fini(&w->datasets);
	mu_arena_fini(&w->arena);
	mu_buf_fini(&w->out);
}

/* ---- nodes ---- */

/* Opens a node; the caller adds its inputs and attributes and closes it. */
static const char *begin_node(struct writer *w, const char *op, size_t *at)
{
	char name[256];
	int n = snprintf(name, sizeof name, "%s/_%u", op, w->n_nodes++);

	*at = mu_pb_begin(&w->out, GRAPH_NODE);
	mu_pb_put_str(&w->out, NODE_NAME, name);
	mu_pb_put_str(&w->out, NODE_OP, op);
	return mu_arena_strndup(&w->arena, name, (size_t)n);
}

static void write_type(struct writer *w, const char *attr, enum mu_dtype t)
{
	mu_attr_entry_write(&w->out, NODE_ATTR,
			    &(struct mu_node_attr){attr, {.kind = MU_ATTR_TYPE, .type = t}});
}

static const char *write_placeholder(struct writer *w, enum mu_dtype t)
{
	size_t at;
	const char *name = begin_node(w, "Placeholder", &at);

	write_type(w, "dtype", t);
	mu_pb_end(&w->out, at);
	return name;
}

static const char *write_parameter(struct writer *w, struct mu_tensor *t)
{
	struct mu_node_attr value = {"value", {.kind = MU_ATTR_TENSOR, .tensor = t}};
	const char *name;
	size_t at;

	if (t->dtype == MU_RESOURCE || t->dtype == MU_VARIANT)
		return write_placeholder(w, t->dtype);
	name = begin_node(w, "Const", &at);
	write_type(w, "dtype", t->dtype);
	mu_attr_entry_write(&w->out, NODE_ATTR, &value);
	mu_pb_end(&w->out, at);
	return name;
}

static int write_dataset(struct writer *w, const struct dataset *d, const char **name,
			 struct mu_err *err)
{
	const char **inputs;
	unsigned n = 0;
	size_t at;

	if ((*name = mu_map_get_n(&w->datasets, &d, sizeof d)))
		return 0;
	if (!d->attrs.len)
		return mu_fail(err, MU_UNIMPLEMENTED, "%s does not support serialization", d->op);
	inputs = mu_arena_alloc(&w->arena, (d->n_in + d->n_params + d->kind->n_ignored_inputs + 1) *
					       sizeof *inputs);
	for (unsigned i = 0; i < d->n_in; i++)
		MU_RETURN_IF_ERROR(write_dataset(w, d->in[i], &inputs[n++], err));
	for (unsigned i = 0; i < d->n_params; i++)
		inputs[n++] = write_parameter(w, &d->params[i]);
	for (unsigned i = 0; i < d->kind->n_ignored_inputs; i++)
		inputs[n++] = write_placeholder(w, MU_RESOURCE);
	*name = begin_node(w, d->op, &at);
	for (unsigned i = 0; i < n; i++)
		mu_pb_put_str(&w->out, NODE_INPUT, inputs[i]);
	mu_buf_put(&w->out, d->attrs.data, d->attrs.len);
	mu_pb_end(&w->out, at);
	mu_map_put_n(&w->datasets, &d, sizeof d, (void *)*name);
	return 0;
}

/* Writes the _Retval node of the dataset. */
static void write_result(struct writer *w, const char *dataset)
{
	struct mu_node_attr index = {"index", {.kind = MU_ATTR_INT, .i = 0}};
	size_t at = mu_pb_begin(&w->out, GRAPH_NODE);

	mu_pb_put_str(&w->out, NODE_NAME, "dataset");
	mu_pb_put_str(&w->out, NODE_OP, "_Retval");
	mu_pb_put_str(&w->out, NODE_INPUT, dataset);
	write_type(w, "T", MU_VARIANT);
	mu_attr_entry_write(&w->out, NODE_ATTR, &index);
	mu_pb_end(&w->out, at);
}

/* ---- functions ---- */

static int write_function(struct writer *w, const struct mu_func *f, unsigned depth,
			  struct mu_err *err);

static int write_functions_of(struct writer *w, const struct mu_node *n, unsigned depth,
			      struct mu_err *err)
{
	struct mu_func call = {n->op, n->n_attrs, n->attrs};

	MU_RETURN_IF_ERROR(write_function(w, &call, depth, err));
	for (unsigned i = 0; i < n->n_attrs; i++) {
		const struct mu_attr *a = &n->attrs[i].value;
		if (a->kind == MU_ATTR_FUNC)
			MU_RETURN_IF_ERROR(write_function(w, a->func, depth, err));
		for (unsigned k = 0; a->kind == MU_ATTR_LIST + MU_ATTR_FUNC && k < a->n; k++)
			MU_RETURN_IF_ERROR(write_function(w, &a->funcs[k], depth, err));
	}
	return 0;
}

/* Adds a function and the functions that it calls to the library, each once. */
static int write_function(struct writer *w, const struct mu_func *f, unsigned depth,
			  struct mu_err *err)
{
	const struct mu_function *function = mu_library_find(w->library, f->name);
	MU_AUTO(mu_graph_free) struct mu_graph *body = NULL;
	size_t at;

	if (!function || mu_map_put(&w->functions, f->name, w))
		return 0;
	if (depth > MAX_CHAIN)
		return mu_invalid(err, "over %d functions that call each other", MAX_CHAIN);
	at = mu_pb_begin(&w->out, GRAPH_LIBRARY);
	mu_pb_put_bytes(&w->out, LIBRARY_FUNCTION, function->proto);
	mu_pb_end(&w->out, at);
	MU_RETURN_IF_ERROR(
	    mu_library_instantiate(w->library, function, f->attrs, f->n_attrs, false, &body, err));
	for (unsigned i = 0; i < body->n_nodes; i++) {
		const struct mu_node *n = body->nodes[i];
		bool has_state = n->def && n->def->flags & MU_OP_STATEFUL && n->op[0] != '_' &&
				 strcmp(n->op, "Assert");
		if (w->fails_on_state && has_state)
			return mu_fail(err, MU_FAILED_PRECONDITION,
				       "Failed to serialize the input pipeline graph: %s is "
				       "stateful.",
				       n->op);
		MU_RETURN_IF_ERROR(write_functions_of(w, n, depth + 1, err));
	}
	return 0;
}

static int write_graph(struct writer *w, const struct dataset *d, struct mu_err *err)
{
	MU_AUTO(mu_graph_free) struct mu_graph *nodes = mu_graph_new();
	const char *name;
	size_t at;

	MU_RETURN_IF_ERROR(write_dataset(w, d, &name, err));
	write_result(w, name);
	MU_RETURN_IF_ERROR(mu_graph_parse(nodes, mu_buf_span(&w->out), err));
	for (unsigned i = 0; i < nodes->n_nodes; i++)
		MU_RETURN_IF_ERROR(write_functions_of(w, nodes->nodes[i], 0, err));
	at = mu_pb_begin(&w->out, GRAPH_VERSIONS);
	mu_pb_put_int(&w->out, VERSIONS_PRODUCER, PRODUCER);
	mu_pb_end(&w->out, at);
	return 0;
}

static int dataset_to_graph(struct kernel_call *c, struct mu_err *err)
{
	int64_t policy = args_attr_int(c->node, "external_state_policy", POLICY_FAIL);
	bool fails_on_state =
	    policy == POLICY_FAIL && !args_attr_bool(c->node, "allow_stateful", false);
	struct mu_object *o;
	struct writer w;

	MU_RETURN_IF_ERROR(variant_in(c, 0, &dataset_type, &o, err));
	writer_init(&w, step_library(c->step), fails_on_state);
	int rc = write_graph(&w, MU_CONTAINER(o, const struct dataset, object), err);
	if (!rc)
		rc = kernel_out_string(c, 0, mu_buf_span(&w.out), err);
	writer_fini(&w);
	return rc;
}

static const struct kernel rows[] = {
    {"DatasetToGraph DatasetToGraphV2", .flags = KERNEL_NO_FOLD, .run = dataset_to_graph},
};
KERNEL_TABLE(data_dataset_graph, rows)
