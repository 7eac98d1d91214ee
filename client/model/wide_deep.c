/* SPDX-License-Identifier: Apache-2.0 */
/* Wide and deep, for tables with categorical columns (a user id, an article id).
 *
 * The wide part has a weight for each category and class, and for each pair of categories of
 * neighbouring columns. It memorises combinations in the training data. The deep part has an
 * embedding for each category, concatenated with the other columns, and dense layers. The deep part
 * generalises to new combinations.
 *
 * An embedding is partitioned over the ps tasks: id i is row i / P of partition i mod P. The Gather
 * runs on the task of the partition. So only the rows of a batch, and their gradients, cross the
 * network.
 */
#include "client/model/model.h"

#include <stdio.h>

enum { CROSS_HASH_BUCKETS = 4096, MAX_PARTS = 64 };

struct tables {
	struct mu_builder *b;
	const struct mu_train_options *o;
	const struct model_sizes *s;
	struct mu_out x;
};

/* Looks up rows of a partitioned [names, width] table for a vector of ids. */
static struct mu_out lookup(struct tables *t, const char *name, int64_t n_categories, int64_t width,
			    struct mu_init init, struct mu_out ids)
{
	struct mu_builder *b = t->b;
	int parts = t->o->n_ps > 1 ? (int)(t->o->n_ps < MAX_PARTS ? t->o->n_ps : MAX_PARTS) : 1;
	struct mu_out stitch[2 * MAX_PARTS], count = mu_const_int(b, MU_INT32, parts);
	struct mu_out positions =
	    mu_op(b, "Range",
		  MU_IN(mu_const_int(b, MU_INT32, 0), mu_op(b, "Size", MU_IN(ids)),
			mu_const_int(b, MU_INT32, 1)));
	struct mu_out part = mu_op(b, "FloorMod", MU_IN(ids, count));
	struct mu_node_attr n = MU_A_INT("num_partitions", parts);
	struct mu_out rows =
	    mu_op(b, "DynamicPartition", MU_IN(mu_op(b, "FloorDiv", MU_IN(ids, count)), part),
		  .attrs = &n, .n_attrs = 1);
	struct mu_out partitioned_positions =
	    mu_op(b, "DynamicPartition", MU_IN(positions, part), .attrs = &n, .n_attrs = 1);

	for (int i = 0; i < parts; i++) {
		char part_name[64];

		snprintf(part_name, sizeof(part_name), "%s/part_%d", name, i);
		struct mu_var *v =
		    mu_variable(b, part_name, MU_FLOAT,
				MU_SHAPE((n_categories + parts - 1) / parts, width), init, true);
		if (!v)
			return MU_NO_OUT;
		mu_push_device(b, v->ref.node->device);
		stitch[i] = mu_port(partitioned_positions, i);
		stitch[parts + i] = mu_op(b, "Gather", MU_IN(mu_read(v), mu_port(rows, i)));
		mu_pop_device(b);
	}
	n = MU_A_INT("N", parts);
	return mu_reshape(b,
			  mu_op_add(b, &(struct mu_op_args){.op = "DynamicStitch",
							    .in = stitch,
							    .n_in = 2 * (unsigned)parts,
							    .attrs = &n,
							    .n_attrs = 1}),
			  mu_const_ints(b, (int32_t[]){-1, (int32_t)width}, 2));
}

static struct mu_out column(struct tables *t, int64_t i)
{
	struct mu_builder *b = t->b;

	return mu_op(b, "StridedSlice",
		     MU_IN(t->x, mu_const_ints(b, (int32_t[]){0, (int32_t)i}, 2),
			   mu_const_ints(b, (int32_t[]){0, (int32_t)i + 1}, 2),
			   mu_const_ints(b, (int32_t[]){1, 1}, 2)),
		     MU_ATTRS(MU_A_INT("begin_mask", 1), MU_A_INT("end_mask", 1),
			      MU_A_INT("shrink_axis_mask", 2)));
}

static bool is_categorical(const struct mu_train_options *o, int64_t column)
{
	for (unsigned i = 0; i < o->n_categorical; i++)
		if (o->categorical[i] == column)
			return true;
	return false;
}

/* Normalises a column to mean 0 and standard deviation 1 of the training data; both are constants
 * of the graph. */
static struct mu_out normalised_column(struct tables *t, int64_t i)
{
	const struct model_column *c = &t->s->columns[i];
	struct mu_out x = mu_sub(t->b, column(t, i), mu_const_float(t->b, (float)c->mean));

	x = mu_mul(t->b, x, mu_const_float(t->b, (float)(c->deviation > 0 ? 1 / c->deviation : 1)));
	return mu_op(t->b, "ExpandDims", MU_IN(x, mu_const_int(t->b, MU_INT32, 1)));
}

/* An id that the training data does not contain shares the row of another id. */
static struct mu_out category_ids(struct tables *t, int64_t i, int64_t n_categories)
{
	struct mu_out ids = mu_cast(t->b, column(t, i), MU_INT32);

	return mu_op(t->b, "FloorMod", MU_IN(ids, mu_const_int(t->b, MU_INT32, n_categories)));
}

struct mu_out model_wide_deep(struct mu_builder *b, const struct mu_train_options *o,
			      const struct model_sizes *s, struct mu_out x)
{
	struct tables t = {b, o, s, x};
	struct mu_init init = {.kind = MU_INIT_NORMAL, .value = 0.1, .seed = o->seed};
	struct mu_out deep[MU_MAX_COLUMNS + 2], wide = MU_NO_OUT, previous_ids = MU_NO_OUT;
	int64_t width = 0, n_previous = 0;
	unsigned n = 0;
	char name[64];

	for (int64_t i = 0; i < s->features && !mu_builder_check(b, NULL); i++) {
		int64_t n_categories = s->columns[i].n_categories;
		struct mu_out ids, part;

		if (!is_categorical(o, i)) {
			deep[n++] = normalised_column(&t, i);
			width++;
			continue;
		}
		ids = category_ids(&t, i, n_categories);
		snprintf(name, sizeof(name), "deep/column%lld", (long long)i);
		deep[n++] = lookup(&t, name, n_categories, o->embedding, init, ids);
		width += o->embedding;
		snprintf(name, sizeof(name), "wide/column%lld", (long long)i);
		part = lookup(&t, name, n_categories, s->classes, MU_ZEROS, ids);
		wide = wide.node ? mu_add(b, wide, part) : part;
		if (previous_ids.node) {
			struct mu_out pair = mu_add(
			    b, mu_mul(b, previous_ids, mu_const_int(b, MU_INT32, n_categories)),
			    ids);
			int64_t pairs = n_categories * n_previous < CROSS_HASH_BUCKETS
					    ? n_categories * n_previous
					    : CROSS_HASH_BUCKETS;

			pair = mu_op(b, "FloorMod", MU_IN(pair, mu_const_int(b, MU_INT32, pairs)));
			snprintf(name, sizeof(name), "wide/cross%lld", (long long)i);
			wide = mu_add(b, wide, lookup(&t, name, pairs, s->classes, MU_ZEROS, pair));
		}
		previous_ids = ids;
		n_previous = n_categories;
	}
	deep[n] = mu_const_int(b, MU_INT32, 1);
	x = mu_op_add(b, &(struct mu_op_args){.op = "ConcatV2", .in = deep, .n_in = n + 1});
	x = layer_hidden(b, o, x, &width);
	x = layer_dense(b, x, width, s->classes, "softmax", o->seed, false);
	return wide.node ? mu_add(b, x, wide) : x;
}
