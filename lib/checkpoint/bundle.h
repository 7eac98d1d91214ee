/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints in TensorFlow's tensor-bundle format (V2): <prefix>.index and
 * <prefix>.data-00000-of-00001 (or more shards).
 *
 * Writing is crash-safe: temporary files are written and synced, then renamed, the index last.  The
 * checkpoint exists when mu_bundle_finish renames its index.  An older checkpoint of the same name
 * stays valid until the first rename.  Between the two renames its index does not match the new
 * data file, which readers detect by checksums.  Reading verifies every byte that it uses: a
 * flipped bit is DATA_LOSS with file and offset.
 *
 * Partitioned variables: a slice is described as in SaveV2's shape_and_slices, "10 4 0,5:-" (full
 * shape, then start,length or - for each dimension).  A slice that is the whole variable is stored
 * as an ordinary tensor.
 *
 * Writers and readers are not thread-safe.
 */
#ifndef MU_LIB_CHECKPOINT_BUNDLE_H
#define MU_LIB_CHECKPOINT_BUNDLE_H

#include "lib/checkpoint/read_sum.h"
#include "lib/tensor/tensor.h"

struct mu_slice {
	struct mu_shape full;        /* of the whole variable */
	int64_t start[MU_MAX_RANK];  /* 0 for a whole dimension */
	int64_t length[MU_MAX_RANK]; /* as in the specification; -1: the whole dimension ("-") */
	struct mu_shape shape;       /* of the slice */
	bool is_whole;               /* the slice is the whole variable */
};
/* For the empty string *is_slice is false and *out is unchanged. */
int mu_slice_parse(struct mu_slice *out, bool *is_slice, struct mu_span spec, struct mu_err *err);

struct mu_bundle_writer;
/* Creates the folder of the prefix; NOT_FOUND if the parent of the folder is missing. */
int mu_bundle_create(struct mu_bundle_writer **out, const char *prefix, struct mu_err *err);
int mu_bundle_add(struct mu_bundle_writer *w, const char *name, const struct mu_tensor *t,
		  struct mu_err *err);
int mu_bundle_add_slice(struct mu_bundle_writer *w, const char *name, const struct mu_slice *slice,
			const struct mu_tensor *t, struct mu_err *err);
int mu_bundle_finish(struct mu_bundle_writer *w, struct mu_err *err); /* free it afterwards */
void mu_bundle_writer_free(struct mu_bundle_writer *w); /* if unfinished, removes the files */
MU_AUTO_DEFINE(mu_bundle_writer_free, struct mu_bundle_writer)

/* MergeV2Checkpoints: merges n bundles into one at `prefix`, whose shards are their data files.
 * Removes their indexes and, with delete_folders, their folders if empty. */
int mu_bundle_merge(const char *const *from, unsigned n, const char *prefix, bool delete_folders,
		    struct mu_err *err);

struct mu_bundle_entry {
	const char *name;
	enum mu_dtype dtype;
	struct mu_shape shape;
	unsigned n_slices; /* 0: stored as one tensor */
	uint64_t size;     /* bytes in the data file, 0 when stored in slices */
	unsigned shard;
};
struct mu_bundle_reader;
int mu_bundle_open(struct mu_bundle_reader **out, const char *prefix, struct mu_err *err);
/* Later reads of large tensors use `parallel_for`. */
void mu_bundle_reader_set_parallel_for(struct mu_bundle_reader *r,
				       struct mu_parallel_for parallel_for);
void mu_bundle_reader_free(struct mu_bundle_reader *r);
MU_AUTO_DEFINE(mu_bundle_reader_free, struct mu_bundle_reader)
unsigned mu_bundle_count(const struct mu_bundle_reader *r); /* tensors, sorted by name */
const struct mu_bundle_entry *mu_bundle_entry(const struct mu_bundle_reader *r, unsigned i);
const struct mu_bundle_entry *mu_bundle_find(const struct mu_bundle_reader *r, const char *name);
/* Reads a tensor and concatenates its slices. */
int mu_bundle_read(struct mu_bundle_reader *r, const char *name, struct mu_tensor *out,
		   struct mu_err *err);
/* Reads a slice of a tensor, which may be stored in other slices. */
int mu_bundle_read_slice(struct mu_bundle_reader *r, const char *name, const struct mu_slice *slice,
			 struct mu_tensor *out, struct mu_err *err);
/* True if <prefix>.index exists. */
bool mu_bundle_exists(const char *prefix);
/* Removes index and data files; missing files are not an error. */
int mu_bundle_remove(const char *prefix, struct mu_err *err);

#endif
