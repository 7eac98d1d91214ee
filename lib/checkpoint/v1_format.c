/* SPDX-License-Identifier: Apache-2.0 */
/* The empty key has the metadata: names, shapes, types and slices.  The key of each slice has its
 * values, in the typed lists of a TensorProto without shape and type. */
#include "lib/checkpoint/v1_format.h"

#include <inttypes.h>

#include "lib/base/map.h"
#include "lib/base/pb.h"
#include "lib/checkpoint/bundle_slice.h"
#include "lib/io/folders.h"
#include "lib/tensor/tensor_proto.h"

struct entry {
	struct mu_buf key, value;
};

static struct bundle_slice slice_of(const struct mu_v1_format *x)
{
	struct bundle_slice e = {.rank = x->tensor->shape.rank};

	if (x->slice)
		return bundle_slice_of(x->slice);
	for (int d = 0; d < e.rank; d++)
		e.length[d] = -1;
	return e;
}

/* ---- values ---- */

static void put_raw(struct mu_buf *b, uint32_t number, const struct mu_tensor *t)
{
	size_t list = mu_pb_begin(b, number);

	mu_buf_put(b, t->data, (size_t)t->shape.count * mu_dtype_size(t->dtype));
	mu_pb_end(b, list);
}

#define PUT_INTS(T)                                                                                \
	for (int64_t i = 0; i < t->shape.count; i++)                                               \
		mu_pb_put_varint(b, (uint64_t)(int64_t)MU_DATA(T, t)[i]);                          \
	break

static int put_ints(struct mu_buf *b, uint32_t number, const struct mu_tensor *t)
{
	size_t list = mu_pb_begin(b, number);

	switch (t->dtype) {
	case MU_INT8:
	case MU_QINT8:
		PUT_INTS(int8_t);
	case MU_UINT8:
	case MU_QUINT8:
	case MU_BOOL:
		PUT_INTS(uint8_t);
	case MU_INT16:
		PUT_INTS(int16_t);
	case MU_UINT16:
	case MU_HALF:
	case MU_BFLOAT16:
		PUT_INTS(uint16_t);
	case MU_INT32:
	case MU_QINT32:
		PUT_INTS(int32_t);
	default:
		PUT_INTS(int64_t);
	}
	mu_pb_end(b, list);
	return 0;
}

/* The list field of a TensorProto for each type, and whether its values are varints. */
static const struct {
	uint32_t number;
	bool ints;
} lists[MU_DT_COUNT] = {
    [MU_FLOAT] = {5, false},       [MU_DOUBLE] = {6, false}, [MU_INT32] = {7, true},
    [MU_INT16] = {7, true},        [MU_INT8] = {7, true},    [MU_UINT8] = {7, true},
    [MU_QINT8] = {7, true},        [MU_QUINT8] = {7, true},  [MU_QINT32] = {7, true},
    [MU_COMPLEX64] = {9, false},   [MU_INT64] = {10, true},  [MU_BOOL] = {11, true},
    [MU_COMPLEX128] = {12, false}, [MU_HALF] = {13, true},   [MU_BFLOAT16] = {13, true},
    [MU_UINT16] = {7, true}};

static int put_values(struct mu_buf *b, const struct mu_tensor *t, struct mu_err *err)
{
	enum { STRINGS = 8 };

	if (t->dtype == MU_STRING) {
		for (int64_t i = 0; i < t->shape.count; i++) {
			const struct mu_string *s = &MU_DATA(struct mu_string, t)[i];
			mu_pb_put_bytes(b, STRINGS,
					(struct mu_span){s->data ? s->data : "", s->len});
		}
		return 0;
	}
	if (!lists[t->dtype].number)
		return mu_fail(err, MU_UNIMPLEMENTED,
			       "tensors of type %s cannot be saved in this format",
			       mu_dtype_name(t->dtype));
	if (lists[t->dtype].ints)
		return put_ints(b, lists[t->dtype].number, t);
	put_raw(b, lists[t->dtype].number, t);
	return 0;
}

/* ---- entries ---- */

static int encode_entry(struct entry *e, const struct mu_v1_format *x, struct mu_err *err)
{
	struct bundle_slice slice = slice_of(x);

	bundle_slice_key(&e->key, x->name, &slice);
	size_t data = mu_pb_begin(&e->value, SLICES_DATA);
	mu_pb_put_str(&e->value, DATA_NAME, x->name);
	bundle_slice_write(&e->value, DATA_SLICE, &slice);
	size_t values = mu_pb_begin(&e->value, DATA_VALUES);
	int rc = put_values(&e->value, x->tensor, err);
	mu_pb_end(&e->value, values);
	mu_pb_end(&e->value, data);
	if (!rc && e->value.len > INT32_MAX)
		rc = mu_fail(err, MU_INVALID_ARGUMENT,
			     "Tensor slice is too large to serialize: '%.200s' takes %zu bytes, a "
			     "message holds 2 GiB",
			     x->name, e->value.len);
	return rc;
}

