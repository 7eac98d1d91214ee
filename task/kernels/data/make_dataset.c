/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of all ops that create datasets; the op's table row has the kind. */
#include <string.h>

#include "task/kernels/data/dataset.h"
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/variant.h"

/* Sets d->in to the op's first inputs, which are datasets, and d->params to the others. */
static int take_inputs(struct kernel_call *c, struct dataset *d, struct mu_err *err)
{
	const struct dataset_kind *k = d->kind;
	unsigned want = k->n_in == ANY_NUMBER ? c->n_in : k->n_in;
	unsigned n = c->n_in > k->n_ignored_inputs ? c->n_in - k->n_ignored_inputs : 0;

	d->in = MU_NEW_ARRAY(struct dataset *, c->n_in + 1);
	d->params = MU_NEW_ARRAY(struct mu_tensor, c->n_in + 1);
	for (unsigned i = 0; i < n; i++) {
		struct mu_object *o;
		if (d->n_in < want) {
			MU_RETURN_IF_ERROR(variant_in(c, i, &dataset_type, &o, err));
			mu_object_ref(o);
			d->in[d->n_in] = MU_CONTAINER(o, struct dataset, object);
			if (d->in[d->n_in]->depth >= d->depth)
				d->depth = d->in[d->n_in]->depth + 1;
			d->is_copied |= d->in[d->n_in]->is_copied;
			d->n_in++;
		} else {
			d->params[d->n_params++] = mu_tensor_ref(kernel_in(c, i));
		}
	}
	if (d->depth > MAX_CHAIN)
		return mu_invalid(err, "over %d datasets in a chain", MAX_CHAIN);
	if (d->n_in < want || d->n_params < k->n_scalars)
		return mu_invalid(err, "%s lacks inputs", d->op);
	for (unsigned s = d->n_params - k->n_scalars; s < d->n_params; s++) {
		const struct mu_tensor *t = &d->params[s];
		if (t->shape.count != 1 ||
		    (t->dtype != MU_INT64 && t->dtype != MU_INT32 && t->dtype != MU_BOOL))
			return mu_invalid(
			    err, "%s: parameter %u must be one number, not %s of shape %s", d->op,
			    s, mu_dtype_name(t->dtype), mu_shape_str(&t->shape));
	}
	return 0;
}

/* Creates the functions and finds the captured inputs of each among the parameters. */
static int take_functions(struct kernel_call *c, struct dataset *d, struct mu_err *err)
{
	unsigned captured = 0, at;

	for (unsigned i = 0; i < MAX_FUNCTIONS && d->kind->function[i].name; i++) {
		const struct mu_attr *t = mu_node_attr(c->node, d->kind->function[i].captured);
		d->f[i].n = t ? t->n : 0;
		captured += d->f[i].n;
	}
	if (captured > d->n_params - d->kind->n_scalars)
		return mu_invalid(err, "%s lacks what its functions captured", d->op);
	at = d->n_params_before_captured = d->n_params - d->kind->n_scalars - captured;
	for (unsigned i = 0; i < MAX_FUNCTIONS && d->kind->function[i].name; i++) {
		const char *name = d->kind->function[i].name;
		const struct mu_attr *f = mu_node_attr(c->node, name);
		if (!f || f->kind != MU_ATTR_FUNC)
			return mu_invalid(err, "%s has no function %s", d->op, name);
		d->f[i].from = at;
		at += d->f[i].n;
		MU_RETURN_IF_ERROR(function_new(c->runtime, c->step, f->func, &d->f[i].f, err));
		function_share_state(d->f[i].f, c->step, f->func->name);
	}
	return 0;
}

/* Returns the attribute for d->op_flag, whose name depends on the op, or its default. */
static bool flag_of(const struct mu_node *n)
{
	return args_attr_bool(n, "reshuffle_each_iteration",
			      args_attr_bool(n, "rerandomize_each_iteration",
					     args_attr_bool(n, "stop_on_empty_dataset",
							    mu_node_attr(n, "N") == NULL &&
								strcmp(n->op, "RandomDatasetV2"))));
}

