/* SPDX-License-Identifier: Apache-2.0 */
/* mu_bundle_open reads the whole index; data is read on demand.  Only one data file is open at a
 * time, because a bundle may have more shards than a process may have open files. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/pb.h"
#include "lib/checkpoint/bundle_slice.h"
#include "lib/io/crc32c.h"
#include "lib/tensor/encoded.h"

struct mu_bundle_reader {
	char *prefix;
	struct bundle_index index;
	struct mu_bundle_entry *entries;
	unsigned n_entries;
	int fd; /* of shard fd_shard; -1: none */
	unsigned fd_shard;
	uint64_t fd_size;
	char *fd_path;
	struct mu_parallel_for parallel_for;
};

int mu_bundle_open(struct mu_bundle_reader **out, const char *prefix, struct mu_err *err)
{
	struct bundle_index index;
	int rc = bundle_index_read(&index, prefix, err);

	if (rc)
		return mu_wrap(err, "checkpoint %s", prefix);
	struct mu_bundle_reader *r = MU_NEW(struct mu_bundle_reader);
	r->prefix = mu_xstrdup(prefix);
	r->index = index;
	r->fd = -1;
	r->entries = MU_NEW_ARRAY(struct mu_bundle_entry, index.n + 1);
	for (size_t i = 0; i < index.n; i++) {
		const struct bundle_record *rec = &index.records[i];
		if (!rec->key_len || rec->key[0] == '\0') /* the encoded key of a slice */
			continue;
		r->entries[r->n_entries++] = (struct mu_bundle_entry){
		    rec->key, rec->dtype, rec->shape, rec->n_slices, rec->size, rec->shard};
	}
	*out = r;
	return 0;
}

void mu_bundle_reader_set_parallel_for(struct mu_bundle_reader *r,
				       struct mu_parallel_for parallel_for)
{
	r->parallel_for = parallel_for;
}

static void close_shard(struct mu_bundle_reader *r)
{
	if (r->fd >= 0)
		close(r->fd);
	free(r->fd_path);
	r->fd_path = NULL;
	r->fd = -1;
}

void mu_bundle_reader_free(struct mu_bundle_reader *r)
{
	if (!r)
		return;
	close_shard(r);
	bundle_index_fini(&r->index);
	free(r->entries);
	free(r->prefix);
	free(r);
}

unsigned mu_bundle_count(const struct mu_bundle_reader *r)
{
	return r->n_entries;
}

const struct mu_bundle_entry *mu_bundle_entry(const struct mu_bundle_reader *r, unsigned i)
{
	return &r->entries[i];
}

