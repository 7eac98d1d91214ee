/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints in TensorFlow's V1 format: one table with a message for each tensor or slice.  Old
 * programs still write this format, and old published models use it. */
#ifndef MU_LIB_CHECKPOINT_V1_FORMAT_H
#define MU_LIB_CHECKPOINT_V1_FORMAT_H

#include "lib/checkpoint/bundle.h"

struct mu_v1_format {
	const char *name;
	const struct mu_slice *slice; /* NULL: the whole tensor */
	const struct mu_tensor *tensor;
};
/* Writes the file atomically.  A name may occur several times, with slices that do not overlap. */
int mu_v1_format_write(const char *path, const struct mu_v1_format *items, unsigned n,
		       struct mu_err *err);

struct mu_v1_reader;
/* Reads and verifies all files that match the pattern; together they are one checkpoint.  NOT_FOUND
 * if no file matches. */
int mu_v1_format_open(struct mu_v1_reader **out, const char *pattern, struct mu_err *err);
void mu_v1_reader_free(struct mu_v1_reader *r);
MU_AUTO_DEFINE(mu_v1_reader_free, struct mu_v1_reader)
/* Reads a tensor and concatenates its slices.  slice: (optional) the slice to read. */
int mu_v1_format_read(const struct mu_v1_reader *r, const char *name, const struct mu_slice *slice,
		      struct mu_tensor *out, struct mu_err *err);
/* Reads one file in memory; borrows the bytes. */
int mu_v1_format_parse(struct mu_v1_reader **out, struct mu_span file, const char *path,
		       struct mu_err *err);

#endif
