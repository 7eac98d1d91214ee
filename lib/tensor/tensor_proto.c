/* SPDX-License-Identifier: Apache-2.0 */
/* A TensorProto is parsed in two passes.  The first reads type, shape and number of values, the
 * second fills the allocated tensor.  A list field may be packed, unpacked or split; all forms are
 * equivalent. */
#include "lib/tensor/tensor_proto.h"

#include "lib/tensor/encoded.h"

enum { F_DTYPE = 1, F_SHAPE = 2, F_CONTENT = 4, F_STRING = 8, F_HANDLE = 14, F_VARIANT = 15 };

/* The list field of a type, the wire type of a value, and the values per element. */
struct list_form {
	unsigned char field;
	enum mu_pb_type wire;
	unsigned char per_element;
};

static const struct list_form forms[MU_DT_COUNT] = {
    [MU_FLOAT] = {5, MU_PB_FIXED32, 1},  [MU_DOUBLE] = {6, MU_PB_FIXED64, 1},
    [MU_INT32] = {7, MU_PB_VARINT, 1},   [MU_UINT8] = {7, MU_PB_VARINT, 1},
    [MU_INT16] = {7, MU_PB_VARINT, 1},   [MU_INT8] = {7, MU_PB_VARINT, 1},
    [MU_STRING] = {8, MU_PB_BYTES, 1},   [MU_COMPLEX64] = {9, MU_PB_FIXED32, 2},
    [MU_INT64] = {10, MU_PB_VARINT, 1},  [MU_BOOL] = {11, MU_PB_VARINT, 1},
    [MU_QINT8] = {7, MU_PB_VARINT, 1},   [MU_QUINT8] = {7, MU_PB_VARINT, 1},
    [MU_QINT32] = {7, MU_PB_VARINT, 1},  [MU_BFLOAT16] = {13, MU_PB_VARINT, 1},
    [MU_QINT16] = {7, MU_PB_VARINT, 1},  [MU_QUINT16] = {7, MU_PB_VARINT, 1},
    [MU_UINT16] = {7, MU_PB_VARINT, 1},  [MU_COMPLEX128] = {12, MU_PB_FIXED64, 2},
    [MU_HALF] = {13, MU_PB_VARINT, 1},   [MU_RESOURCE] = {14, MU_PB_BYTES, 1},
    [MU_VARIANT] = {15, MU_PB_BYTES, 1}, [MU_UINT32] = {16, MU_PB_VARINT, 1},
    [MU_UINT64] = {17, MU_PB_VARINT, 1},
};

static int fail_truncated(struct mu_err *err, const char *object)
{
	return mu_fail(err, MU_INVALID_ARGUMENT, "%s is malformed or truncated", object);
}

/* Parses a Dim message; the size may be -1. */
static int parse_dim(struct mu_span proto, int64_t *size, struct mu_err *err)
{
	struct mu_pb m = mu_pb_of(proto);
	struct mu_pb_field f;
	int64_t n = 0;

	while (mu_pb_next(&m, &f))
		if (f.number == 1 && f.type == MU_PB_VARINT)
			n = (int64_t)f.value;
	if (m.bad)
		return fail_truncated(err, "a dimension");
	*size = n;
	return 0;
}

int mu_pshape_parse(struct mu_pshape *out, struct mu_span proto, struct mu_err *err)
{
	struct mu_pb m = mu_pb_of(proto);
	struct mu_pb_field f;
	struct mu_pshape s = {.rank = 0};
	bool unknown = false;
	int rc;

	while (mu_pb_next(&m, &f)) {
		if (f.number == 3 && f.type == MU_PB_VARINT)
			unknown = f.value != 0;
		if (f.number != 2 || f.type != MU_PB_BYTES)
			continue;
		if (s.rank == MU_MAX_RANK)
			return mu_fail(err, MU_UNIMPLEMENTED,
				       "tensors have at most %d dimensions here", MU_MAX_RANK);
		if ((rc = parse_dim(f.bytes, &s.dim[s.rank], err)))
			return rc;
		if (s.dim[s.rank] < -1)
			return mu_fail(err, MU_INVALID_ARGUMENT, "dimension %d is %lld", s.rank,
				       (long long)s.dim[s.rank]);
		s.rank++;
	}
	if (m.bad)
		return fail_truncated(err, "a shape");
	if (unknown)
		s = (struct mu_pshape){.rank = -1};
	*out = s;
	return 0;
}

