/* SPDX-License-Identifier: Apache-2.0 */
/* ParseExample, ParseExampleV2 and ParseSingleExample: convert serialized Examples to tensors.  The
 * ops differ in the source of the keys (attributes or inputs) and in the batch dimension. */
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/io/features.h"

/* Attributes that list the types of each kind. */
static const char *const types_attr[FEATURE_KINDS] = {[FEATURE_SPARSE] = "sparse_types",
						      [FEATURE_DENSE] = "Tdense",
						      [FEATURE_RAGGED] = "ragged_value_types"};

static int parse_example_request(struct kernel_call *c, struct features *f, enum feature_kind kind,
				 const struct mu_span *keys, unsigned n, struct mu_err *err)
{
	return features_add_slots(f, kind, keys, n, types_attr[kind],
				  mu_node_attr(c->node, types_attr[kind]), err);
}

static int read_batch_request(struct kernel_call *c, struct features *f, bool v2,
			      unsigned *first_default, struct mu_err *err)
{
	unsigned key_inputs[FEATURE_KINDS] = {1, 1, 1}, n[FEATURE_KINDS] = {0}, at = 2;
	const struct mu_span *keys[FEATURE_KINDS];

	if (!v2) {
		int64_t sparse = args_attr_int(c->node, "Nsparse", -1);
		int64_t dense = args_attr_int(c->node, "Ndense", -1);
		if (sparse < 0 || dense < 0 || sparse + dense + 2 > c->n_in)
			return mu_invalid(err, "Nsparse and Ndense are wrong");
		if ((uint64_t)dense != mu_node_attr(c->node, "Tdense")->n)
			return mu_invalid(err, "len(dense_keys) != len(dense_types)");
		key_inputs[FEATURE_SPARSE] = (unsigned)sparse;
		key_inputs[FEATURE_DENSE] = (unsigned)dense;
		key_inputs[FEATURE_RAGGED] = 0;
	}
	for (int k = 0; k < FEATURE_KINDS; at += key_inputs[k], k++)
		MU_RETURN_IF_ERROR(
		    features_read_keys(f, c, at, key_inputs[k], &keys[k], &n[k], err));
	*first_default = at;
	features_alloc(f, n[0] + n[1] + n[2]);
	for (int k = 0; k < FEATURE_KINDS; k++)
		if (k != FEATURE_RAGGED || v2)
			MU_RETURN_IF_ERROR(
			    parse_example_request(c, f, (enum feature_kind)k, keys[k], n[k], err));
	return 0;
}

static int read_single_request(struct kernel_call *c, struct features *f, struct mu_err *err)
{
	const struct mu_attr *sparse = mu_node_attr(c->node, "sparse_keys");
	const struct mu_attr *dense = mu_node_attr(c->node, "dense_keys");
	unsigned n_sparse = sparse ? sparse->n : 0, n_dense = dense ? dense->n : 0;

	features_alloc(f, n_sparse + n_dense);
	MU_RETURN_IF_ERROR(parse_example_request(c, f, FEATURE_SPARSE, n_sparse ? sparse->ss : NULL,
						 n_sparse, err));
	return parse_example_request(c, f, FEATURE_DENSE, n_dense ? dense->ss : NULL, n_dense, err);
}

static int parse_example_begin(struct kernel_call *c, struct features *f, unsigned first_default,
			       struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);

	f->shapes = mu_node_attr(c->node, "dense_shapes");
	f->splits = mu_node_attr(c->node, "ragged_split_types");
	if (c->n_out != features_count_outputs(f) || c->n_in != first_default + f->n[FEATURE_DENSE])
		return mu_invalid(err, "the numbers of keys, types, shapes and defaults differ");
	if (in->shape.rank > 1)
		return mu_invalid(
		    err, "Expected serialized to be a scalar or vector of strings, got shape %s",
		    mu_shape_str(&in->shape));
	for (unsigned i = 0; i < f->n[FEATURE_DENSE]; i++)
		f->defaults[i] = kernel_in(c, first_default + i);
	f->single = !in->shape.rank;
	return features_begin(f, in->shape.count, err);
}

static int output_all(struct kernel_call *c, struct features *f, unsigned first_default,
		      struct mu_err *err)
{
	int rc = parse_example_begin(c, f, first_default, err);

	for (f->current = 0; f->current < f->examples && !rc; f->current++) {
		struct mu_span message = elems_span(kernel_in(c, 0), f->current);
		if (!example_read(message, features_add_value, f))
			return mu_invalid(err, "Could not parse example input, value: '%.*s'",
					  (int)(message.len < 64 ? message.len : 64), message.data);
		rc = features_check(f, err);
	}
	if (rc)
		return rc;
	MU_AUTO_FREE struct mu_tensor *out = MU_NEW_ARRAY(struct mu_tensor, c->n_out + 1);
	rc = features_make_outputs(f, out, err);
	return kernel_out_take_all(c, out, rc);
}

static int parse_batch(struct kernel_call *c, bool v2, struct mu_err *err)
{
	const struct mu_shape *texts = &kernel_in(c, 0)->shape, *names = &kernel_in(c, 1)->shape;
	unsigned first_default = 0;
	FEATURES_AUTO f;

	features_init(&f);
	f.names = kernel_in(c, 1);
	if (names->count && !mu_shape_eq(names, texts))
		return mu_invalid(
		    err,
		    "Expected names have the same shape as serialized: name.shape=%s, "
		    "serialized.shape=%s",
		    mu_shape_str(names), mu_shape_str(texts));
	int rc = read_batch_request(c, &f, v2, &first_default, err);
	return rc ? rc : output_all(c, &f, first_default, err);
}

KERNEL_RUN(parse_example, parse_batch(c, false, err))
KERNEL_RUN(parse_example_v2, parse_batch(c, true, err))

static int parse_single_example(struct kernel_call *c, struct mu_err *err)
{
	FEATURES_AUTO f;

	features_init(&f);

	MU_RETURN_IF_ERROR(read_single_request(c, &f, err));
	return output_all(c, &f, 1, err);
}

static const struct kernel rows[] = {
    {"ParseExample", KERNEL_EXPENSIVE, .run = parse_example},
    {"ParseExampleV2", KERNEL_EXPENSIVE, .run = parse_example_v2},
    {"ParseSingleExample", .run = parse_single_example},
};
KERNEL_TABLE(io_parse_example, rows)
