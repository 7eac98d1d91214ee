/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of the built-in trainer: spec.program.train of a manifest, and MUSTER_TRAIN in the
 * environment of a task. */
#ifndef MU_LIB_CLUSTER_TRAIN_SPEC_H
#define MU_LIB_CLUSTER_TRAIN_SPEC_H

#include "lib/io/fields.h"

enum { TRAIN_MAX_LAYERS = 8, TRAIN_MAX_CATEGORICAL = 64 };
enum dataset_format { DATASET_CSV, DATASET_IDX, DATASET_CIFAR10, DATASET_TFRECORD };
extern const char *const dataset_format_names[];

/* spec.program.train and the other settings of the trainer, which it reads from MUSTER_TRAIN. */
struct train_spec {
	const char *model; /* "softmax", "mlp", "cnn", "wide-deep", "es" */
	enum dataset_format format;
	const char *path; /* csv: the file, whose last column is the label; records: a pattern */
	const char *test_path; /* records: pattern of the test set; NULL: a fraction of the rows */
	const char *feature, *label; /* tfrecord: names of the features in a tf.Example */
	int skip_bad;                /* records: 1: skip invalid records */
	const char *train_images;    /* idx: four files */
	const char *train_labels, *test_images, *test_labels;
	double test_fraction; /* csv: fraction of the rows, the last ones, for the test set; 0.2 */
	int64_t split_seed;   /* csv: seed of the shuffle before the split; 0: file order */
	double scale;         /* divisor of the features; 0: their maximum */
	int hidden[TRAIN_MAX_LAYERS];
	unsigned n_hidden;
	int categorical[TRAIN_MAX_CATEGORICAL]; /* wide-deep: indices of categorical columns */
	unsigned n_categorical;
	int embedding;         /* wide-deep: 8 */
	int pairs;             /* es: 16 */
	double noise;          /* es: 0.1 */
	int batch_size;        /* 32 */
	double learning_rate;  /* 0.1 */
	const char *optimizer; /* "sgd", "momentum", "nesterov", "adagrad", "adam", … */
	int decay;             /* of the learning rate: constant, exponential, steps, cosine */
	double decay_rate;     /* 0.96 */
	int64_t decay_steps;   /* 1000 */
	double l2, clip_norm;  /* 0: none */
	double momentum;       /* 0.9 */
	int64_t steps;         /* target global step; 1000 */
	int64_t
	    validation_steps; /* interval at which the chief scores the test set; 0: at the end */
	int64_t patience;     /* validations without improvement before training stops; 0: never */
	const char *export_prefix; /* prefix of the checkpoint of the final weights; NULL: none */
	int64_t seed;              /* 1 */
	bool sync;                 /* spec.mode: sync */
	int replicas_to_aggregate; /* 0: the number of workers */
	int backup_workers;

	const char *checkpoint_path; /* NULL: none */
	int64_t checkpoint_seconds;  /* interval; 0: none; 60 */
	int64_t checkpoint_steps;    /* interval; 0: none */
	int checkpoint_keep;         /* 5 */
	const char *summary_path;    /* NULL: none */
	int64_t summary_steps;       /* 100 */
};
extern const struct train_spec train_spec_defaults;
extern const struct field train_fields[]; /* spec.program.train */

/* train_spec_init sets the defaults, before train_fields are read.  train_spec_check validates the
 * settings after that. */
void train_spec_init(struct train_spec *t, const struct mu_doc_node *train);
int train_spec_check(struct train_spec *t, const struct mu_doc_node *train, struct mu_err *err);
/* Write and read the settings as one line of JSON, the value of MUSTER_TRAIN.  The strings of `out`
 * are in *doc, which the caller frees after `out`. */
void train_spec_write(const struct train_spec *t, struct mu_buf *out);
int train_spec_read(struct train_spec *out, struct mu_doc **doc, struct mu_span json,
		    struct mu_err *err);

#endif