int mu_shape_parse(struct mu_shape *out, struct mu_span proto, struct mu_err *err)
{
	struct mu_pshape p;
	int rc = mu_pshape_parse(&p, proto, err);

	if (rc)
		return rc;
	if (p.rank < 0)
		return mu_fail(err, MU_INVALID_ARGUMENT, "a tensor's shape has no known rank");
	return mu_shape_set(out, p.rank, p.dim, err);
}

/* ---- parser ---- */

static int64_t count_packed(struct mu_span run, enum mu_pb_type wire)
{
	int64_t n = 0;

	if (wire != MU_PB_VARINT)
		return (int64_t)(run.len / (wire == MU_PB_FIXED32 ? 4 : 8));
	for (size_t i = 0; i < run.len; i++)
		n += !(run.data[i] & 0x80);
	return n;
}

struct header {
	enum mu_dtype dtype;
	struct mu_shape shape;
	struct mu_span content;
	bool has_content;
};

static int read_header(struct header *h, struct mu_span proto, struct mu_err *err)
{
	struct mu_pb m = mu_pb_of(proto);
	struct mu_pb_field f;
	uint64_t dtype = 0;
	int rc;

	*h = (struct header){.shape = mu_shape_scalar()};
	while (mu_pb_next(&m, &f)) {
		if (f.number == F_DTYPE && f.type == MU_PB_VARINT)
			dtype = f.value;
		if (f.number == F_SHAPE && f.type == MU_PB_BYTES &&
		    (rc = mu_shape_parse(&h->shape, f.bytes, err)))
			return rc;
		if (f.number == F_CONTENT && f.type == MU_PB_BYTES && f.bytes.len) {
			h->content = f.bytes;
			h->has_content = true;
		}
	}
	if (m.bad)
		return fail_truncated(err, "a tensor");
	if (dtype == 0 || dtype >= MU_DT_COUNT)
		return mu_fail(err, MU_INVALID_ARGUMENT, "%llu is not the number of a tensor type",
			       (unsigned long long)dtype);
	h->dtype = (enum mu_dtype)dtype;
	return 0;
}

static int64_t count_values(struct mu_span proto, const struct list_form *form)
{
	struct mu_pb m = mu_pb_of(proto);
	struct mu_pb_field f;
	int64_t n = 0;

	while (mu_pb_next(&m, &f)) {
		if (f.number != form->field)
			continue;
		if (f.type == form->wire)
			n++;
		else if (f.type == MU_PB_BYTES)
			n += count_packed(f.bytes, form->wire);
	}
	return n;
}

static void store_value(char *to, size_t width, uint64_t raw)
{
	memcpy(to, &raw, width); /* little-endian, like tensor_content */
}

