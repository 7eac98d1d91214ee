/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets of parsed examples.  Each element of the input dataset is a vector of serialized
 * examples.  The components are in the order of their keys.  As in tf.data, a sparse component is a
 * vector of three variants (indices, values, dense shape), and a ragged component is a variant. */
#include <stdlib.h>
#include <string.h>

#include "task/kernels/data/dataset.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/variant.h"
#include "task/kernels/io/features.h"

/* The node's attributes; a copy, because datasets outlive nodes. */
struct parse_attrs {
	struct mu_arena arena;
	struct mu_attr keys[FEATURE_KINDS], types[FEATURE_KINDS], shapes, splits;
	unsigned *component[FEATURE_KINDS]; /* the component of each key */
};

static const struct {
	const char *keys, *types;
} attrs[FEATURE_KINDS] = {[FEATURE_SPARSE] = {"sparse_keys", "sparse_types"},
			  [FEATURE_DENSE] = {"dense_keys", "Tdense"},
			  [FEATURE_RAGGED] = {"ragged_keys", "ragged_value_types"}};

static void copy_attr(const struct mu_node *n, const char *name, struct parse_attrs *w,
		      struct mu_attr *to)
{
	const struct mu_attr *from = mu_node_attr(n, name);

	if (from)
		mu_attr_copy(to, from, &w->arena);
}

static void read_parse(struct dataset *d, const struct mu_node *n)
{
	struct parse_attrs *w = d->shared;

	mu_arena_init(&w->arena);
	for (int k = 0; k < FEATURE_KINDS; k++) {
		copy_attr(n, attrs[k].keys, w, &w->keys[k]);
		copy_attr(n, attrs[k].types, w, &w->types[k]);
	}
	copy_attr(n, "dense_shapes", w, &w->shapes);
	copy_attr(n, "ragged_split_types", w, &w->splits);
}

static void finish_parse(struct dataset *d)
{
	mu_arena_fini(&((struct parse_attrs *)d->shared)->arena);
}

static int key_order(const void *a, const void *b)
{
	const struct mu_span *x = a, *y = b;

	return mu_span_compare(*x, *y);
}

static int check_parse(struct dataset *d, struct mu_err *err)
{
	struct parse_attrs *w = d->shared;
	unsigned dense = w->keys[FEATURE_DENSE].n, n_keys = 0;

	for (int k = 0; k < FEATURE_KINDS; k++)
		n_keys += w->keys[k].n;
	if (d->n_params != 1 + dense || d->n_out != n_keys || d->in[0]->n_out != 1)
		return mu_invalid(
		    err, "%s: the numbers of keys, types, shapes, defaults and components differ",
		    d->op);
	struct mu_span *all = MU_ARENA_ARRAY(&w->arena, struct mu_span, d->n_out + 1);
	for (unsigned k = 0, at = 0; k < FEATURE_KINDS; at += w->keys[k++].n)
		if (w->keys[k].n)
			memcpy(all + at, w->keys[k].ss, w->keys[k].n * sizeof *all);
	qsort(all, d->n_out, sizeof *all, key_order);
	for (unsigned i = 1; i < d->n_out; i++)
		if (!key_order(&all[i - 1], &all[i]))
			return mu_invalid(err, "key %.*s is asked for twice", (int)all[i].len,
					  all[i].data);
	for (int k = 0; k < FEATURE_KINDS; k++) {
		w->component[k] = MU_ARENA_ARRAY(&w->arena, unsigned, w->keys[k].n + 1);
		for (unsigned i = 0; i < w->keys[k].n; i++)
			w->component[k][i] =
			    (unsigned)((struct mu_span *)bsearch(&w->keys[k].ss[i], all, d->n_out,
								 sizeof *all, key_order) -
				       all);
	}
	return 0;
}

static int parse_records(const struct dataset *d, struct features *f, const struct mu_tensor *in,
			 struct mu_tensor *results, struct mu_err *err)
{
	struct parse_attrs *w = d->shared;
	int rc = 0;

