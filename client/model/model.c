/* SPDX-License-Identifier: Apache-2.0 */
/* The table of models, their measurement of the data, and the common loss and accuracy. */
#include "client/model/model.h"

#include <math.h>

static struct mu_out build_softmax(struct mu_builder *b, const struct mu_train_options *o,
				   const struct model_sizes *s, struct model *m)
{
	return layer_dense(b, m->x, s->features, s->classes, "softmax", o->seed, true);
}

static struct mu_out build_mlp(struct mu_builder *b, const struct mu_train_options *o,
			       const struct model_sizes *s, struct model *m)
{
	int64_t width = s->features;
	struct mu_out x = layer_hidden(b, o, m->x, &width);

	return layer_dense(b, x, width, s->classes, "softmax", o->seed, false);
}

static struct mu_out build_cnn(struct mu_builder *b, const struct mu_train_options *o,
			       const struct model_sizes *s, struct model *m)
{
	return model_cnn(b, o, s, m->x);
}

static struct mu_out build_wide_deep(struct mu_builder *b, const struct mu_train_options *o,
				     const struct model_sizes *s, struct model *m)
{
	return model_wide_deep(b, o, s, m->x);
}

static const struct model_kind {
	const char *name;
	struct mu_out (*logits)(struct mu_builder *b, const struct mu_train_options *o,
				const struct model_sizes *s, struct model *m);
	bool uses_columns; /* needs model_sizes.columns */
} models[] = {
    {"softmax", build_softmax, false},
    {"mlp", build_mlp, false},
    {"cnn", build_cnn, false},
    {"wide-deep", build_wide_deep, true},
    {"es", model_evolution_strategy, false},
};

static const struct model_kind *find_model(const char *name, struct mu_err *err)
{
	for (size_t i = 0; i < MU_COUNT(models); i++)
		if (strcmp(models[i].name, name) == 0)
			return &models[i];
	mu_fail(err, MU_INVALID_ARGUMENT,
		"unknown model '%s': expected softmax, mlp, cnn, wide-deep or es", name);
	return NULL;
}

static int measure_column(struct model_column *c, const struct mu_dataset *d, int64_t at,
			  bool is_categorical, struct mu_err *err)
{
	/* Welford's method: a difference of large squares would lose the deviation. */
	double mean = 0, squares = 0, max = 0;

	for (int64_t r = 0; r < d->rows; r++) {
		double v = (double)mu_dataset_at(d, r, at);

		if (is_categorical && (!(v >= 0 && v < 1e7) || v != floor(v)))
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "row %lld of the training data: column %lld is %g, expected "
				       "a whole number from 0 on, since it is categorical",
				       (long long)r + 1, (long long)at, v);
		double from_mean = v - mean;
		mean += from_mean / (double)(r + 1);
		squares += from_mean * (v - mean);
		max = v > max ? v : max;
	}
	c->mean = mean;
	c->deviation = sqrt(squares / (double)d->rows);
	c->n_categories = (int64_t)max + 1;
	return 0;
}

int model_measure(struct model_sizes *out, const struct mu_train_options *o,
		  const struct mu_dataset *train, const struct mu_dataset *test, struct mu_err *err)
{
	struct model_sizes s = {.features = train->features, .classes = train->classes};
	const struct model_kind *kind = find_model(o->model, err);
	int rc = 0;

	if (!kind)
		return -(int)MU_INVALID_ARGUMENT;
	if (test->classes > s.classes)
		s.classes = test->classes;
	if (kind->uses_columns && s.features > MU_MAX_COLUMNS)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "model %s takes at most %d columns, the data has %lld", o->model,
			       MU_MAX_COLUMNS, (long long)s.features);
	for (unsigned i = 0; i < o->n_categorical; i++)
		if (o->categorical[i] >= s.features)
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "categorical column %d: the data has columns 0 to %lld",
				       o->categorical[i], (long long)s.features - 1);
	if (kind->uses_columns)
		s.columns = MU_NEW_ARRAY(struct model_column, (size_t)s.features);
	for (int64_t i = 0; s.columns && i < s.features && !rc; i++) {
		bool is_categorical = false;

		for (unsigned k = 0; k < o->n_categorical; k++)
			is_categorical = is_categorical || o->categorical[k] == i;
		rc = measure_column(&s.columns[i], train, i, is_categorical, err);
	}
	if (rc)
		model_sizes_fini(&s);
	else
		*out = s;
	return rc;
}

void model_sizes_fini(struct model_sizes *s)
{
	free(s->columns);
	s->columns = NULL;
}

int model_build(struct mu_builder *b, const struct mu_train_options *o,
		const struct model_sizes *sizes, struct model *out, struct mu_err *err)
{
	const struct model_kind *kind = find_model(o->model, err);
	struct mu_out logits, hit;

	if (!kind)
		return -(int)MU_INVALID_ARGUMENT;
	*out = (struct model){.x = mu_placeholder(b, "x", MU_FLOAT, MU_SHAPE(-1, sizes->features)),
			      .y = mu_placeholder(b, "y", MU_INT32, MU_SHAPE(-1))};
	logits = kind->logits(b, o, sizes, out);
	out->loss = mu_mean(b, mu_sparse_softmax_xent(b, logits, out->y), NULL, 0);
	if (!out->objective.node)
		out->objective = out->loss;
	hit = mu_cast(b, mu_equal(b, mu_argmax(b, logits, 1), mu_cast(b, out->y, MU_INT64)),
		      MU_FLOAT);
	out->accuracy = mu_mean(b, hit, NULL, 0);
	out->correct = mu_sum(b, hit, NULL, 0);
	return mu_builder_check(b, err);
}
