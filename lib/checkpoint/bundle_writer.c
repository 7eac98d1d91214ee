/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors are written to a temporary data file.  mu_bundle_finish syncs and renames it, then does
 * the same with the index, which makes the bundle visible. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/base/map.h"
#include "lib/base/pb.h"
#include "lib/base/random.h"
#include "lib/checkpoint/bundle_slice.h"
#include "lib/checkpoint/sink.h"
#include "lib/io/crc32c.h"
#include "lib/io/folders.h"
#include "lib/tensor/encoded.h"

struct mu_bundle_writer {
	char *prefix, *tmp_path;
	struct mu_sink *file;
	struct bundle_index index;
	struct mu_map by_key; /* key -> 1 + position in index */
};

int mu_bundle_create(struct mu_bundle_writer **out, const char *prefix, struct mu_err *err)
{
	if (!*prefix)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "'%s' is not a valid name for a checkpoint", prefix);
	int rc = mu_make_folder(prefix, err);
	if (rc)
		return rc;
	MU_AUTO_FREE char *tmp_path = mu_xasprintf("%s.data-00000-of-00001.tempstate%016llx",
						   prefix, (unsigned long long)mu_random_u64());
	struct mu_sink *file;
	if ((rc = mu_sink_open(&file, tmp_path, err)))
		return rc;
	struct mu_bundle_writer *w = MU_NEW(struct mu_bundle_writer);
	w->prefix = mu_xstrdup(prefix);
	w->tmp_path = mu_steal(&tmp_path);
	w->file = file;
	w->index.n_shards = 1;
	mu_map_init(&w->by_key);
	*out = w;
	return 0;
}

void mu_bundle_writer_free(struct mu_bundle_writer *w)
{
	if (!w)
		return;
	if (w->file) {
		mu_sink_free(w->file);
		unlink(w->tmp_path);
	}
	bundle_index_fini(&w->index);
	mu_map_fini(&w->by_key);
	free(w->prefix);
	free(w->tmp_path);
	free(w);
}

/* Writes lengths as varints, a masked checksum of the lengths (as fixed-width numbers), then the
 * bytes.  The entry's checksum is over the fixed-width numbers, the first checksum and the bytes.
 */
static int put_strings(struct mu_bundle_writer *w, const struct mu_tensor *t, uint32_t *crc,
		       struct mu_err *err)
{
	const struct mu_string *s = MU_DATA(struct mu_string, t);
	MU_AUTO_BUF lengths = {0};
	uint32_t sum = 0;

	for (int64_t i = 0; i < t->shape.count; i++) {
		uint64_t n = s[i].len;
		mu_pb_put_varint(&lengths, n);
		sum = bundle_crc_length(sum, n);
	}
	uint32_t masked = mu_crc32c_mask(sum);
	mu_buf_put(&lengths, &masked, 4);
	sum = mu_crc32c(sum, &masked, 4);
	uint32_t unused_sum = 0; /* not stored */
	int rc = mu_sink_put(w->file, lengths.data, lengths.len, &unused_sum, err);
	for (int64_t i = 0; i < t->shape.count && !rc; i++)
		rc = mu_sink_put(w->file, s[i].data, s[i].len, &sum, err);
	*crc = sum;
	return rc;
}

/* Writes for each object its length as a varint, its bytes, and a masked checksum of all
 * preceding bytes.  The entry's checksum is over the same bytes, with the lengths as fixed-width
 * numbers. */
static int put_objects(struct mu_bundle_writer *w, const struct mu_tensor *t, const char *name,
		       uint32_t *crc, struct mu_err *err)
{
	uint32_t sum = 0, unused_sum = 0; /* not stored */
	int rc = 0;

	for (int64_t i = 0; i < t->shape.count && !rc; i++) {
		const struct mu_object *o = MU_DATA(struct mu_object *, t)[i];
		const struct mu_encoded *e = mu_encoded_of(o);
		MU_AUTO_BUF length = {0};
		MU_AUTO_BUF b = {0};
		if (!e)
			return mu_fail(err, MU_UNIMPLEMENTED,
				       "'%s' contains a %s, which cannot be saved", name,
				       o ? o->type->name : "null object");
		mu_encoded_write(&b, e);
		uint64_t n = b.len;
		mu_pb_put_varint(&length, n);
		sum = bundle_crc_length(sum, n);
		if ((rc = mu_sink_put(w->file, length.data, length.len, &unused_sum, err)) ||
		    (rc = mu_sink_put(w->file, b.data, b.len, &sum, err)))
			break;
		uint32_t masked = mu_crc32c_mask(sum);
		rc = mu_sink_put(w->file, &masked, 4, &sum, err);
	}
	*crc = sum;
	return rc;
}

