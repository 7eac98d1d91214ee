/* SPDX-License-Identifier: Apache-2.0 */
/* Labelled examples in memory, and batches of them in a shuffled order. */
#ifndef MUSTER_DATA_H
#define MUSTER_DATA_H

#include "lib/tensor/tensor.h"

struct mu_dataset {
	struct mu_tensor x; /* float [rows, features], or uint8, a quarter of the memory */
	struct mu_tensor y; /* int32 [rows], 0 … classes-1 */
	int64_t rows, features, classes;
	float *of_byte; /* where x holds bytes: what each of the 256 stands for, … */
	float divisor;  /* … and what they are divided by for it; 0: there is only the table */
};
void mu_dataset_fini(struct mu_dataset *d);
static inline float mu_dataset_at(const struct mu_dataset *d, int64_t row, int64_t feature)
{
	int64_t i = row * d->features + feature;

	return d->of_byte ? d->of_byte[MU_DATA(uint8_t, &d->x)[i]] : MU_DATA(float, &d->x)[i];
}
void mu_dataset_row(const struct mu_dataset *d, int64_t row, float *to); /* all its features */

/* A pair of IDX files: images (any rank; flattened) and labels. */
int mu_dataset_idx(struct mu_dataset *out, const char *images, const char *labels, double scale,
		   struct mu_err *err);

/* Files of records.  A bad one is told with file and offset, or line. */
struct mu_records {
	const char *pattern;         /* a path, or several as the shell writes them: data_*.bin */
	const char *feature, *label; /* tf.Example: the names of the two */
	bool skip_bad;               /* leave bad records out, instead of failing with DATA_LOSS */
	double scale;                /* features are divided by it; 0: by their greatest value */
};
/* A CSV (the pattern is a path) whose last column is the label; the last `test_fraction` of the
 * rows go to *test, as they stand in the file (split_seed 0) or shuffled by that seed first. */
int mu_dataset_csv(struct mu_dataset *train, struct mu_dataset *test, const struct mu_records *o,
		   double test_fraction, uint64_t split_seed, struct mu_err *err);
/* TFRecord files of tf.Example: the feature is a list of numbers, or of bytes, as long in each. */
int mu_dataset_tfrecord(struct mu_dataset *out, const struct mu_records *o, struct mu_err *err);
/* CIFAR-10's binary files; rows are 32 x 32 x 3, the channel last. */
int mu_dataset_cifar10(struct mu_dataset *out, const struct mu_records *o, struct mu_err *err);
/* Takes d apart: the last `fraction` of the rows are *test, in the file's order (seed 0) or
 * shuffled by the seed first.  Takes d on success. */
int mu_dataset_split(struct mu_dataset *train, struct mu_dataset *test, struct mu_dataset *d,
		     double fraction, uint64_t seed, struct mu_err *err);

/* From arrays: rows of `features` numbers each, divided by scale (as in struct mu_records), and
 * a class number for each.  Copies them. */
int mu_dataset_memory(struct mu_dataset *out, const float *x, const int32_t *y, int64_t rows,
		      int64_t features, double scale, struct mu_err *err);

/* Walks a data set, in a new order each time round; the same seed gives the same walk. */
struct mu_batch_options {
	int64_t batch;
	uint64_t seed;
	bool in_order;       /* as the rows stand, each time round */
	int64_t rounds;      /* 0: for ever; else OUT_OF_RANGE once they are over */
	int64_t part, parts; /* rows part, part + parts, …: each worker its own; parts 0: all */
	/* So many batches are made ahead by a thread.  0: each when it is asked for, which is as
	 * good while the rows are in memory and small. */
	unsigned ahead;
};
struct mu_batches;
/* Borrows d. */
int mu_batches_open(struct mu_batches **out, const struct mu_dataset *d,
		    const struct mu_batch_options *o, struct mu_err *err);
void mu_batches_free(struct mu_batches *b);
MU_AUTO_DEFINE(mu_batches_free, struct mu_batches)
/* The next batch; the tensors are the walk's own and good until the next call.  The last one of all
 * rounds may be smaller.  From one thread. */
int mu_batches_next(struct mu_batches *b, const struct mu_tensor **x, const struct mu_tensor **y,
		    struct mu_err *err);
/* Rows [from, to) as they stand, copied into new tensors. */
int mu_dataset_rows(const struct mu_dataset *d, int64_t from, int64_t to, struct mu_tensor *x,
		    struct mu_tensor *y, struct mu_err *err);

#endif