const struct mu_bundle_entry *mu_bundle_find(const struct mu_bundle_reader *r, const char *name)
{
	unsigned low = 0, high = r->n_entries;

	while (low < high) {
		unsigned mid = (low + high) / 2;
		int c = strcmp(r->entries[mid].name, name);
		if (c == 0)
			return &r->entries[mid];
		if (c < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

static int open_shard(struct mu_bundle_reader *r, unsigned shard, struct mu_err *err)
{
	struct stat st;

	if (r->fd >= 0 && r->fd_shard == shard)
		return 0;
	close_shard(r);
	r->fd_path = bundle_data_path(r->prefix, shard, r->index.n_shards);
	r->fd = open(r->fd_path, O_RDONLY | O_CLOEXEC);
	if (r->fd < 0)
		return mu_fail_errno(err, errno, "cannot read %s", r->fd_path);
	if (fstat(r->fd, &st)) {
		int rc = mu_fail_errno(err, errno, "cannot read %s", r->fd_path);
		close_shard(r);
		return rc;
	}
	r->fd_shard = shard;
	r->fd_size = (uint64_t)st.st_size;
	return 0;
}

static int fail_data_loss(const struct mu_bundle_reader *r, const struct bundle_record *rec,
			  struct mu_err *err, const char *problem)
{
	return mu_fail(err, MU_DATA_LOSS, "%s: the tensor at offset %" PRIu64 " %s", r->fd_path,
		       rec->offset, problem);
}

static int read_at(struct mu_bundle_reader *r, const struct bundle_record *rec, void *to,
		   uint32_t *crc, struct mu_err *err)
{
	int errnum = mu_read_sum(r->fd, rec->offset, to, rec->size, &r->parallel_for, crc);

	if (errnum < 0)
		return fail_data_loss(r, rec, err, "is truncated");
	return errnum ? mu_fail_errno(err, errnum, "cannot read %s", r->fd_path) : 0;
}

static bool parse_strings(struct mu_tensor *t, const char *data, uint64_t size, uint32_t *sum,
			  bool check_only)
{
	struct mu_pb m = mu_pb_of((struct mu_span){data, size});
	struct mu_string *s = MU_DATA(struct mu_string, t);
	uint32_t crc = 0, stored;
	uint64_t total = 0;

	for (int64_t i = 0; i < t->shape.count; i++) {
		uint64_t n;
		if (!mu_pb_varint(&m, &n) || n > size - total)
			return false;
		crc = bundle_crc_length(crc, n);
		total += n;
		if (!check_only)
			s[i].len = n;
	}
	if (!mu_pb_fixed32(&m, &stored) || stored != mu_crc32c_mask(crc) ||
	    (uint64_t)(m.end - m.at) != total)
		return false;
	crc = mu_crc32c(crc, &stored, 4);
	*sum = mu_crc32c(crc, m.at, total);
	for (int64_t i = 0; i < t->shape.count && !check_only; i++) {
		size_t n = s[i].len;
		s[i].len = 0;
		mu_string_set(&s[i], m.at, n);
		m.at += n;
	}
	return true;
}

/* Parses objects.  Verifies the checksum of each object before its allocation. */
static bool parse_objects(struct mu_tensor *t, const char *data, uint64_t size, uint32_t *sum)
{
	struct mu_pb m = mu_pb_of((struct mu_span){data, size});
	uint32_t crc = 0, stored;

	for (int64_t i = 0; i < t->shape.count; i++) {
		uint64_t n;
		if (!mu_pb_varint(&m, &n) || n > (uint64_t)(m.end - m.at))
			return false;
		struct mu_span proto = {m.at, n};
		crc = bundle_crc_length(crc, n);
		crc = mu_crc32c(crc, proto.data, n);
		m.at += n;
		if (!mu_pb_fixed32(&m, &stored) || stored != mu_crc32c_mask(crc) ||
		    mu_encoded_parse(&MU_DATA(struct mu_object *, t)[i], proto, NULL))
			return false;
		crc = mu_crc32c(crc, &stored, 4);
	}
	*sum = crc;
	return m.at == m.end;
}

/* Reads elements of variable size: strings and objects. */
static int read_variable_size(struct mu_bundle_reader *r, const struct bundle_record *rec,
			      struct mu_tensor *t, struct mu_err *err)
{
	uint32_t sum;
	MU_AUTO_FREE char *data = malloc(rec->size + 1);

	if (!data)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for %" PRIu64 " bytes of %s",
			       rec->size, r->fd_path);
	int rc = read_at(r, rec, data, &sum,
			 err); /* ignores the sum: the entry's checksum is over other bytes */
	if (rc)
		return rc;
	if (rec->dtype == MU_VARIANT)
		return parse_objects(t, data, rec->size, &sum) && mu_crc32c_mask(sum) == rec->crc
			   ? 0
			   : fail_data_loss(r, rec, err, "does not match its checksum");
	if (!parse_strings(t, data, rec->size, &sum, true) || mu_crc32c_mask(sum) != rec->crc)
		return fail_data_loss(r, rec, err, "does not match its checksum");
	parse_strings(t, data, rec->size, &sum, false);
	return 0;
}

/* Reads the tensor or slice of one record. */
static int read_record(struct mu_bundle_reader *r, const struct bundle_record *rec,
		       struct mu_tensor *out, struct mu_err *err)
{
	MU_AUTO_TENSOR t = {0};
	size_t element_bytes = mu_dtype_size(rec->dtype);
	bool is_variable_size = rec->dtype == MU_STRING || rec->dtype == MU_VARIANT;
	uint32_t crc = 0;
	int rc = open_shard(r, rec->shard, err);

	if (rc)
		return rc;
	if (rec->offset > r->fd_size || rec->size > r->fd_size - rec->offset)
		return fail_data_loss(r, rec, err, "lies outside the file");
	if (is_variable_size) { /* each element has at least one byte */
		if ((uint64_t)rec->shape.count > rec->size)
			return fail_data_loss(r, rec, err, "is smaller than its shape");
	} else if (!element_bytes) {
		return mu_fail(err, MU_UNIMPLEMENTED, "tensors of type %s are not supported",
			       mu_dtype_name(rec->dtype));
	} else if (rec->size % element_bytes ||
		   rec->size / element_bytes != (uint64_t)rec->shape.count) {
		return fail_data_loss(r, rec, err, "does not have the size of its shape");
	}
	if ((rc = mu_tensor_new(&t, rec->dtype, &rec->shape, err)))
		return rc;
	if (is_variable_size)
		rc = read_variable_size(r, rec, &t, err);
	else
		rc = read_at(r, rec, t.data, &crc, err);
	if (!rc && !is_variable_size && mu_crc32c_mask(crc) != rec->crc)
		rc = fail_data_loss(r, rec, err, "does not match its checksum");
	if (rc)
		return rc;
	*out = t;
	t = (struct mu_tensor){0};
	return 0;
}

static const struct bundle_record *find_record(const struct mu_bundle_reader *r, const char *name,
					       struct mu_err *err)
{
	const struct bundle_record *rec = bundle_index_find(&r->index, name, strlen(name));

	if (!rec || !*name)
		mu_fail(err, MU_NOT_FOUND, "Key %s not found in checkpoint", name);
	return *name ? rec : NULL;
}

/* Copies the intersection of the stored slice `e` and wanted_box into out. */
static int bundle_add_slice(struct mu_bundle_reader *r, const struct bundle_record *whole,
			    const struct bundle_slice *e, const struct box *wanted_box,
			    struct mu_tensor *out, int64_t *copied, struct mu_err *err)
{
	MU_AUTO_TENSOR slice = {0};
	MU_AUTO_BUF key = {0};
	struct box stored, common;
	int rc = box_of_bundle_slice(&stored, e, &whole->shape, err);

	if (rc)
		return rc;
	if (!box_intersect(&common, wanted_box, &stored))
		return 0;
	bundle_slice_key(&key, whole->key, e);
	const struct bundle_record *rec = bundle_index_find(&r->index, key.data, key.len);
	if (!rec || rec->dtype != whole->dtype || rec->n_slices ||
	    rec->shape.count != box_count(&stored))
		return mu_fail(err, MU_DATA_LOSS, "a slice is missing or has another shape");
	if ((rc = read_record(r, rec, &slice, err)))
		return rc;
	box_copy(out, wanted_box, &slice, &stored, &common);
	*copied += box_count(&common);
	return 0;
}

static bool slices_overlap(const struct bundle_record *rec)
{
	struct box a, b, common;

	for (unsigned i = 0; i < rec->n_slices; i++)
		for (unsigned j = 0; j < i; j++)
			if (box_of_bundle_slice(&a, &rec->slices[i], &rec->shape, NULL) == 0 &&
			    box_of_bundle_slice(&b, &rec->slices[j], &rec->shape, NULL) == 0 &&
			    box_intersect(&common, &a, &b))
				return true;
	return false;
}

/* Reads wanted_box of the variable into a new tensor of shape `shape`. */
static int read_box(struct mu_bundle_reader *r, const struct bundle_record *rec,
		    const struct box *wanted_box, const struct mu_shape *shape,
		    struct mu_tensor *out, struct mu_err *err)
{
	MU_AUTO_TENSOR t = {0};
	int64_t copied = 0;

	if (slices_overlap(rec))
		return mu_fail(err, MU_DATA_LOSS, "its slices overlap");
	int rc = mu_tensor_new(&t, rec->dtype, shape, err);
	for (unsigned i = 0; i < rec->n_slices && !rc; i++)
		rc = bundle_add_slice(r, rec, &rec->slices[i], wanted_box, &t, &copied, err);
	if (!rc && copied != shape->count)
		rc = mu_fail(err, MU_DATA_LOSS, "its slices do not cover it");
	if (rc)
		return rc;
	*out = t;
	t = (struct mu_tensor){0};
	return 0;
}

int mu_bundle_read(struct mu_bundle_reader *r, const char *name, struct mu_tensor *out,
		   struct mu_err *err)
{
	const struct bundle_record *rec = find_record(r, name, err);
	struct box full_box = {0};
	int rc;

	if (!rec)
		return -MU_NOT_FOUND;
	if (rec->n_slices) {
		full_box.rank = rec->shape.rank;
		memcpy(full_box.length, rec->shape.dim, sizeof full_box.length);
		rc = read_box(r, rec, &full_box, &rec->shape, out, err);
	} else {
		rc = read_record(r, rec, out, err);
	}
	return rc ? mu_wrap(err, "checkpoint %s: tensor '%s'", r->prefix, name) : 0;
}

static int read_slice(struct mu_bundle_reader *r, const struct bundle_record *rec,
		      const struct box *wanted_box, const struct mu_shape *shape,
		      struct mu_tensor *out, struct mu_err *err)
{
	MU_AUTO_TENSOR stored = {0};
	struct mu_tensor t;
	struct box full_box = {.rank = rec->shape.rank};
	int rc = read_record(r, rec, &stored, err);

	if (rc || (rc = mu_tensor_new(&t, rec->dtype, shape, err)))
		return rc;
	memcpy(full_box.length, rec->shape.dim, sizeof full_box.length);
	if (shape->count)
		box_copy(&t, wanted_box, &stored, &full_box, wanted_box);
	*out = t;
	return 0;
}

static const struct bundle_record *find_slice(const struct mu_bundle_reader *r,
					      const struct bundle_record *whole,
					      const struct mu_slice *slice)
{
	struct bundle_slice e = bundle_slice_of(slice);
	MU_AUTO_BUF key = {0};

	bundle_slice_key(&key, whole->key, &e);
	const struct bundle_record *rec = bundle_index_find(&r->index, key.data, key.len);
	bool matches = rec && !rec->n_slices && rec->dtype == whole->dtype &&
		       mu_shape_eq(&rec->shape, &slice->shape);
	return matches ? rec : NULL;
}

int mu_bundle_read_slice(struct mu_bundle_reader *r, const char *name, const struct mu_slice *slice,
			 struct mu_tensor *out, struct mu_err *err)
{
	const struct bundle_record *rec = find_record(r, name, err);
	struct box wanted_box;
	int rc;

	if (!rec)
		return -MU_NOT_FOUND;
	if (!mu_shape_eq(&slice->full, &rec->shape))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Shape in shape_and_slice spec %s does not match the shape stored "
			       "in checkpoint: %s (tensor '%s')",
			       mu_shape_str(&slice->full), mu_shape_str(&rec->shape), name);
	if (slice->is_whole)
		return mu_bundle_read(r, name, out, err);
	/* The common case: the partitions of the variable are those of the checkpoint. */
	const struct bundle_record *stored = rec->n_slices ? find_slice(r, rec, slice) : NULL;
	box_of_slice(&wanted_box, slice);
	rc = stored          ? read_record(r, stored, out, err)
	     : rec->n_slices ? read_box(r, rec, &wanted_box, &slice->shape, out, err)
			     : read_slice(r, rec, &wanted_box, &slice->shape, out, err);
	return rc ? mu_wrap(err, "checkpoint %s: tensor '%s'", r->prefix, name) : 0;
}