static int add_record(struct mu_bundle_writer *w, struct mu_span key, const char *name,
		      const struct mu_tensor *t, struct mu_err *err)
{
	uint64_t offset = mu_sink_length(w->file);
	uint32_t crc = 0;
	int rc;

	if (mu_map_get_n(&w->by_key, key.data, key.len))
		return mu_fail(err, MU_INVALID_ARGUMENT, "the checkpoint already has '%s'", name);
	if (t->dtype == MU_STRING) {
		rc = put_strings(w, t, &crc, err);
	} else if (t->dtype == MU_VARIANT) {
		rc = put_objects(w, t, name, &crc, err);
	} else if (mu_dtype_size(t->dtype)) {
		size_t n = (size_t)t->shape.count * mu_dtype_size(t->dtype);
		rc = mu_sink_put(w->file, t->data, n, &crc, err);
	} else {
		return mu_fail(err, MU_UNIMPLEMENTED, "'%s' has type %s, which cannot be saved",
			       name, mu_dtype_name(t->dtype));
	}
	if (rc)
		return rc;
	struct bundle_record *r = bundle_index_add(&w->index, key.data, key.len);
	r->dtype = t->dtype;
	r->shape = t->shape;
	r->offset = offset;
	r->size = mu_sink_length(w->file) - offset;
	r->crc = mu_crc32c_mask(crc);
	mu_map_put_n(&w->by_key, key.data, key.len, (void *)(uintptr_t)w->index.n);
	return 0;
}

static int check_name_not_empty(const char *name, struct mu_err *err)
{
	return *name ? 0 : mu_fail(err, MU_INVALID_ARGUMENT, "a saved tensor needs a name");
}

int mu_bundle_add(struct mu_bundle_writer *w, const char *name, const struct mu_tensor *t,
		  struct mu_err *err)
{
	int rc = check_name_not_empty(name, err);

	return rc ? rc : add_record(w, mu_span_of(name), name, t, err);
}

int mu_bundle_add_slice(struct mu_bundle_writer *w, const char *name, const struct mu_slice *slice,
			const struct mu_tensor *t, struct mu_err *err)
{
	MU_AUTO_BUF key = {0};
	int rc = check_name_not_empty(name, err);

	if (rc)
		return rc;
	if (!mu_shape_eq(&slice->shape, &t->shape))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "the tensor for a slice of '%s' has shape %s, the slice %s", name,
			       mu_shape_str(&t->shape), mu_shape_str(&slice->shape));
	if (slice->is_whole)
		return mu_bundle_add(w, name, t, err);
	uintptr_t at = (uintptr_t)mu_map_get(&w->by_key, name);
	struct bundle_record *r = at ? &w->index.records[at - 1] : NULL;
	if (r && (!r->n_slices || r->dtype != t->dtype || !mu_shape_eq(&r->shape, &slice->full)))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "the checkpoint already has '%s' with another shape or type", name);
	struct bundle_slice e = bundle_slice_of(slice);
	bundle_slice_key(&key, name, &e);
	if ((rc = add_record(w, mu_buf_span(&key), name, t, err)))
		return rc;
	if (at) {
		r = &w->index.records[at - 1]; /* the array may have moved */
	} else {
		r = bundle_index_add(&w->index, name, strlen(name));
		r->dtype = t->dtype;
		r->shape = slice->full;
		mu_map_put(&w->by_key, name, (void *)(uintptr_t)w->index.n);
	}
	r->slices = mu_xrealloc(r->slices, (r->n_slices + 1) * sizeof r->slices[0]);
	r->slices[r->n_slices++] = e;
	return 0;
}

int mu_bundle_finish(struct mu_bundle_writer *w, struct mu_err *err)
{
	MU_AUTO_FREE char *path = bundle_data_path(w->prefix, 0, 1);
	int rc = mu_sink_sync(w->file, err);

	mu_sink_free(mu_steal(&w->file));
	if (!rc && rename(w->tmp_path, path))
		rc = mu_fail_errno(err, errno, "cannot write %s", path);
	if (rc) {
		unlink(w->tmp_path);
		return rc;
	}
	return bundle_index_write(&w->index, w->prefix, err);
}
