/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of spec.program.train and of MUSTER_TRAIN. */
#include "lib/cluster/train_spec.h"

#include <cjson/cJSON.h>
#include <float.h>
#include <limits.h>

#include "lib/io/json.h"

static const char *const model_names[] = {"softmax", "mlp", "cnn", "wide-deep", "es", NULL};
static const struct {
	bool layers, categorical; /* may have hidden layers; needs categorical columns */
	int default_units;        /* units of one hidden layer if the manifest has none; 0: none */
} models[] = {
    {false, false, 0}, {true, false, 128}, {true, false, 128}, {true, true, 64}, {true, false, 0},
};
static const char *const optimizers[] = {"sgd",     "momentum", "nesterov", "adagrad", "adam",
					 "rmsprop", "adadelta", "ftrl",     NULL};
static const char *const decays[] = {"constant", "exponential", "steps", "cosine", NULL};
const char *const dataset_format_names[] = {"csv", "idx", "cifar10", "tfrecord", NULL};
static const char *const bad_records[] = {"fail", "skip", NULL};

enum { DECAY_EXPONENTIAL = 1, VALIDATION_STEPS = 100 };

const struct train_spec train_spec_defaults = {
    .model = "softmax",
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

static const struct field decay_fields[] = {
    {"kind", FIELD_ENUM, AT(train_spec, decay), .names = decays},
    {"rate", FIELD_DOUBLE, AT(train_spec, decay_rate), .min_value = 0, .max_value = 1},
    {"steps", FIELD_INT64, AT(train_spec, decay_steps), .min = 1, .max = INT64_MAX / 2},
    {NULL}};
static const struct field validation_fields[] = {
    {"everySteps", FIELD_INT64, AT(train_spec, validation_steps), .min = 1, .max = INT64_MAX / 2,
     .optional = true},
    {"patience", FIELD_INT64, AT(train_spec, patience), .min = 0, .max = 1 << 20, .optional = true},
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
    {"testFraction", FIELD_DOUBLE, AT(train_spec, test_fraction), .min_value = 0, .max_value = 0.9},
    {"splitSeed", FIELD_INT64, AT(train_spec, split_seed), .min = 0, .max = INT64_MAX / 2},
    {"scale", FIELD_DOUBLE, AT(train_spec, scale), .min_value = 0, .max_value = 1e30},
    {NULL}};
/* spec.program.train */
const struct field train_fields[] = {
    {"model", FIELD_NAME, AT(train_spec, model), .names = model_names},
    {"dataset", FIELD_SECTION, .section = dataset_fields},
    {"hiddenUnits", FIELD_INTS, AT(train_spec, hidden),
     .count = offsetof(struct train_spec, n_hidden), .min = 1, .max = 65536},
    {"categoricalColumns", FIELD_INTS, AT(train_spec, categorical),
     .count = offsetof(struct train_spec, n_categorical), .min = 0, .max = 255},
    {"learningRateDecay", FIELD_SECTION, .section = decay_fields},
    {"validation", FIELD_SECTION, .section = validation_fields},
    {"embeddingSize", FIELD_INT, AT(train_spec, embedding), .min = 1, .max = 1024},
    {"perturbations", FIELD_INT, AT(train_spec, pairs), .min = 1, .max = 256},
    {"noise", FIELD_DOUBLE, AT(train_spec, noise), .min_value = 1e-6, .max_value = 10},
    {"batchSize", FIELD_INT, AT(train_spec, batch_size), .min = 1, .max = 1 << 20},
    {"learningRate", FIELD_DOUBLE, AT(train_spec, learning_rate), .min_value = 0,
     .max_value = FLT_MAX},
    {"optimizer", FIELD_NAME, AT(train_spec, optimizer), .names = optimizers},
    {"momentum", FIELD_DOUBLE, AT(train_spec, momentum), .min_value = 0, .max_value = 1},
    {"l2", FIELD_DOUBLE, AT(train_spec, l2), .min_value = 0, .max_value = FLT_MAX},
    {"clipNorm", FIELD_DOUBLE, AT(train_spec, clip_norm), .min_value = 0, .max_value = FLT_MAX},
    {"exportPath", FIELD_TEXT, AT(train_spec, export_prefix)},
    {"steps", FIELD_INT64, AT(train_spec, steps), .min = 1, .max = INT64_MAX / 2},
    {"seed", FIELD_INT64, AT(train_spec, seed), .min = 0, .max = INT64_MAX / 2},
    {NULL}};
/* MUSTER_TRAIN */
static const struct field environment_fields[] = {
    {"train", FIELD_SECTION, .section = train_fields},
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

static int check_dataset(const struct train_spec *t, const struct mu_doc_node *train,
			 struct mu_err *err)
{
	const struct mu_doc_node *d = mu_doc_section(train, "dataset");
	bool images = t->train_images || t->train_labels || t->test_images || t->test_labels;

	if (!d)
		return mu_doc_invalid(train, err, "needs a dataset");
	if (t->format == DATASET_IDX &&
	    (t->path || !t->train_images || !t->train_labels || !t->test_images != !t->test_labels))
		return mu_doc_invalid(d, err,
				      "format idx needs trainImages and trainLabels, may have both "
				      "testImages and testLabels, and has no path");
	if (t->format != DATASET_IDX && (!t->path || images))
		return mu_doc_invalid(d, err, "format %s needs a path, and no images or labels",
				      dataset_format_names[t->format]);
	if (t->format <= DATASET_IDX && t->test_path)
		return mu_doc_invalid(d, err,
				      "testPath goes with the formats cifar10 and tfrecord");
	return 0;
}

void train_spec_init(struct train_spec *t, const struct mu_doc_node *train)
{
	*t = train_spec_defaults;
	t->decay = mu_doc_section(train, "learningRateDecay") ? DECAY_EXPONENTIAL : 0;
	t->validation_steps = mu_doc_section(train, "validation") ? VALIDATION_STEPS : 0;
}

int train_spec_check(struct train_spec *t, const struct mu_doc_node *train, struct mu_err *err)
{
	int model = mu_word_index(t->model, model_names), rc = check_dataset(t, train, err);

	if (rc)
		return rc;
	if (t->n_hidden && !models[model].layers)
		return mu_doc_invalid(mu_doc_get(train, "hiddenUnits"), err,
				      "the %s model has no hidden layers; set model: mlp",
				      t->model);
	if (!t->n_categorical == models[model].categorical)
		return mu_doc_invalid(
		    train, err, "categoricalColumns belong to model wide-deep, which needs them");
	if (!t->n_hidden && models[model].default_units)
		t->hidden[t->n_hidden++] = models[model].default_units;
	return 0;
}

void train_spec_write(const struct train_spec *t, struct mu_buf *out)
{
	cJSON *json = cJSON_CreateObject();

	fields_encode(json, environment_fields, t);
	mu_json_print(out, json);
	cJSON_Delete(json);
}

int train_spec_read(struct train_spec *out, struct mu_doc **doc, struct mu_span json,
		    struct mu_err *err)
{
	MU_AUTO(mu_doc_free) struct mu_doc *d = NULL;
	const struct mu_doc_node *train;
	struct train_spec t;
	int rc = mu_json_parse(&d, json, "MUSTER_TRAIN", err);

	if (rc)
		return rc;
	if (!(train = mu_doc_section(d->root, "train")))
		return mu_doc_invalid(d->root, err, "must be a map with the key train");
	train_spec_init(&t, train);
	if ((rc = fields_read(d->root, environment_fields, &t, err)) ||
	    (rc = train_spec_check(&t, train, err)))
		return rc;
	*out = t;
	*doc = mu_steal(&d);
	return 0;
}