/* Fills the first n elements of t and ignores the remaining values. */
static int fill_plain(struct mu_tensor *t, struct mu_span proto, const struct list_form *form,
		      int64_t n, struct mu_err *err)
{
	size_t width = mu_dtype_size(t->dtype) / form->per_element;
	struct mu_pb m = mu_pb_of(proto);
	struct mu_pb_field f;
	char *to = t->data, *end = to + (size_t)n * mu_dtype_size(t->dtype);
	uint64_t raw;

	while (to < end && mu_pb_next(&m, &f)) {
		if (f.number != form->field)
			continue;
		if (f.type == form->wire) {
			store_value(to, width, t->dtype == MU_BOOL ? f.value != 0 : f.value);
			to += width;
			continue;
		}
		if (f.type != MU_PB_BYTES)
			continue;
		struct mu_pb run = mu_pb_of(f.bytes);
		if (form->wire == MU_PB_FIXED32 || form->wire == MU_PB_FIXED64) {
			size_t n_bytes = f.bytes.len / width * width;
			if (n_bytes != f.bytes.len)
				return fail_truncated(err, "a tensor's list of values");
			if (n_bytes > (size_t)(end - to))
				n_bytes = (size_t)(end - to);
			memcpy(to, f.bytes.data, n_bytes);
			to += n_bytes;
			continue;
		}
		while (to < end && mu_pb_packed_next(&run, form->wire, &raw)) {
			store_value(to, width, t->dtype == MU_BOOL ? raw != 0 : raw);
			to += width;
		}
		if (run.bad)
			return fail_truncated(err, "a tensor's list of values");
	}
	return 0;
}

static int fill_strings(struct mu_tensor *t, struct mu_span proto, int64_t n)
{
	struct mu_pb m = mu_pb_of(proto);
	struct mu_pb_field f;
	struct mu_string *to = t->data, *end = to + n;

	while (to < end && mu_pb_next(&m, &f))
		if (f.number == F_STRING && f.type == MU_PB_BYTES)
			mu_string_set(to++, f.bytes.data, f.bytes.len);
	return 0;
}

/* Strings in tensor_content, as in RunStep replies of stock servers: all lengths as varints, then
 * all bytes. */
static int fill_packed_strings(struct mu_tensor *t, struct mu_span content, struct mu_err *err)
{
	struct mu_pb lengths = mu_pb_of(content), m = lengths;
	struct mu_string *to = t->data;
	uint64_t len;

	for (int64_t i = 0; i < t->shape.count; i++)
		if (!mu_pb_varint(&m, &len))
			return fail_truncated(err, "a tensor's list of strings");
	for (int64_t i = 0; i < t->shape.count; i++) {
		if (!mu_pb_varint(&lengths, &len) || len > (size_t)(m.end - m.at))
			return fail_truncated(err, "a tensor's list of strings");
		mu_string_set(&to[i], m.at, len);
		m.at += len;
	}
	return m.at == m.end ? 0 : fail_truncated(err, "a tensor's list of strings");
}

static int parse_handle(struct mu_handle *h, struct mu_span proto, struct mu_err *err)
{
	struct mu_pb m = mu_pb_of(proto);
	struct mu_pb_field f;
	struct mu_span s[6] = {{0}};
	uint64_t hash = 0;

	while (mu_pb_next(&m, &f)) {
		if (f.number <= 5 && f.type == MU_PB_BYTES)
			s[f.number] = f.bytes;
		if (f.number == 4 && f.type == MU_PB_VARINT)
			hash = f.value;
	}
	if (m.bad)
		return fail_truncated(err, "a resource handle");
	*h = (struct mu_handle){.device = mu_xstrndup(s[1].data, s[1].len),
				.container = mu_xstrndup(s[2].data, s[2].len),
				.name = mu_xstrndup(s[3].data, s[3].len),
				.type_name = mu_xstrndup(s[5].data, s[5].len),
				.hash_code = hash};
	return 0;
}

static int fill_handles(struct mu_tensor *t, struct mu_span proto, int64_t n, struct mu_err *err)
{
	struct mu_pb m = mu_pb_of(proto);
	struct mu_pb_field f;
	struct mu_handle *to = t->data, *end = to + n;
	int rc;

	while (to < end && mu_pb_next(&m, &f))
		if (f.number == F_HANDLE && f.type == MU_PB_BYTES &&
		    (rc = parse_handle(to++, f.bytes, err)))
			return rc;
	return 0;
}

