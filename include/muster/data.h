/* SPDX-License-Identifier: Apache-2.0 */
/* Labelled examples in memory, and batches of them in a shuffled order. */
#ifndef MUSTER_DATA_H
#define MUSTER_DATA_H

#include "lib/tensor/tensor.h"

struct mu_dataset {
	struct mu_tensor x; /* float [rows, features], or uint8 (a quarter of the memory) */
	struct mu_tensor y; /* int32 [rows], 0 … classes-1 */
	int64_t rows, features, classes;
	float *byte_values; /* if x has bytes: the feature for each of the 256 bytes */
	float divisor;      /* if not 0, byte_values[i] is i / divisor */
};
void mu_dataset_fini(struct mu_dataset *d);
static inline float mu_dataset_at(const struct mu_dataset *d, int64_t row, int64_t feature)
{
	int64_t i = row * d->features + feature;

	return d->byte_values ? d->byte_values[MU_DATA(uint8_t, &d->x)[i]]
			      : MU_DATA(float, &d->x)[i];
}
void mu_dataset_row(const struct mu_dataset *d, int64_t row,
		    float *to); /* copies all features of the row */

/* Reads a pair of IDX files: images (any rank; flattened) and labels. */
int mu_dataset_idx(struct mu_dataset *out, const char *images, const char *labels, double scale,
		   struct mu_err *err);

/* Files of records. A message about an invalid record names the file and its offset or line. */
struct mu_records {
	const char *pattern;         /* a path or a glob pattern: data_*.bin */
	const char *feature, *label; /* tf.Example: the names of these features */
	bool skip_bad;               /* skip invalid records instead of failing with DATA_LOSS */
	double scale;                /* divisor of the features; 0: their maximum */
};
/* Reads a CSV file (the pattern is a path). The last column is the label. The last `test_fraction`
 * of the rows become *test. split_seed: shuffles the rows before the split; 0: file order. */
int mu_dataset_csv(struct mu_dataset *train, struct mu_dataset *test, const struct mu_records *o,
		   double test_fraction, uint64_t split_seed, struct mu_err *err);
/* Reads TFRecord files of tf.Example. The feature is a list of numbers, or of bytes, of the same
 * length in each record. */
int mu_dataset_tfrecord(struct mu_dataset *out, const struct mu_records *o, struct mu_err *err);
/* Reads CIFAR-10's binary files. Rows are 32 x 32 x 3, channels last. */
int mu_dataset_cifar10(struct mu_dataset *out, const struct mu_records *o, struct mu_err *err);
/* Splits d: the last `fraction` of the rows become *test, in file order with seed 0, else shuffled
 * with the seed first. Moves the contents of d on success. */
int mu_dataset_split(struct mu_dataset *train, struct mu_dataset *test, struct mu_dataset *d,
		     double fraction, uint64_t seed, struct mu_err *err);

/* Copies arrays: rows of `features` numbers, divided by scale (as in struct mu_records), and a
 * class number for each row. */
int mu_dataset_memory(struct mu_dataset *out, const float *x, const int32_t *y, int64_t rows,
		      int64_t features, double scale, struct mu_err *err);

/* Iterates over a data set, in a new random order in each epoch. The same seed leads to the
 * same order. */
struct mu_batch_options {
	int64_t batch;
	uint64_t seed;
	bool in_order;       /* no shuffling */
	int64_t rounds;      /* epochs; 0: unlimited; OUT_OF_RANGE after the last one */
	int64_t part, parts; /* this shard: rows part, part + parts, …; parts 0: all rows */
	/* Number of batches that a thread prefetches. 0: no thread, which is as fast for small data
	 * in memory. */
	unsigned prefetch;
};
struct mu_batches;
/* Borrows d. */
int mu_batches_open(struct mu_batches **out, const struct mu_dataset *d,
		    const struct mu_batch_options *o, struct mu_err *err);
void mu_batches_free(struct mu_batches *b);
MU_AUTO_DEFINE(mu_batches_free, struct mu_batches)
/* Returns the next batch. The tensors belong to b and are valid until the next call. The last batch
 * of the last epoch may be smaller. Call it from one thread only. */
int mu_batches_next(struct mu_batches *b, const struct mu_tensor **x, const struct mu_tensor **y,
		    struct mu_err *err);
/* Copies rows [from, to) into new tensors. */
int mu_dataset_rows(const struct mu_dataset *d, int64_t from, int64_t to, struct mu_tensor *x,
		    struct mu_tensor *y, struct mu_err *err);

#endif