static const struct mu_shape *whole_shape(const struct mu_v1_format *x)
{
	return x->slice ? &x->slice->full : &x->tensor->shape;
}

static bool slices_overlap(const struct mu_v1_format *x, const struct mu_v1_format *y)
{
	struct bundle_slice a = slice_of(x), b = slice_of(y);
	struct box p, q, common;

	return !box_of_bundle_slice(&p, &a, whole_shape(x), NULL) &&
	       !box_of_bundle_slice(&q, &b, whole_shape(y), NULL) && box_intersect(&common, &p, &q);
}

/* Writes the metadata of the tensor whose first slice is item i, with all its slices. */
static int put_tensor_meta(struct mu_buf *b, const struct mu_v1_format *items, unsigned n,
			   unsigned i, struct mu_err *err)
{
	const struct mu_v1_format *first = &items[i];
	size_t tensor = mu_pb_begin(b, META_TENSOR);

	mu_pb_put_str(b, TENSOR_NAME, first->name);
	size_t shape = mu_pb_begin(b, TENSOR_SHAPE);
	mu_shape_write(b, whole_shape(first));
	mu_pb_end(b, shape);
	mu_pb_put_int(b, TENSOR_TYPE, first->tensor->dtype);
	for (unsigned k = i; k < n; k++) {
		const struct mu_v1_format *x = &items[k];
		if (strcmp(x->name, first->name) != 0)
			continue;
		if (x->tensor->dtype != first->tensor->dtype ||
		    !mu_shape_eq(whole_shape(x), whole_shape(first)))
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "Mismatching shapes or types: existing tensor = %s, trying "
				       "to add name %.200s, shape = %s",
				       mu_shape_str(whole_shape(first)), x->name,
				       mu_shape_str(whole_shape(x)));
		for (unsigned j = i; j < k; j++)
			if (strcmp(items[j].name, x->name) == 0 && slices_overlap(&items[j], x))
				return mu_fail(err, MU_INTERNAL,
					       "Overlapping slices: two of '%.200s'", x->name);
		struct bundle_slice e = slice_of(x);
		bundle_slice_write(b, TENSOR_SLICE, &e);
	}
	mu_pb_end(b, tensor);
	return 0;
}

static int put_meta(struct mu_buf *b, const struct mu_v1_format *items, unsigned n,
		    struct mu_err *err)
{
	size_t meta = mu_pb_begin(b, SLICES_META);
	struct mu_map written_names;
	int rc = 0;

	mu_map_init(&written_names);
	for (unsigned i = 0; i < n && !rc; i++)
		if (!mu_map_put(&written_names, items[i].name, &written_names))
			rc = put_tensor_meta(b, items, n, i, err);
	mu_map_fini(&written_names);
	size_t versions = mu_pb_begin(b, META_VERSIONS);
	mu_pb_put_int(b, 1, 1); /* producer */
	mu_pb_end(b, versions);
	mu_pb_end(b, meta);
	return rc;
}

static int by_key(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return mu_span_compare(mu_buf_span(&x->key), mu_buf_span(&y->key));
}

int mu_v1_format_write(const char *path, const struct mu_v1_format *items, unsigned n,
		       struct mu_err *err)
{
	MU_AUTO_FREE struct entry *entries = MU_NEW_ARRAY(struct entry, n + 1);
	MU_AUTO_BUF meta = {0};
	MU_AUTO_BUF file = {0};
	struct table_builder table;
	int rc = put_meta(&meta, items, n, err);

	for (unsigned i = 0; i < n && !rc; i++)
		rc = encode_entry(&entries[i], &items[i], err);
	if (!rc) {
		qsort(entries, n, sizeof *entries, by_key);
		table_begin(&table, &file);
		table_add(&table, (struct mu_span){"", 0}, mu_buf_span(&meta));
		for (unsigned i = 0; i < n; i++)
			table_add(&table, mu_buf_span(&entries[i].key),
				  mu_buf_span(&entries[i].value));
		table_end(&table);
		rc = mu_make_folder(path, err);
	}
	if (!rc)
		rc = mu_write_file(path, file.data, file.len, err);
	for (unsigned i = 0; i < n; i++) {
		mu_buf_fini(&entries[i].key);
		mu_buf_fini(&entries[i].value);
	}
	return rc;
}
