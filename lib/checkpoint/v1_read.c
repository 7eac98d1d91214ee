/* SPDX-License-Identifier: Apache-2.0 */
/* Reads checkpoints in TensorFlow's V1 format.  The entry with the empty key lists the tensors and
 * their slices.  The values of a slice are the body of a TensorProto without type and shape.
 * read_slice_values prepends type and shape and parses the result.  A sharded checkpoint has
 * several files, each with other slices. */
#include <string.h>

#include "lib/base/pb.h"
#include "lib/checkpoint/bundle_slice.h"
#include "lib/checkpoint/v1_format.h"
#include "lib/io/match_files.h"
#include "lib/tensor/tensor_proto.h"

enum { MAX_FILES = 10000, MAX_SLICES = 10000 };
static const size_t max_file_bytes = (size_t)64 << 30; /* limit of a file's size in bytes */

/* Field numbers of TensorProto. */
enum { PROTO_TYPE = 1, PROTO_SHAPE = 2 };

struct slice_values {
	struct mu_buf key;
	struct mu_span value;
};

struct tensor_meta { /* the metadata of a tensor in one file */
	struct mu_span name;
	struct mu_shape shape;
	enum mu_dtype dtype;
	struct bundle_slice *slices;
	unsigned n;
};

struct file {
	char *path;
	struct mu_buf bytes; /* empty: the bytes are borrowed */
	size_t size;
	struct slice_values *values; /* sorted by key, as in the table */
	size_t n_values, cap;
	struct tensor_meta *tensors;
	size_t n_tensors;
};

struct mu_v1_reader {
	char *pattern;
	struct file *files;
	size_t n;
};

static void file_fini(struct file *f)
{
	for (size_t i = 0; i < f->n_values; i++)
		mu_buf_fini(&f->values[i].key);
	for (size_t i = 0; i < f->n_tensors; i++)
		free(f->tensors[i].slices);
	free(f->values);
	free(f->tensors);
	free(f->path);
	mu_buf_fini(&f->bytes);
}

void mu_v1_reader_free(struct mu_v1_reader *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->n; i++)
		file_fini(&r->files[i]);
	free(r->files);
	free(r->pattern);
	free(r);
}

/* ---- metadata of a file ---- */

static int malformed(const struct file *f, struct mu_err *err)
{
	return mu_fail(err, MU_DATA_LOSS, "%s: the metadata is malformed", f->path);
}

static bool parse_tensor_meta(struct tensor_meta *s, struct mu_span body)
{
	struct mu_pb m = mu_pb_of(body);
	struct mu_pb_field f;

	while (mu_pb_next(&m, &f)) {
		bool is_bytes = f.type == MU_PB_BYTES;
		if (f.number == TENSOR_NAME && is_bytes)
			s->name = f.bytes;
		else if (f.number == TENSOR_SHAPE && is_bytes) {
			if (mu_shape_parse(&s->shape, f.bytes, NULL))
				return false;
		} else if (f.number == TENSOR_TYPE && !is_bytes) {
			s->dtype = f.value < MU_DT_COUNT ? (enum mu_dtype)f.value : MU_DT_INVALID;
		} else if (f.number == TENSOR_SLICE && is_bytes) {
			if (s->n == MAX_SLICES)
				return false;
			s->slices = mu_xrealloc(s->slices, (s->n + 1) * sizeof *s->slices);
			if (!bundle_slice_parse(f.bytes, &s->slices[s->n]))
				return false;
			s->n++;
		}
	}
	return !m.bad && s->name.len && s->dtype != MU_DT_INVALID;
}

static int parse_meta(struct file *file, struct mu_span body, struct mu_err *err)
{
	struct mu_pb m = mu_pb_of(body);
	struct mu_pb_field f;

	while (mu_pb_next(&m, &f)) {
		if (f.number != META_TENSOR || f.type != MU_PB_BYTES)
			continue;
		file->tensors =
		    mu_xrealloc(file->tensors, (file->n_tensors + 1) * sizeof *file->tensors);
		struct tensor_meta *s = &file->tensors[file->n_tensors++];
		*s = (struct tensor_meta){.shape = mu_shape_scalar()};
		if (!parse_tensor_meta(s, f.bytes))
			return malformed(file, err);
	}
	return m.bad ? malformed(file, err) : 0;
}

/* Finds a field of SavedTensorSlices. */
static bool find_field(struct mu_span value, uint32_t number, struct mu_span *out)
{
	struct mu_pb m = mu_pb_of(value);
	struct mu_pb_field f;
	bool found = false;

	while (mu_pb_next(&m, &f))
		if (f.number == number && f.type == MU_PB_BYTES) {
			*out = f.bytes;
			found = true;
		}
	return found && !m.bad;
}

