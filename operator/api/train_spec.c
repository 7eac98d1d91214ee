/* SPDX-License-Identifier: Apache-2.0 */
/* spec.program.train, and the settings of the trainer on their way into a task's environment. */
#include <float.h>
#include <limits.h>

#include "lib/io/json.h"
#include "operator/api/job_spec.h"

static const char *const model_names[] = {"softmax", "mlp", "cnn", "wide-deep", "es", NULL};
static const struct {
	bool layers, categorical; /* may have hidden layers; needs categorical columns */
	int default_units;        /* of one hidden layer when none is given; 0: none */
} models[] = {
    {false, false, 0}, {true, false, 128}, {true, false, 128}, {true, true, 64}, {true, false, 0},
};
static const char *const optimizers[] = {"sgd",     "momentum", "nesterov", "adagrad", "adam",
					 "rmsprop", "adadelta", "ftrl",     NULL};
static const char *const decays[] = {"constant", "exponential", "steps", "cosine", NULL};

static int read_decay(struct train_spec *t, const struct mu_doc_node *train, struct mu_err *err)
{
	static const char *const known[] = {"kind", "rate", "steps", NULL};
	struct mu_doc_node *d;
	int rc = mu_doc_opt_map(train, "learningRateDecay", &d, err);

	t->decay_rate = 0.96;
	t->decay_steps = 1000;
	if (rc || !d)
		return rc;
	t->decay = 1;
	if ((rc = mu_doc_known_keys(d, known, err)) ||
	    (rc = mu_doc_opt_choice(d, "kind", decays, &t->decay, err)) ||
	    (rc = mu_doc_opt_float(d, "rate", 0, 1, &t->decay_rate, err)))
		return rc;
	return mu_doc_opt_int(d, "steps", 1, INT64_MAX / 2, &t->decay_steps, err);
}

static int read_dataset(struct train_spec *t, const struct mu_doc_node *train, struct mu_err *err)
{
	static const char *const known[] = {
	    "format",     "path",         "trainImages", "trainLabels", "testImages",
	    "testLabels", "testFraction", "splitSeed",   "scale",       "testPath",
	    "featureKey", "labelKey",     "badRecords",  NULL};
	static const char *const bad[] = {"fail", "skip", NULL};
	struct mu_doc_node *d;
	int format = DATASET_CSV, skip = 0, rc;

	t->feature = "x";
	t->label = "label";

	t->test_fraction = 0.2;
	if ((rc = mu_doc_opt_map(train, "dataset", &d, err)))
		return rc;
	if (!d)
		return mu_doc_fail(train, err, MU_INVALID_ARGUMENT, "needs a dataset");
	if ((rc = mu_doc_known_keys(d, known, err)) ||
	    (rc = mu_doc_opt_choice(d, "format", dataset_format_names, &format, err)) ||
	    (rc = mu_doc_opt_text(d, "path", &t->path, err)) ||
	    (rc = mu_doc_opt_text(d, "testPath", &t->test_path, err)) ||
	    (rc = mu_doc_opt_text(d, "featureKey", &t->feature, err)) ||
	    (rc = mu_doc_opt_text(d, "labelKey", &t->label, err)) ||
	    (rc = mu_doc_opt_choice(d, "badRecords", bad, &skip, err)) ||
	    (rc = mu_doc_opt_text(d, "trainImages", &t->train_images, err)) ||
	    (rc = mu_doc_opt_text(d, "trainLabels", &t->train_labels, err)) ||
	    (rc = mu_doc_opt_text(d, "testImages", &t->test_images, err)) ||
	    (rc = mu_doc_opt_text(d, "testLabels", &t->test_labels, err)) ||
	    (rc = mu_doc_opt_float(d, "testFraction", 0, 0.9, &t->test_fraction, err)) ||
	    (rc = mu_doc_opt_int(d, "splitSeed", 0, INT64_MAX / 2, &t->split_seed, err)) ||
	    (rc = mu_doc_opt_float(d, "scale", 0, 1e30, &t->scale, err)))
		return rc;
	t->format = (enum dataset_format)format;
	t->skip_bad = skip;
	bool images = t->train_images || t->train_labels || t->test_images || t->test_labels;
	if (format == DATASET_CSV && (!t->path || images))
		return mu_doc_fail(d, err, MU_INVALID_ARGUMENT,
				   "format csv needs a path, and no images or labels");
	if (format == DATASET_IDX &&
	    (t->path || !t->train_images || !t->train_labels || !t->test_images != !t->test_labels))
		return mu_doc_fail(d, err, MU_INVALID_ARGUMENT,
				   "format idx needs trainImages and trainLabels, may have both "
				   "testImages and testLabels, and has no path");
	if (format > DATASET_IDX && (!t->path || images))
		return mu_doc_fail(d, err, MU_INVALID_ARGUMENT,
				   "format %s needs a path, and no images or labels",
				   dataset_format_names[format]);
	if (format <= DATASET_IDX && t->test_path)
		return mu_doc_fail(d, err, MU_INVALID_ARGUMENT,
				   "testPath goes with the formats cifar10 and tfrecord");
	return 0;
}

