/* SPDX-License-Identifier: Apache-2.0 */
/* The empty key has the list of tensors and their parts.  To read a part, type and shape are put
 * before its values, and the result is parsed as a TensorProto.  A sharded checkpoint has several
 * such files, each with other parts. */
#include <string.h>

#include "lib/base/pb.h"
#include "lib/checkpoint/bundle_slice.h"
#include "lib/checkpoint/v1_format.h"
#include "lib/io/match_files.h"
#include "lib/tensor/tensor_proto.h"

enum { MAX_FILES = 10000, MAX_PARTS = 10000 };
static const size_t max_file_bytes = (size_t)64 << 30; /* limit of a file's size in bytes */

/* Field numbers of TensorProto. */
enum { PROTO_TYPE = 1, PROTO_SHAPE = 2 };

struct part { /* the values of one part */
	struct mu_buf key;
	struct mu_span value;
};

struct tensor_meta { /* the metadata of a tensor in one file */
	struct mu_span name;
	struct mu_shape shape;
	enum mu_dtype dtype;
	struct bundle_extent *extents;
	unsigned n;
};

struct file {
	char *path;
	struct mu_buf bytes; /* empty: the bytes are borrowed */
	size_t size;
	struct part *parts; /* sorted by key, as in the table */
	size_t n_parts, cap;
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
	for (size_t i = 0; i < f->n_parts; i++)
		mu_buf_fini(&f->parts[i].key);
	for (size_t i = 0; i < f->n_tensors; i++)
		free(f->tensors[i].extents);
	free(f->parts);
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
		bool bytes = f.type == MU_PB_BYTES;
		if (f.number == TENSOR_NAME && bytes)
			s->name = f.bytes;
		else if (f.number == TENSOR_SHAPE && bytes) {
			if (mu_shape_parse(&s->shape, f.bytes, NULL))
				return false;
		} else if (f.number == TENSOR_TYPE && !bytes) {
			s->dtype = f.value < MU_DT_COUNT ? (enum mu_dtype)f.value : MU_DT_INVALID;
		} else if (f.number == TENSOR_SLICE && bytes) {
			if (s->n == MAX_PARTS)
				return false;
			s->extents = mu_xrealloc(s->extents, (s->n + 1) * sizeof *s->extents);
			if (!bundle_extent_parse(f.bytes, &s->extents[s->n]))
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
	if (f->n_parts == f->cap) {
		f->cap = f->cap ? 2 * f->cap : 64;
		f->parts = mu_xrealloc(f->parts, f->cap * sizeof *f->parts);
	}
	struct part *p = &f->parts[f->n_parts++];
	*p = (struct part){.value = value};
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
	struct mu_span all = bytes ? *bytes : mu_buf_span(&f->bytes);
	f->size = all.len;
	return table_parse(all, path, v1_add_pair, f, err);
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

static int parts_by_key(const void *key, const void *part)
{
	return mu_span_compare(*(const struct mu_span *)key,
			       mu_buf_span(&((const struct part *)part)->key));
}

static int part_values(const struct file *f, const struct tensor_meta *s,
		       const struct bundle_extent *e, const struct box *box, struct mu_tensor *out,
		       struct mu_err *err)
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
	const struct part *p =
	    f->n_parts ? bsearch(&key_span, f->parts, f->n_parts, sizeof *p, parts_by_key) : NULL;
	if (!p || !find_field(p->value, SLICES_DATA, &data) ||
	    !find_field(data, DATA_VALUES, &values))
		return mu_fail(err, MU_DATA_LOSS, "%s: a part of tensor '%.150s' is missing",
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
	return mu_fail(err, MU_DATA_LOSS, "%s: a part of tensor '%.150s' has another shape",
		       f->path, name);
}

static const struct tensor_meta *v1_find_tensor(const struct file *f, const char *name)
{
	for (size_t i = 0; i < f->n_tensors; i++)
		if (mu_span_is(f->tensors[i].name, name))
			return &f->tensors[i];
	return NULL;
}

static int64_t all_bytes(const struct mu_v1_reader *r)
{
	int64_t n = 0;

	for (size_t i = 0; i < r->n; i++)
		n += (int64_t)r->files[i].size;
	return n;
}

struct reading {
	const struct tensor_meta *first; /* metadata that all files must agree with */
	struct box want;
	struct mu_tensor out;
	struct box *read_boxes;
	unsigned n_read_boxes;
	int64_t copied;
};

static int v1_read_part(struct reading *g, const struct file *f, const struct tensor_meta *s,
			const struct bundle_extent *e, struct mu_err *err)
{
	MU_AUTO_TENSOR part = {0};
	struct box stored, common;
	int rc = box_of_extent(&stored, e, &s->shape, err);

	if (rc)
		return rc;
	for (unsigned i = 0; i < g->n_read_boxes; i++)
		if (box_intersect(&common, &g->read_boxes[i], &stored))
			return mu_fail(err, MU_DATA_LOSS, "%s: parts of a tensor overlap", f->path);
	if (g->n_read_boxes == MAX_PARTS)
		return mu_fail(err, MU_UNIMPLEMENTED, "more than %d parts", MAX_PARTS);
	g->read_boxes = mu_xrealloc(g->read_boxes, (g->n_read_boxes + 1) * sizeof *g->read_boxes);
	g->read_boxes[g->n_read_boxes++] = stored;
	if (!box_intersect(&common, &g->want, &stored))
		return 0;
	if ((rc = part_values(f, s, e, &stored, &part, err)))
		return rc;
	box_copy(&g->out, &g->want, &part, &stored, &common);
	g->copied += box_count(&common);
	return 0;
}

static int v1_read_all_parts(const struct mu_v1_reader *r, const char *name, struct reading *g,
			     struct mu_err *err)
{
	int rc = 0;

	for (size_t i = 0; i < r->n && !rc; i++) {
		const struct tensor_meta *s = v1_find_tensor(&r->files[i], name);
		if (s && (s->dtype != g->first->dtype || !mu_shape_eq(&s->shape, &g->first->shape)))
			return mu_fail(err, MU_DATA_LOSS,
				       "%s: tensor '%.150s' has another type or shape than in "
				       "another file",
				       r->files[i].path, name);
		for (unsigned k = 0; s && k < s->n && !rc; k++)
			rc = v1_read_part(g, &r->files[i], s, &s->extents[k], err);
	}
	if (!rc && g->copied != g->out.shape.count)
		rc = mu_fail(err, MU_DATA_LOSS,
			     "%.150s: the parts of tensor '%.150s' do not cover it", r->pattern,
			     name);
	return rc;
}

int mu_v1_format_read(const struct mu_v1_reader *r, const char *name, const struct mu_slice *slice,
		      struct mu_tensor *out, struct mu_err *err)
{
	struct reading g = {0};
	int rc;

	for (size_t i = 0; i < r->n && !g.first; i++)
		g.first = v1_find_tensor(&r->files[i], name);
	if (!g.first)
		return mu_fail(err, MU_NOT_FOUND,
			       "Tensor name \"%.150s\" not found in checkpoint files %.150s", name,
			       r->pattern);
	const struct mu_shape *full = &g.first->shape;
	if (slice && !mu_shape_eq(&slice->full, full))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Shape in shape_and_slice spec %s does not match the shape in the "
			       "save file: %s",
			       mu_shape_str(&slice->full), mu_shape_str(full));
	if (slice) {
		box_of_slice(&g.want, slice);
	} else {
		g.want.rank = full->rank;
		memcpy(g.want.length, full->dim, sizeof g.want.length);
	}
	if (full->count > all_bytes(r)) /* each element has at least one byte */
		return mu_fail(err, MU_DATA_LOSS,
			       "%.150s: tensor '%.150s' is smaller than its shape", r->pattern,
			       name);
	if (!mu_dtype_size(g.first->dtype) && g.first->dtype != MU_STRING)
		return mu_fail(err, MU_UNIMPLEMENTED, "tensors of type %s are not supported",
			       mu_dtype_name(g.first->dtype));
	rc = mu_tensor_new(&g.out, g.first->dtype, slice ? &slice->part : full, err);
	if (!rc)
		rc = v1_read_all_parts(r, name, &g, err);
	free(g.read_boxes);
	if (rc)
		mu_tensor_unref(&g.out);
	else
		*out = g.out;
	return rc;
}