static int v1_add_pair(void *user, struct mu_span key, struct mu_span value, struct mu_err *err)
{
	struct file *f = user;
	struct mu_span body;

	if (!key.len)
		return find_field(value, SLICES_META, &body) ? parse_meta(f, body, err)
							     : malformed(f, err);
	if (f->n_values == f->cap) {
		f->cap = f->cap ? 2 * f->cap : 64;
		f->values = mu_xrealloc(f->values, f->cap * sizeof *f->values);
	}
	struct slice_values *p = &f->values[f->n_values++];
	*p = (struct slice_values){.value = value};
	mu_buf_put(&p->key, key.data, key.len);
	return 0;
}

static int add_file(struct mu_v1_reader *r, const char *path, const struct mu_span *bytes,
		    struct mu_err *err)
{
	struct file *f = &r->files[r->n++];

	*f = (struct file){.path = mu_xstrdup(path)};
	int rc = bytes ? 0 : mu_buf_read_file(&f->bytes, path, max_file_bytes, err);
	if (rc)
		return rc;
	struct mu_span content = bytes ? *bytes : mu_buf_span(&f->bytes);
	f->size = content.len;
	return table_parse(content, path, v1_add_pair, f, err);
}

int mu_v1_format_parse(struct mu_v1_reader **out, struct mu_span file, const char *path,
		       struct mu_err *err)
{
	MU_AUTO(mu_v1_reader_free) struct mu_v1_reader *r = MU_NEW(struct mu_v1_reader);

	r->pattern = mu_xstrdup(path);
	r->files = MU_NEW_ARRAY(struct file, 1);
	int rc = add_file(r, path, &file, err);
	if (!rc)
		*out = mu_steal(&r);
	return rc;
}

int mu_v1_format_open(struct mu_v1_reader **out, const char *pattern, struct mu_err *err)
{
	MU_AUTO(mu_v1_reader_free) struct mu_v1_reader *r = MU_NEW(struct mu_v1_reader);
	glob_t found = {0};
	int rc = mu_match_files(&found, pattern, err);

	if (!rc && !found.gl_pathc)
		rc = mu_fail(err, MU_NOT_FOUND,
			     "Unsuccessful TensorSliceReader constructor: Failed to find any "
			     "matching files for %.150s",
			     pattern);
	else if (!rc && found.gl_pathc > MAX_FILES)
		rc = mu_fail(err, MU_INVALID_ARGUMENT, "more than %d files match %.150s", MAX_FILES,
			     pattern);
	r->pattern = mu_xstrdup(pattern);
	r->files = MU_NEW_ARRAY(struct file, rc ? 1 : found.gl_pathc);
	for (size_t i = 0; !rc && i < found.gl_pathc; i++)
		rc = add_file(r, found.gl_pathv[i], NULL, err);
	globfree(&found);
	if (!rc)
		*out = mu_steal(&r);
	return rc;
}

/* ---- values ---- */

static int values_by_key(const void *key, const void *values)
{
	return mu_span_compare(*(const struct mu_span *)key,
			       mu_buf_span(&((const struct slice_values *)values)->key));
}

static int read_slice_values(const struct file *f, const struct tensor_meta *s,
			     const struct bundle_slice *e, const struct box *box,
			     struct mu_tensor *out, struct mu_err *err)
{
	MU_AUTO_FREE char *name = mu_xstrndup(s->name.data, s->name.len);
	MU_AUTO_BUF key = {0};
	MU_AUTO_BUF proto = {0};
	struct mu_span data, values;
	struct mu_shape shape;
	int rc = mu_shape_set(&shape, box->rank, box->length, err);

	if (rc)
		return rc;
	bundle_slice_key(&key, name, e);
	struct mu_span key_span = mu_buf_span(&key);
	const struct slice_values *p =
	    f->n_values ? bsearch(&key_span, f->values, f->n_values, sizeof *p, values_by_key)
			: NULL;
	if (!p || !find_field(p->value, SLICES_DATA, &data) ||
	    !find_field(data, DATA_VALUES, &values))
		return mu_fail(err, MU_DATA_LOSS, "%s: a slice of tensor '%.150s' is missing",
			       f->path, name);
	mu_pb_put_int(&proto, PROTO_TYPE, s->dtype);
	size_t at = mu_pb_begin(&proto, PROTO_SHAPE);
	mu_shape_write(&proto, &shape);
	mu_pb_end(&proto, at);
	mu_buf_put(&proto, values.data, values.len);
	if ((rc = mu_tensor_parse(out, mu_buf_span(&proto), err)))
		return rc;
	if (out->dtype == s->dtype && mu_shape_eq(&out->shape, &shape))
		return 0;
	mu_tensor_unref(out);
	return mu_fail(err, MU_DATA_LOSS, "%s: a slice of tensor '%.150s' has another shape",
		       f->path, name);
}