/* A list of whole numbers, at most max of them. */
static int read_ints(const struct mu_doc_node *train, const char *key, int64_t lowest,
		     int64_t highest, unsigned max, int *out, unsigned *n_out, struct mu_err *err)
{
	struct mu_doc_node *list;
	int rc = mu_doc_opt_list(train, key, &list, err);

	if (rc)
		return rc;
	if (list && list->n > max)
		return mu_doc_fail(list, err, MU_INVALID_ARGUMENT, "has more than %u entries", max);
	mu_doc_each(list, n)
	{
		if (n->kind != MU_DOC_INT || n->i < lowest || n->i > highest)
			return mu_doc_fail(n, err, MU_INVALID_ARGUMENT,
					   "must be a whole number between %lld and %lld",
					   (long long)lowest, (long long)highest);
		out[(*n_out)++] = (int)n->i;
	}
	return 0;
}

static int read_validation(struct train_spec *t, const struct mu_doc_node *train,
			   struct mu_err *err)
{
	static const char *const known[] = {"everySteps", "patience", NULL};
	struct mu_doc_node *v;
	int rc = mu_doc_opt_map(train, "validation", &v, err);

	if (rc || !v)
		return rc;
	t->validation_steps = 100;
	if ((rc = mu_doc_known_keys(v, known, err)) ||
	    (rc = mu_doc_opt_int(v, "everySteps", 1, INT64_MAX / 2, &t->validation_steps, err)))
		return rc;
	return mu_doc_opt_int(v, "patience", 0, 1 << 20, &t->patience, err);
}

/* What only some models take: hidden layers, categorical columns, perturbations. */
static int read_model(struct train_spec *t, const struct mu_doc_node *train, struct mu_err *err)
{
	int64_t embedding = 8, pairs = 16;
	int model = 0, rc;

	t->noise = 0.1;
	if ((rc = mu_doc_opt_choice(train, "model", model_names, &model, err)) ||
	    (rc = read_ints(train, "hiddenUnits", 1, 65536, JOB_MAX_LAYERS, t->hidden, &t->n_hidden,
			    err)) ||
	    (rc = read_ints(train, "categoricalColumns", 0, 255, JOB_MAX_CATEGORICAL,
			    t->categorical, &t->n_categorical, err)) ||
	    (rc = mu_doc_opt_int(train, "embeddingSize", 1, 1024, &embedding, err)) ||
	    (rc = mu_doc_opt_int(train, "perturbations", 1, 256, &pairs, err)) ||
	    (rc = mu_doc_opt_float(train, "noise", 1e-6, 10, &t->noise, err)))
		return rc;
	t->model = model_names[model];
	t->embedding = (int)embedding;
	t->pairs = (int)pairs;
	if (t->n_hidden && !models[model].layers)
		return mu_doc_fail(mu_doc_get(train, "hiddenUnits"), err, MU_INVALID_ARGUMENT,
				   "the %s model has no hidden layers; say model: mlp", t->model);
	if (!t->n_categorical == models[model].categorical)
		return mu_doc_fail(
		    train, err, MU_INVALID_ARGUMENT,
		    "categoricalColumns belong to model wide-deep, which needs them");
	if (!t->n_hidden && models[model].default_units)
		t->hidden[t->n_hidden++] = models[model].default_units;
	return 0;
}

