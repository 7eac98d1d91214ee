/* SPDX-License-Identifier: Apache-2.0 */
/* spec.program.train, and the settings of the trainer on their way into a task's environment. */
#include <float.h>
#include <limits.h>

#include "lib/io/json.h"
#include "operator/api/fields.h"
#include "operator/api/job_spec_internal.h"

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
static const char *const bad_records[] = {"fail", "skip", NULL};

enum { DECAY_EXPONENTIAL = 1, VALIDATION_STEPS = 100 };

const struct train_spec train_spec_defaults = {
    .feature = "x",
    .label = "label",
    .test_fraction = 0.2,
    .embedding = 8,
    .pairs = 16,
    .noise = 0.1,
    .batch_size = 32,
    .learning_rate = 0.1,
    .optimizer = "sgd",
    .decay_rate = 0.96,
    .decay_steps = 1000,
    .momentum = 0.9,
    .steps = 1000,
    .seed = 1,
    .checkpoint_seconds = 60,
    .checkpoint_keep = 5,
    .summary_steps = 100,
};

/* spec.program.train */
static const struct field train_fields[] = {
    {"model", FIELD_NAME, AT(train_spec, model), .names = model_names},
    {.key = "dataset"},
    {.key = "hiddenUnits"},
    {.key = "categoricalColumns"},
    {.key = "learningRateDecay"},
    {.key = "validation"},
    {"embeddingSize", FIELD_INT, AT(train_spec, embedding), .min = 1, .max = 1024},
    {"perturbations", FIELD_INT, AT(train_spec, pairs), .min = 1, .max = 256},
    {"noise", FIELD_DOUBLE, AT(train_spec, noise), .least = 1e-6, .most = 10},
    {"batchSize", FIELD_INT, AT(train_spec, batch_size), .min = 1, .max = 1 << 20},
    {"learningRate", FIELD_DOUBLE, AT(train_spec, learning_rate), .least = 0, .most = FLT_MAX},
    {"optimizer", FIELD_NAME, AT(train_spec, optimizer), .names = optimizers},
    {"momentum", FIELD_DOUBLE, AT(train_spec, momentum), .least = 0, .most = 1},
    {"l2", FIELD_DOUBLE, AT(train_spec, l2), .least = 0, .most = FLT_MAX},
    {"clipNorm", FIELD_DOUBLE, AT(train_spec, clip_norm), .least = 0, .most = FLT_MAX},
    {"exportPath", FIELD_TEXT, AT(train_spec, export_prefix)},
    {"steps", FIELD_INT64, AT(train_spec, steps), .min = 1, .max = INT64_MAX / 2},
    {"seed", FIELD_INT64, AT(train_spec, seed), .min = 0, .max = INT64_MAX / 2},
    {NULL}};
static const struct field decay_fields[] = {
    {"kind", FIELD_ENUM, AT(train_spec, decay), .names = decays},
    {"rate", FIELD_DOUBLE, AT(train_spec, decay_rate), .least = 0, .most = 1},
    {"steps", FIELD_INT64, AT(train_spec, decay_steps), .min = 1, .max = INT64_MAX / 2},
    {NULL}};
static const struct field validation_fields[] = {
    {"everySteps", FIELD_INT64, AT(train_spec, validation_steps), .min = 1, .max = INT64_MAX / 2},
    {"patience", FIELD_INT64, AT(train_spec, patience), .min = 0, .max = 1 << 20},
    {NULL}};
static const struct field dataset_fields[] = {
    {"format", FIELD_ENUM, AT(train_spec, format), .names = dataset_format_names},
    {"path", FIELD_TEXT, AT(train_spec, path)},
    {"testPath", FIELD_TEXT, AT(train_spec, test_path)},
    {"featureKey", FIELD_TEXT, AT(train_spec, feature)},
    {"labelKey", FIELD_TEXT, AT(train_spec, label)},
    {"badRecords", FIELD_ENUM, AT(train_spec, skip_bad), .names = bad_records},
    {"trainImages", FIELD_TEXT, AT(train_spec, train_images)},
    {"trainLabels", FIELD_TEXT, AT(train_spec, train_labels)},
    {"testImages", FIELD_TEXT, AT(train_spec, test_images)},
    {"testLabels", FIELD_TEXT, AT(train_spec, test_labels)},
    {"testFraction", FIELD_DOUBLE, AT(train_spec, test_fraction), .least = 0, .most = 0.9},
    {"splitSeed", FIELD_INT64, AT(train_spec, split_seed), .min = 0, .max = INT64_MAX / 2},
    {"scale", FIELD_DOUBLE, AT(train_spec, scale), .least = 0, .most = 1e30},
    {NULL}};
/* MUSTER_TRAIN */
static const struct field environment_fields[] = {
    {.key = "train"},
    {"sync", FIELD_BOOL, AT(train_spec, sync)},
    {"replicasToAggregate", FIELD_INT, AT(train_spec, replicas_to_aggregate), .max = INT_MAX},
    {"backupWorkers", FIELD_INT, AT(train_spec, backup_workers), .max = INT_MAX},
    {"checkpointPath", FIELD_TEXT, AT(train_spec, checkpoint_path)},
    {"checkpointSeconds", FIELD_INT64, AT(train_spec, checkpoint_seconds), .max = INT_MAX},
    {"checkpointSteps", FIELD_INT64, AT(train_spec, checkpoint_steps), .max = INT64_MAX},
    {"checkpointKeep", FIELD_INT, AT(train_spec, checkpoint_keep), .min = 1, .max = INT_MAX},
    {"summaryPath", FIELD_TEXT, AT(train_spec, summary_path)},
    {"summarySteps", FIELD_INT64, AT(train_spec, summary_steps), .min = 1, .max = INT64_MAX},
    {NULL}};

