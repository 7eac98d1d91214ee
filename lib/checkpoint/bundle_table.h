/* SPDX-License-Identifier: Apache-2.0 */
/* The index file of a bundle: a sorted table of keys and values in LevelDB's block format, whose
 * values are bundle entries.  Private to the bundle files. */
#ifndef MU_LIB_CHECKPOINT_BUNDLE_TABLE_H
#define MU_LIB_CHECKPOINT_BUNDLE_TABLE_H

#include "lib/base/buf.h"
#include "lib/checkpoint/bundle.h"

/* TensorSliceProto; length -1 is the whole dimension. */
struct bundle_slice {
	int64_t start[MU_MAX_RANK], length[MU_MAX_RANK];
	int rank;
};

/* BundleEntryProto */
struct bundle_record {
	char *key; /* tensor name, or the encoded key of a slice, which may contain NULs */
	size_t key_len;
	enum mu_dtype dtype;
	struct mu_shape shape;
	unsigned shard;
	uint64_t offset, size;
	uint32_t crc; /* masked */
	struct bundle_slice *slices;
	unsigned n_slices;
};
struct bundle_index {
	unsigned n_shards;
	struct bundle_record *records; /* ordered by key once sorted */
	size_t n, cap;
	unsigned n_slices; /* of all records, as parsed */
};

/* Extends the checksum by the length of an element of variable size, as a fixed-width number. */
uint32_t bundle_crc_length(uint32_t crc, uint64_t n);
void bundle_index_fini(struct bundle_index *x);
struct bundle_record *bundle_index_add(struct bundle_index *x, const void *key, size_t len);
struct bundle_record *bundle_index_find(const struct bundle_index *x, const void *key, size_t len);

int bundle_index_read(struct bundle_index *out, const char *prefix, struct mu_err *err);
int bundle_index_parse(struct bundle_index *out, struct mu_span file, const char *path,
		       struct mu_err *err);
/* Sorts the records and replaces <prefix>.index atomically. */
int bundle_index_write(struct bundle_index *x, const char *prefix, struct mu_err *err);

/* Calls pair() for each key-value pair of a table file; pair() returns 0 or an error. */
typedef int (*table_pair_fn)(void *user, struct mu_span key, struct mu_span value,
			     struct mu_err *err);
int table_parse(struct mu_span file, const char *path, table_pair_fn pair, void *user,
		struct mu_err *err);
/* Builds a table; keys must be added in ascending order. */
struct table_builder {
	struct mu_buf *out;
	struct mu_buf block, index_block, last_key;
	struct mu_buf restarts, index_restarts; /* uint32_t each */
	unsigned since_restart;
};
void table_begin(struct table_builder *t, struct mu_buf *out);
void table_add(struct table_builder *t, struct mu_span key, struct mu_span value);
void table_end(struct table_builder *t); /* also frees the buffers of t */

/* Writes the key of a slice. */
void bundle_slice_key(struct mu_buf *out, const char *name, const struct bundle_slice *e);
/* <prefix>.data-00000-of-00001; a new string. */
char *bundle_data_path(const char *prefix, unsigned shard, unsigned n_shards);

#endif