int job_spec_read_train(struct train_spec *t, const struct mu_doc_node *train, struct mu_err *err)
{
	static const char *const known[] = {"model",
					    "dataset",
					    "hiddenUnits",
					    "batchSize",
					    "learningRate",
					    "optimizer",
					    "momentum",
					    "steps",
					    "seed",
					    "learningRateDecay",
					    "l2",
					    "clipNorm",
					    "categoricalColumns",
					    "embeddingSize",
					    "perturbations",
					    "noise",
					    "validation",
					    "exportPath",
					    NULL};
	int optimizer = 0, rc;
	int64_t batch = 32;

	t->learning_rate = 0.1;
	t->momentum = 0.9;
	t->steps = 1000;
	t->seed = 1;
	if ((rc = mu_doc_known_keys(train, known, err)) ||
	    (rc = mu_doc_opt_choice(train, "optimizer", optimizers, &optimizer, err)) ||
	    (rc = mu_doc_opt_int(train, "batchSize", 1, 1 << 20, &batch, err)) ||
	    (rc = mu_doc_opt_float(train, "learningRate", 0, FLT_MAX, &t->learning_rate, err)) ||
	    (rc = mu_doc_opt_float(train, "momentum", 0, 1, &t->momentum, err)) ||
	    (rc = mu_doc_opt_float(train, "l2", 0, FLT_MAX, &t->l2, err)) ||
	    (rc = mu_doc_opt_float(train, "clipNorm", 0, FLT_MAX, &t->clip_norm, err)) ||
	    (rc = read_decay(t, train, err)) || (rc = read_validation(t, train, err)) ||
	    (rc = mu_doc_opt_text(train, "exportPath", &t->export_prefix, err)) ||
	    (rc = mu_doc_opt_int(train, "steps", 1, INT64_MAX / 2, &t->steps, err)) ||
	    (rc = mu_doc_opt_int(train, "seed", 0, INT64_MAX / 2, &t->seed, err)))
		return rc;
	t->optimizer = optimizers[optimizer];
	t->batch_size = (int)batch;
	if ((rc = read_dataset(t, train, err)))
		return rc;
	return read_model(t, train, err);
}

static void add_opt(struct mu_doc *d, struct mu_doc_node *to, const char *key, const char *text)
{
	if (text)
		mu_doc_add_str(d, to, key, text);
}

static void write_ints(struct mu_doc *d, struct mu_doc_node *to, const char *key, const int *v,
		       unsigned n)
{
	struct mu_doc_node *list = n ? mu_doc_add(d, to, key, MU_DOC_LIST) : NULL;

	for (unsigned i = 0; i < n; i++)
		mu_doc_add_int(d, list, NULL, v[i]);
}

static void write_train(struct mu_doc *d, const struct train_spec *t)
{
	struct mu_doc_node *n = mu_doc_add(d, d->root, "train", MU_DOC_MAP);

	mu_doc_add_str(d, n, "model", t->model);
	write_ints(d, n, "hiddenUnits", t->hidden, t->n_hidden);
	write_ints(d, n, "categoricalColumns", t->categorical, t->n_categorical);
	mu_doc_add_int(d, n, "embeddingSize", t->embedding);
	mu_doc_add_int(d, n, "perturbations", t->pairs);
	mu_doc_add_float(d, n, "noise", t->noise);
	mu_doc_add_int(d, n, "batchSize", t->batch_size);
	mu_doc_add_float(d, n, "learningRate", t->learning_rate);
	mu_doc_add_str(d, n, "optimizer", t->optimizer);
	mu_doc_add_float(d, n, "momentum", t->momentum);
	mu_doc_add_float(d, n, "l2", t->l2);
	mu_doc_add_float(d, n, "clipNorm", t->clip_norm);
	struct mu_doc_node *decay = mu_doc_add(d, n, "learningRateDecay", MU_DOC_MAP);
	mu_doc_add_str(d, decay, "kind", decays[t->decay]);
	mu_doc_add_float(d, decay, "rate", t->decay_rate);
	mu_doc_add_int(d, decay, "steps", t->decay_steps);
	mu_doc_add_int(d, n, "steps", t->steps);
	if (t->validation_steps) {
		struct mu_doc_node *v = mu_doc_add(d, n, "validation", MU_DOC_MAP);

		mu_doc_add_int(d, v, "everySteps", t->validation_steps);
		mu_doc_add_int(d, v, "patience", t->patience);
	}
	add_opt(d, n, "exportPath", t->export_prefix);
	mu_doc_add_int(d, n, "seed", t->seed);
	struct mu_doc_node *s = mu_doc_add(d, n, "dataset", MU_DOC_MAP);
	mu_doc_add_str(d, s, "format", dataset_format_names[t->format]);
	add_opt(d, s, "path", t->path);
	add_opt(d, s, "testPath", t->test_path);
	add_opt(d, s, "featureKey", t->feature);
	add_opt(d, s, "labelKey", t->label);
	mu_doc_add_str(d, s, "badRecords", t->skip_bad ? "skip" : "fail");
	add_opt(d, s, "trainImages", t->train_images);
	add_opt(d, s, "trainLabels", t->train_labels);
	add_opt(d, s, "testImages", t->test_images);
	add_opt(d, s, "testLabels", t->test_labels);
	mu_doc_add_float(d, s, "testFraction", t->test_fraction);
	mu_doc_add_int(d, s, "splitSeed", t->split_seed);
	mu_doc_add_float(d, s, "scale", t->scale);
}