static int fill_objects(struct mu_tensor *t, struct mu_span proto, int64_t n, struct mu_err *err)
{
	struct mu_pb m = mu_pb_of(proto);
	struct mu_pb_field f;
	struct mu_object **to = t->data, **end = to + n;
	int rc;

	while (to < end && mu_pb_next(&m, &f))
		if (f.number == F_VARIANT && f.type == MU_PB_BYTES &&
		    (rc = mu_encoded_parse(to++, f.bytes, err)))
			return rc;
	return 0;
}

/* Repeats the last value to fill the shape; without values the elements are zero. */
static int repeat_last(struct mu_tensor *t, int64_t n_values, struct mu_err *err)
{
	int64_t n = t->shape.count;
	size_t element_bytes = mu_dtype_size(t->dtype);

	if (n_values == n)
		return 0;
	if (element_bytes) {
		char *at = MU_DATA(char, t) + (size_t)n_values * element_bytes;
		if (!n_values) {
			memset(at, 0, (size_t)n * element_bytes);
			return 0;
		}
		for (int64_t i = n_values; i < n; i++, at += element_bytes)
			memcpy(at, at - element_bytes, element_bytes);
		return 0;
	}
	if (t->dtype == MU_STRING && n_values) {
		struct mu_string *s = MU_DATA(struct mu_string, t), last = s[n_values - 1];
		size_t total;
		if (__builtin_mul_overflow(last.len, (size_t)(n - n_values), &total) ||
		    total > mu_tensor_limit)
			return mu_fail(
			    err, MU_RESOURCE_EXHAUSTED,
			    "a string repeated %lld times exceeds the limit of %zu bytes",
			    (long long)(n - n_values), (size_t)mu_tensor_limit);
		for (int64_t i = n_values; i < n; i++)
			mu_string_set(&s[i], last.data, last.len);
	} else if (t->dtype == MU_RESOURCE) {
		return mu_fail(err, MU_INVALID_ARGUMENT, "%lld resource handles for shape %s",
			       (long long)n_values, mu_shape_str(&t->shape));
	}
	return 0;
}

/* As TensorFlow, ignores surplus values and an incomplete complex number. */
static int fill_from_lists(struct mu_tensor *t, struct mu_span proto, struct mu_err *err)
{
	const struct list_form *form = &forms[t->dtype];
	int64_t n_values = count_values(proto, form) / form->per_element;
	int rc;

	if (n_values > t->shape.count)
		n_values = t->shape.count;

	if (t->dtype == MU_VARIANT && n_values < t->shape.count)
		return mu_fail(err, MU_UNIMPLEMENTED,
			       "variant tensors (lists, datasets) cannot leave their task");
	rc = t->dtype == MU_STRING     ? fill_strings(t, proto, n_values)
	     : t->dtype == MU_RESOURCE ? fill_handles(t, proto, n_values, err)
	     : t->dtype == MU_VARIANT  ? fill_objects(t, proto, n_values, err)
				       : fill_plain(t, proto, form, n_values, err);
	return rc ? rc : repeat_last(t, n_values, err);
}

int mu_tensor_parse(struct mu_tensor *out, struct mu_span proto, struct mu_err *err)
{
	MU_AUTO_TENSOR t = {0};
	struct header h;
	int rc = read_header(&h, proto, err);

	if (rc)
		return rc;
	size_t element_bytes = mu_dtype_size(h.dtype);
	if (h.has_content && h.dtype == MU_STRING) {
		if ((size_t)h.shape.count > h.content.len)
			return fail_truncated(err, "a tensor's list of strings");
		if ((rc = mu_tensor_new(&t, h.dtype, &h.shape, err)) ||
		    (rc = fill_packed_strings(&t, h.content, err)))
			return rc;
		*out = t;
		t = (struct mu_tensor){0};
		return 0;
	}
	if (h.has_content && h.shape.count &&
	    (!element_bytes || (size_t)h.shape.count > SIZE_MAX / element_bytes ||
	     h.content.len != (size_t)h.shape.count * element_bytes))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "%zu bytes of content for a tensor of shape %s and type %s",
			       h.content.len, mu_shape_str(&h.shape), mu_dtype_name(h.dtype));
	if ((rc = mu_tensor_new(&t, h.dtype, &h.shape, err)))
		return rc;
	if (h.has_content)
		memcpy(t.data, h.content.data, (size_t)h.shape.count * element_bytes);
	else if ((rc = fill_from_lists(&t, proto, err)))
		return rc;
	if (h.has_content &&
	    h.dtype == MU_BOOL) /* any non-zero byte is true; normalize to 0 and 1 */
		for (int64_t i = 0; i < h.shape.count; i++)
			MU_DATA(char, &t)[i] = MU_DATA(char, &t)[i] != 0;
	*out = t;
	t = (struct mu_tensor){0};
	return 0;
}

