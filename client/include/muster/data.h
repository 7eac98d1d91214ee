/* SPDX-License-Identifier: Apache-2.0 */
/* Labelled examples in memory, and batches of them in a shuffled order. */
#ifndef MUSTER_DATA_H
#define MUSTER_DATA_H

#include "lib/tensor/tensor.h"

struct mu_dataset {
	struct mu_tensor x; /* float [rows, features] */
	struct mu_tensor y; /* int32 [rows], 0 … classes-1 */
	int64_t rows, features, classes;
};
void mu_dataset_fini(struct mu_dataset *d);

/* A CSV whose last column is the label; the last `test_fraction` of the rows go to *test, as they
 * stand in the file (split_seed 0) or shuffled by that seed first.  Features are divided by scale,
 * or by their greatest value when it is 0. */
int mu_dataset_csv(struct mu_dataset *train, struct mu_dataset *test, const char *path,
		   double test_fraction, uint64_t split_seed, double scale, struct mu_err *err);
/* A pair of IDX files: images (any rank; flattened) and labels. */
int mu_dataset_idx(struct mu_dataset *out, const char *images, const char *labels, double scale,
		   struct mu_err *err);

/* Walks a data set for ever, in a new order each time round; the same seed gives the same walk. */
struct mu_batches;
struct mu_batches *mu_batches_new(const struct mu_dataset *d, int64_t batch, uint64_t seed);
void mu_batches_free(struct mu_batches *b);
MU_AUTO_DEFINE(mu_batches_free, struct mu_batches)
/* The next batch; the tensors are the walk's own and good until the next call. */
int mu_batches_next(struct mu_batches *b, const struct mu_tensor **x, const struct mu_tensor **y,
		    struct mu_err *err);
/* Rows [from, to) as they stand, copied into new tensors. */
int mu_dataset_rows(const struct mu_dataset *d, int64_t from, int64_t to, struct mu_tensor *x,
		    struct mu_tensor *y, struct mu_err *err);

#endif