void train_spec_write(const struct train_spec *t, struct mu_buf *out)
{
	MU_AUTO(mu_doc_free) struct mu_doc *d = mu_doc_new("");

	mu_doc_add(d, NULL, NULL, MU_DOC_MAP);
	if (t->model)
		write_train(d, t);
	mu_doc_add_bool(d, d->root, "sync", t->sync);
	mu_doc_add_int(d, d->root, "replicasToAggregate", t->replicas_to_aggregate);
	mu_doc_add_int(d, d->root, "backupWorkers", t->backup_workers);
	add_opt(d, d->root, "checkpointPath", t->checkpoint_path);
	mu_doc_add_int(d, d->root, "checkpointSeconds", t->checkpoint_seconds);
	mu_doc_add_int(d, d->root, "checkpointSteps", t->checkpoint_steps);
	mu_doc_add_int(d, d->root, "checkpointKeep", t->checkpoint_keep);
	add_opt(d, d->root, "summaryPath", t->summary_path);
	mu_doc_add_int(d, d->root, "summarySteps", t->summary_steps);
	mu_json_write(out, d->root);
}

static int read_rest(struct train_spec *t, const struct mu_doc_node *root, struct mu_err *err)
{
	int64_t aggregate = 0, backup = 0, keep = 5;
	struct mu_doc_node *train;
	int rc;

	t->checkpoint_seconds = 60;
	t->summary_steps = 100;
	if (root->kind != MU_DOC_MAP)
		return mu_doc_fail(root, err, MU_INVALID_ARGUMENT, "must be a map");
	if ((rc = mu_doc_opt_map(root, "train", &train, err)) ||
	    (rc = mu_doc_opt_bool(root, "sync", &t->sync, err)) ||
	    (rc = mu_doc_opt_int(root, "replicasToAggregate", 0, INT_MAX, &aggregate, err)) ||
	    (rc = mu_doc_opt_int(root, "backupWorkers", 0, INT_MAX, &backup, err)) ||
	    (rc = mu_doc_opt_text(root, "checkpointPath", &t->checkpoint_path, err)) ||
	    (rc = mu_doc_opt_int(root, "checkpointSeconds", 0, INT_MAX, &t->checkpoint_seconds,
				 err)) ||
	    (rc = mu_doc_opt_int(root, "checkpointSteps", 0, INT64_MAX, &t->checkpoint_steps,
				 err)) ||
	    (rc = mu_doc_opt_int(root, "checkpointKeep", 1, INT_MAX, &keep, err)) ||
	    (rc = mu_doc_opt_text(root, "summaryPath", &t->summary_path, err)) ||
	    (rc = mu_doc_opt_int(root, "summarySteps", 1, INT64_MAX, &t->summary_steps, err)))
		return rc;
	t->replicas_to_aggregate = (int)aggregate;
	t->backup_workers = (int)backup;
	t->checkpoint_keep = (int)keep;
	return train ? job_spec_read_train(t, train, err) : 0;
}

int train_spec_read(struct train_spec *out, struct mu_doc **doc, struct mu_span json,
		    struct mu_err *err)
{
	MU_AUTO(mu_doc_free) struct mu_doc *d = NULL;
	struct train_spec t = {0};
	int rc = mu_json_parse(&d, json, "MUSTER_TRAIN", err);

	if (rc || (rc = read_rest(&t, d->root, err)))
		return rc;
	*out = t;
	*doc = mu_steal(&d);
	return 0;
}