/* ---- writer ---- */

static void write_dims(struct mu_buf *b, int rank, const int64_t *dims)
{
	for (int i = 0; i < rank; i++) {
		size_t at = mu_pb_begin(b, 2);
		if (dims[i])
			mu_pb_put_int(b, 1, dims[i]);
		mu_pb_end(b, at);
	}
}

void mu_shape_write(struct mu_buf *b, const struct mu_shape *s)
{
	write_dims(b, s->rank, s->dim);
}

void mu_pshape_write(struct mu_buf *b, const struct mu_pshape *s)
{
	if (s->rank < 0)
		mu_pb_put_int(b, 3, 1);
	else
		write_dims(b, s->rank, s->dim);
}

static void put_nonempty(struct mu_buf *b, uint32_t number, const char *s)
{
	if (s && *s)
		mu_pb_put_str(b, number, s);
}

static void write_handle(struct mu_buf *b, const struct mu_handle *h)
{
	put_nonempty(b, 1, h->device);
	put_nonempty(b, 2, h->container);
	put_nonempty(b, 3, h->name);
	if (h->hash_code)
		mu_pb_put_int(b, 4, (int64_t)h->hash_code);
	put_nonempty(b, 5, h->type_name);
}

/* Writes the serializable objects. */
static void write_objects(struct mu_buf *b, const struct mu_tensor *t)
{
	for (int64_t i = 0; i < t->shape.count; i++) {
		const struct mu_encoded *e = mu_encoded_of(MU_DATA(struct mu_object *, t)[i]);
		if (!e)
			continue;
		size_t at = mu_pb_begin(b, F_VARIANT);
		mu_encoded_write(b, e);
		mu_pb_end(b, at);
	}
}

size_t mu_tensor_write_head(struct mu_buf *b, const struct mu_tensor *t)
{
	mu_pb_put_int(b, F_DTYPE, t->dtype);
	size_t at = mu_pb_begin(b, F_SHAPE);
	mu_shape_write(b, &t->shape);
	mu_pb_end(b, at);
	if (t->dtype == MU_STRING) {
		const struct mu_string *s = t->data;
		for (int64_t i = 0; i < t->shape.count; i++)
			mu_pb_put_bytes(b, F_STRING, (struct mu_span){s[i].data, s[i].len});
		return 0;
	}
	if (t->dtype == MU_RESOURCE) {
		for (int64_t i = 0; i < t->shape.count; i++) {
			at = mu_pb_begin(b, F_HANDLE);
			write_handle(b, &MU_DATA(struct mu_handle, t)[i]);
			mu_pb_end(b, at);
		}
		return 0;
	}
	if (t->dtype == MU_VARIANT) {
		write_objects(b, t);
		return 0;
	}
	size_t payload = (size_t)t->shape.count * mu_dtype_size(t->dtype);
	if (payload) {
		mu_pb_put_tag(b, F_CONTENT, MU_PB_BYTES);
		mu_pb_put_varint(b, payload);
	}
	return payload;
}

void mu_tensor_write(struct mu_buf *b, const struct mu_tensor *t)
{
	size_t payload = mu_tensor_write_head(b, t);

	if (payload)
		mu_buf_put(b, t->data, payload);
}