static int dataset_fill(struct kernel_call *c, struct dataset *d, struct mu_err *err)
{
	const struct mu_attr *types = mu_node_attr(c->node, "output_types");

	d->is_copied = d->kind->is_copied;
	MU_RETURN_IF_ERROR(take_inputs(c, d, err));
	if (!types)
		types = mu_node_attr(c->node, "Toutput_types");
	d->n_out = types ? types->n : 1; /* records and lines have no such attribute */
	if (d->n_out > MAX_COMPONENTS)
		return mu_invalid(err, "elements of over %d components", MAX_COMPONENTS);
	if (d->n_in == 1 && !d->kind->function[0].name && !d->kind->reshapes &&
	    d->in[0]->n_out != d->n_out)
		return mu_invalid(err, "%s of %u components over one of %u", d->op, d->n_out,
				  d->in[0]->n_out);
	mu_node_write_attrs(c->node, false, &d->attrs);
	d->op_flag = flag_of(c->node);
	d->preserve_cardinality = args_attr_bool(c->node, "preserve_cardinality", false);
	MU_RETURN_IF_ERROR(take_functions(c, d, err));
	if (d->kind->shared_size)
		d->shared = mu_xcalloc(1, d->kind->shared_size);
	if (d->kind->read)
		d->kind->read(d, c->node);
	return d->kind->check ? d->kind->check(d, err) : 0;
}

/* Returns the batch size if the op or its inputs determine it, else -1. */
static int64_t batch_size_of(const struct dataset *d)
{
	static const char *const batch_ops[] = {"BatchDataset",
						"BatchDatasetV2",
						"MapAndBatchDataset",
						"MapAndBatchDatasetV2",
						"ExperimentalMapAndBatchDataset",
						"PaddedBatchDataset",
						"PaddedBatchDatasetV2",
						NULL};
	static const char *const forwarding_ops[] = {"AssertCardinalityDataset",
						     "AssertNextDataset",
						     "CacheDataset",
						     "CacheDatasetV2",
						     "ConcatenateDataset",
						     "FilterDataset",
						     "ModelDataset",
						     "OptimizeDataset",
						     "OptimizeDatasetV2",
						     "OptionsDataset",
						     "PrefetchDataset",
						     "RepeatDataset",
						     "ShardDataset",
						     "ShuffleAndRepeatDataset",
						     "ShuffleAndRepeatDatasetV2",
						     "ShuffleDataset",
						     "ShuffleDatasetV3",
						     "SkipDataset",
						     "TakeDataset",
						     "ZipDataset",
						     NULL};

	if (mu_word_index(d->op, batch_ops) >= 0)
		return strncmp(d->op, "Padded", 6) ? dataset_number(d, 0)
						   : mu_tensor_int(&d->params[0], 0);
	if (mu_word_index(d->op, forwarding_ops) < 0 || !d->n_in)
		return -1;
	int64_t size = d->in[0]->batch_size;
	for (unsigned i = 1; i < d->n_in; i++)
		if (d->in[i]->batch_size != size)
			return -1;
	return size;
}

static int64_t cardinality_of(const struct dataset *d)
{
	int64_t n = d->n_in ? d->in[0]->cardinality : UNKNOWN_CARDINALITY;

	if (d->kind->cardinality)
		return d->kind->cardinality(d, n);
	return d->kind->function[0].name ? UNKNOWN_CARDINALITY : n;
}

int dataset_make(struct kernel_call *c, struct mu_err *err)
{
	const struct kernel *k = c->runtime->kernels->find(c->node->op);
	struct dataset *d =
	    dataset_new(MU_CONTAINER(k, struct dataset_kind, k), c->node->def->name);
	int rc = dataset_fill(c, d, err);

	if (rc) {
		mu_object_unref(&d->object);
		return rc;
	}
	d->cardinality = cardinality_of(d);
	d->batch_size = batch_size_of(d);
	return variant_out(c, 0, &d->object, err);
}