static int read_dataset(struct train_spec *t, const struct mu_doc_node *train, struct mu_err *err)
{
	struct mu_doc_node *d;
	int rc = fields_read_map(train, "dataset", dataset_fields, t, &d, err);
	bool images = t->train_images || t->train_labels || t->test_images || t->test_labels;

	if (rc)
		return rc;
	if (!d)
		return spec_invalid(train, err, "needs a dataset");
	if (t->format == DATASET_IDX &&
	    (t->path || !t->train_images || !t->train_labels || !t->test_images != !t->test_labels))
		return spec_invalid(d, err,
				    "format idx needs trainImages and trainLabels, may have both "
				    "testImages and testLabels, and has no path");
	if (t->format != DATASET_IDX && (!t->path || images))
		return spec_invalid(d, err, "format %s needs a path, and no images or labels",
				    dataset_format_names[t->format]);
	if (t->format <= DATASET_IDX && t->test_path)
		return spec_invalid(d, err, "testPath goes with the formats cifar10 and tfrecord");
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
		return spec_invalid(list, err, "has more than %u entries", max);
	mu_doc_each(list, n)
	{
		if (n->kind != MU_DOC_INT || n->i < lowest || n->i > highest)
			return spec_invalid(n, err, "must be a whole number between %lld and %lld",
					    (long long)lowest, (long long)highest);
		out[(*n_out)++] = (int)n->i;
	}
	return 0;
}

/* Hidden layers and categorical columns, which only some models have. */
static int read_model(struct train_spec *t, const struct mu_doc_node *train, struct mu_err *err)
{
	int model = 0, rc;

	if ((rc = read_ints(train, "hiddenUnits", 1, 65536, JOB_MAX_LAYERS, t->hidden, &t->n_hidden,
			    err)) ||
	    (rc = read_ints(train, "categoricalColumns", 0, 255, JOB_MAX_CATEGORICAL,
			    t->categorical, &t->n_categorical, err)))
		return rc;
	while (strcmp(model_names[model], t->model) != 0)
		model++;
	if (t->n_hidden && !models[model].layers)
		return spec_invalid(mu_doc_get(train, "hiddenUnits"), err,
				    "the %s model has no hidden layers; say model: mlp", t->model);
	if (!t->n_categorical == models[model].categorical)
		return spec_invalid(
		    train, err, "categoricalColumns belong to model wide-deep, which needs them");
	if (!t->n_hidden && models[model].default_units)
		t->hidden[t->n_hidden++] = models[model].default_units;
	return 0;
}

int job_spec_read_train(struct train_spec *t, const struct mu_doc_node *train, struct mu_err *err)
{
	struct mu_doc_node *decay, *validation;
	int rc;

	if ((rc = mu_doc_opt_map(train, "learningRateDecay", &decay, err)) ||
	    (rc = mu_doc_opt_map(train, "validation", &validation, err)))
		return rc;
	t->model = model_names[0];
	t->decay = decay ? DECAY_EXPONENTIAL : 0;
	t->validation_steps = validation ? VALIDATION_STEPS : 0;
	if ((rc = fields_read(train, train_fields, t, err)) ||
	    (rc = fields_read(decay, decay_fields, t, err)) ||
	    (rc = fields_read(validation, validation_fields, t, err)) ||
	    (rc = read_dataset(t, train, err)))
		return rc;
	return read_model(t, train, err);
}

static void write_ints(cJSON *to, const char *key, const int *v, unsigned n)
{
	if (n)
		cJSON_AddItemToObject(to, key, cJSON_CreateIntArray(v, (int)n));
}

static void write_train(cJSON *json, const struct train_spec *t)
{
	fields_encode(json, train_fields, t);
	write_ints(json, "hiddenUnits", t->hidden, t->n_hidden);
	write_ints(json, "categoricalColumns", t->categorical, t->n_categorical);
	fields_encode(cJSON_AddObjectToObject(json, "learningRateDecay"), decay_fields, t);
	if (t->validation_steps)
		fields_encode(cJSON_AddObjectToObject(json, "validation"), validation_fields, t);
	fields_encode(cJSON_AddObjectToObject(json, "dataset"), dataset_fields, t);
}

void train_spec_write(const struct train_spec *t, struct mu_buf *out)
{
	cJSON *json = cJSON_CreateObject();

	if (t->model)
		write_train(cJSON_AddObjectToObject(json, "train"), t);
	fields_encode(json, environment_fields, t);
	mu_json_print(out, json);
	cJSON_Delete(json);
}

int train_spec_read(struct train_spec *out, struct mu_doc **doc, struct mu_span json,
		    struct mu_err *err)
{
	MU_AUTO(mu_doc_free) struct mu_doc *d = NULL;
	struct train_spec t = train_spec_defaults;
	struct mu_doc_node *train;
	int rc = mu_json_parse(&d, json, "MUSTER_TRAIN", err);

	if (rc)
		return rc;
	if (d->root->kind != MU_DOC_MAP)
		return spec_invalid(d->root, err, "must be a map");
	if ((rc = fields_read(d->root, environment_fields, &t, err)) ||
	    (rc = mu_doc_opt_map(d->root, "train", &train, err)) ||
	    (rc = train ? job_spec_read_train(&t, train, err) : 0))
		return rc;
	*out = t;
	*doc = mu_steal(&d);
	return 0;
}