	if (in->dtype != MU_STRING || in->shape.rank != 1)
		return mu_invalid(err, "examples must be a vector of strings, not %s of shape %s",
				  mu_dtype_name(in->dtype), mu_shape_str(&in->shape));
	features_alloc(f, d->n_out);
	for (int k = 0; k < FEATURE_KINDS && !rc; k++)
		rc =
		    features_add_slots(f, (enum feature_kind)k, w->keys[k].n ? w->keys[k].ss : NULL,
				       w->keys[k].n, attrs[k].types, &w->types[k], err);
	f->shapes = &w->shapes;
	f->splits = &w->splits;
	for (unsigned i = 0; i < f->n[FEATURE_DENSE]; i++)
		f->defaults[i] = &d->params[1 + i];
	if (rc || (rc = features_begin(f, in->shape.count, err)))
		return rc;
	for (; f->current < f->examples && !rc; f->current++)
		rc = example_read(elems_span(in, f->current), features_add_value, f)
			 ? features_check(f, err)
			 : mu_invalid(err, "Could not parse example input %lld",
				      (long long)f->current);
	return rc ? rc : features_make_outputs(f, results, err);
}

/* Boxes three tensors, `stride` apart, as a vector of three variants. */
static int as_variants(const struct mu_tensor *parts, unsigned stride, struct mu_tensor *out,
		       struct mu_err *err)
{
	struct mu_shape three = mu_shape_vec(3);

	MU_RETURN_IF_ERROR(mu_tensor_new(out, MU_VARIANT, &three, err));
	for (unsigned i = 0; i < 3; i++)
		MU_DATA(struct mu_object *, out)[i] = variant_box(&parts[i * stride]);
	return 0;
}

/* Boxes values and their splits, n tensors later, as one ragged variant. */
static int as_ragged(const struct mu_tensor *values, unsigned n, struct mu_tensor *out,
		     struct mu_err *err)
{
	const struct mu_tensor parts[] = {values[n], values[0]};
	struct mu_object *o;

	MU_RETURN_IF_ERROR(variant_box_ragged(parts, MU_COUNT(parts), &o, err));
	return variant_tensor(out, o, err);
}

static int parse_next(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err)
{
	struct parse_attrs *w = it->d->shared;
	unsigned sparse = w->keys[FEATURE_SPARSE].n, dense = w->keys[FEATURE_DENSE].n;
	unsigned ragged = w->keys[FEATURE_RAGGED].n, n = 3 * sparse + dense + 2 * ragged;
	MU_AUTO_TENSOR in = {0};
	FEATURES_AUTO f;
	int rc;

	features_init(&f);
	if ((rc = dataset_iterator_next(it->input, &in, err)) <= 0)
		return rc;
	memset(out, 0, it->d->n_out * sizeof *out);
	struct mu_tensor *results = MU_NEW_ARRAY(struct mu_tensor, n + 1);
	rc = parse_records(it->d, &f, &in, results, err);
	for (unsigned i = 0; i < sparse && !rc; i++)
		rc = as_variants(&results[i], sparse, &out[w->component[FEATURE_SPARSE][i]], err);
	for (unsigned i = 0; i < dense && !rc; i++)
		out[w->component[FEATURE_DENSE][i]] = mu_tensor_ref(&results[3 * sparse + i]);
	for (unsigned i = 0; i < ragged && !rc; i++)
		rc = as_ragged(&results[3 * sparse + dense + i], ragged,
			       &out[w->component[FEATURE_RAGGED][i]], err);
	element_drop(results, n);
	free(results);
	if (rc)
		element_drop(out, it->d->n_out);
	return rc ? rc : 1;
}

#define PARSE                                                                                      \
	.shared_size = sizeof(struct parse_attrs), .n_in = 1, .reshapes = true,                    \
	.read = read_parse, .check = check_parse, .finish = finish_parse,                          \
	.open = dataset_iterator_open_input, .next = parse_next
static const struct dataset_kind rows[] = {
    {DATASET("ParseExampleDataset ParseExampleDatasetV2 ExperimentalParseExampleDataset"), PARSE},
};
KERNEL_TABLE(data_parse, rows)