static const struct tensor_meta *v1_find_tensor(const struct file *f, const char *name)
{
	for (size_t i = 0; i < f->n_tensors; i++)
		if (mu_span_is(f->tensors[i].name, name))
			return &f->tensors[i];
	return NULL;
}

static int64_t total_bytes(const struct mu_v1_reader *r)
{
	int64_t n = 0;

	for (size_t i = 0; i < r->n; i++)
		n += (int64_t)r->files[i].size;
	return n;
}

struct tensor_read {
	const struct tensor_meta *first; /* metadata that all files must agree with */
	struct box want;
	struct mu_tensor out;
	struct box *read_boxes;
	unsigned n_read_boxes;
	int64_t copied;
};

static int v1_read_slice(struct tensor_read *r, const struct file *f, const struct tensor_meta *s,
			 const struct bundle_slice *e, struct mu_err *err)
{
	MU_AUTO_TENSOR values = {0};
	struct box stored, common;
	int rc = box_of_bundle_slice(&stored, e, &s->shape, err);

	if (rc)
		return rc;
	for (unsigned i = 0; i < r->n_read_boxes; i++)
		if (box_intersect(&common, &r->read_boxes[i], &stored))
			return mu_fail(err, MU_DATA_LOSS, "%s: slices of a tensor overlap",
				       f->path);
	if (r->n_read_boxes == MAX_SLICES)
		return mu_fail(err, MU_UNIMPLEMENTED, "more than %d slices", MAX_SLICES);
	r->read_boxes = mu_xrealloc(r->read_boxes, (r->n_read_boxes + 1) * sizeof *r->read_boxes);
	r->read_boxes[r->n_read_boxes++] = stored;
	if (!box_intersect(&common, &r->want, &stored))
		return 0;
	if ((rc = read_slice_values(f, s, e, &stored, &values, err)))
		return rc;
	box_copy(&r->out, &r->want, &values, &stored, &common);
	r->copied += box_count(&common);
	return 0;
}

static int v1_read_all_slices(const struct mu_v1_reader *reader, const char *name,
			      struct tensor_read *r, struct mu_err *err)
{
	int rc = 0;

	for (size_t i = 0; i < reader->n && !rc; i++) {
		const struct tensor_meta *s = v1_find_tensor(&reader->files[i], name);
		if (s && (s->dtype != r->first->dtype || !mu_shape_eq(&s->shape, &r->first->shape)))
			return mu_fail(err, MU_DATA_LOSS,
				       "%s: tensor '%.150s' has another type or shape than in "
				       "another file",
				       reader->files[i].path, name);
		for (unsigned k = 0; s && k < s->n && !rc; k++)
			rc = v1_read_slice(r, &reader->files[i], s, &s->slices[k], err);
	}
	if (!rc && r->copied != r->out.shape.count)
		rc = mu_fail(err, MU_DATA_LOSS,
			     "%.150s: the slices of tensor '%.150s' do not cover it",
			     reader->pattern, name);
	return rc;
}

int mu_v1_format_read(const struct mu_v1_reader *r, const char *name, const struct mu_slice *slice,
		      struct mu_tensor *out, struct mu_err *err)
{
	struct tensor_read read = {0};
	int rc;

	for (size_t i = 0; i < r->n && !read.first; i++)
		read.first = v1_find_tensor(&r->files[i], name);
	if (!read.first)
		return mu_fail(err, MU_NOT_FOUND,
			       "Tensor name \"%.150s\" not found in checkpoint files %.150s", name,
			       r->pattern);
	const struct mu_shape *full = &read.first->shape;
	if (slice && !mu_shape_eq(&slice->full, full))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Shape in shape_and_slice spec %s does not match the shape in the "
			       "save file: %s",
			       mu_shape_str(&slice->full), mu_shape_str(full));
	if (slice) {
		box_of_slice(&read.want, slice);
	} else {
		read.want.rank = full->rank;
		memcpy(read.want.length, full->dim, sizeof read.want.length);
	}
	if (full->count > total_bytes(r)) /* each element has at least one byte */
		return mu_fail(err, MU_DATA_LOSS,
			       "%.150s: tensor '%.150s' is smaller than its shape", r->pattern,
			       name);
	if (!mu_dtype_size(read.first->dtype) && read.first->dtype != MU_STRING)
		return mu_fail(err, MU_UNIMPLEMENTED, "tensors of type %s are not supported",
			       mu_dtype_name(read.first->dtype));
	rc = mu_tensor_new(&read.out, read.first->dtype, slice ? &slice->shape : full, err);
	if (!rc)
		rc = v1_read_all_slices(r, name, &read, err);
	free(read.read_boxes);
	if (rc)
		mu_tensor_unref(&read.out);
	else
		*out = read.out;
	return rc;
}
