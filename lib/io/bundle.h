/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints in TensorFlow's tensor-bundle format (V2): <prefix>.index and
 * <prefix>.data-00000-of-00001 (or more shards).
 *
 * Writing is crash-safe: everything goes aside, is synced and renamed, the index last; until
 * mu_bundle_finish has returned 0 nothing can be seen under the prefix, and an older checkpoint of
 * that name stays whole until then except for the instant between the two renames, when its index
 * fails its checksums rather than reading wrong values.  Reading checks every byte that it uses:
 * a flipped bit is DATA_LOSS with file and offset.
 *
 * Partitioned variables: a part is described as SaveV2's shape_and_slices does it, "10 4 0,5:-"
 * (full shape, then start,length or - for each dimension).  A part that is the whole is stored as
 * an ordinary tensor.
 *
 * A writer or reader is for one thread at a time.
 */
#ifndef MU_IO_BUNDLE_H
#define MU_IO_BUNDLE_H

#include "lib/io/read_sum.h"
#include "lib/tensor/tensor.h"

struct mu_slice {
	struct mu_shape full;        /* of the whole variable */
	int64_t start[MU_MAX_RANK];  /* 0 for a whole dimension */
	int64_t length[MU_MAX_RANK]; /* as asked; -1: the whole dimension ("-") */
	struct mu_shape part;        /* shape of the part itself */
	bool whole;                  /* the part is everything */
};
/* The empty string is no slice: *is_slice = false, *out untouched. */
int mu_slice_parse(struct mu_slice *out, bool *is_slice, struct mu_span spec, struct mu_err *err);

struct mu_bundle_writer;
/* Makes missing folders of the prefix. */
int mu_bundle_create(struct mu_bundle_writer **out, const char *prefix, struct mu_err *err);
int mu_bundle_add(struct mu_bundle_writer *w, const char *name, const struct mu_tensor *t,
		  struct mu_err *err);
int mu_bundle_add_slice(struct mu_bundle_writer *w, const char *name, const struct mu_slice *slice,
			const struct mu_tensor *t, struct mu_err *err);
int mu_bundle_finish(struct mu_bundle_writer *w, struct mu_err *err); /* then still free it */
void mu_bundle_writer_free(struct mu_bundle_writer *w); /* unfinished: removes what it wrote */
MU_AUTO_DEFINE(mu_bundle_writer_free, struct mu_bundle_writer)

/* MergeV2Checkpoints: n bundles become one at `prefix`, with one data file for each of theirs;
 * their indexes are removed, and with delete_folders their folders when empty. */
int mu_bundle_merge(const char *const *from, unsigned n, const char *prefix, bool delete_folders,
		    struct mu_err *err);

struct mu_bundle_entry {
	const char *name;
	enum mu_dtype dtype;
	struct mu_shape shape;
	unsigned n_slices; /* parts; 0: stored whole */
	uint64_t size;     /* bytes in the data file, 0 when stored in parts */
	unsigned shard;
};
struct mu_bundle_reader;
int mu_bundle_open(struct mu_bundle_reader **out, const char *prefix, struct mu_err *err);
/* Large tensors are read by these threads from now on. */
void mu_bundle_reader_spread(struct mu_bundle_reader *r, struct mu_spread spread);
void mu_bundle_reader_free(struct mu_bundle_reader *r);
MU_AUTO_DEFINE(mu_bundle_reader_free, struct mu_bundle_reader)
unsigned mu_bundle_count(const struct mu_bundle_reader *r); /* tensors, by rising name */
const struct mu_bundle_entry *mu_bundle_entry(const struct mu_bundle_reader *r, unsigned i);
const struct mu_bundle_entry *mu_bundle_find(const struct mu_bundle_reader *r, const char *name);
/* A new tensor; parts are put together.  NOT_FOUND names tensor and prefix. */
int mu_bundle_read(struct mu_bundle_reader *r, const char *name, struct mu_tensor *out,
		   struct mu_err *err);
/* The part `slice` of a tensor, however it was stored. */
int mu_bundle_read_slice(struct mu_bundle_reader *r, const char *name, const struct mu_slice *slice,
			 struct mu_tensor *out, struct mu_err *err);
/* Whether <prefix>.index is there. */
bool mu_bundle_exists(const char *prefix);
/* Removes index and data files; what is missing is no error. */
int mu_bundle_remove(const char *prefix, struct mu_err *err);

#endif
