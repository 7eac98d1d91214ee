/* SPDX-License-Identifier: Apache-2.0 */
/* Sparse tensors as three strings, each a TensorProto: positions, values, shape. tf.train.batch
 * sends them through a queue in this form. Input pipelines use three variants instead. */
#include "lib/tensor/tensor_proto.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/variant.h"
#include "task/kernels/sparse/sparse.h"

enum { PARTS = 3 };

/* The form of the parts: strings, or variants that share their memory. */
static int serialized_type(const struct kernel_call *c, const char *attr, enum mu_dtype *t,
			   struct mu_err *err)
{
	*t = args_attr_type(c->node, attr, MU_STRING);
	return *t == MU_STRING || *t == MU_VARIANT
		   ? 0
		   : mu_fail(err, MU_UNIMPLEMENTED, "no %s of %s, only of string and variant",
			     c->node->op, mu_dtype_name(*t));
}

static void write_one(struct mu_tensor *out, int64_t i, const struct mu_tensor *t)
{
	MU_AUTO_BUF b = {0};

	if (out->dtype == MU_VARIANT) {
		MU_DATA(struct mu_object *, out)[i] = variant_box(t);
		return;
	}
	mu_tensor_write(&b, t);
	mu_string_set(&MU_DATA(struct mu_string, out)[i], b.data, b.len);
}

/* Writes indices, values and shape of p to the elements of out from k * PARTS on. */
static int write_part(const struct sparse_part *p, struct mu_tensor *out, int64_t k,
		      struct mu_err *err)
{
	struct mu_shape vec = mu_shape_vec(p->rank);
	struct mu_tensor shape;
	int rc = p->values.dtype == MU_RESOURCE || p->values.dtype == MU_VARIANT
		     ? mu_fail(err, MU_UNIMPLEMENTED, "cannot serialize %s",
			       mu_dtype_name(p->values.dtype))
		     : mu_tensor_new(&shape, MU_INT64, &vec, err);

	if (rc)
		return rc;
	memcpy(shape.data, p->dim, (size_t)p->rank * sizeof *p->dim);
	write_one(out, k * PARTS, &p->at);
	write_one(out, k * PARTS + 1, &p->values);
	write_one(out, k * PARTS + 2, &shape);
	mu_tensor_unref(&shape);
	return 0;
}

static int serialize(struct kernel_call *c, struct mu_err *err)
{
	struct sparse_part p;
	struct mu_tensor *out;
	enum mu_dtype t;
	int rc;

	MU_RETURN_IF_ERROR(serialized_type(c, "out_type", &t, err));
	MU_RETURN_IF_ERROR(sparse_part_in(c, 0, &p, err));
	if (!(rc = kernel_out_vec(c, 0, t, PARTS, &out, err)))
		rc = write_part(&p, out, 0, err);
	sparse_part_fini(&p);
	return rc;
}

static int sparse_serialize_write_rows(struct kernel_call *c, const struct sparse_part *batch,
				       enum mu_dtype t, struct mu_err *err)
{
	const int64_t *at = MU_DATA(int64_t, &batch->at);
	int64_t n = batch->values.shape.count, i = 0;
	struct sparse_part row;
	struct mu_shape shape;
	struct mu_tensor *out;
	int rc = 0;

	MU_RETURN_IF_ERROR(sparse_part_check_rows(batch, err));
	MU_RETURN_IF_ERROR(mu_shape_set(&shape, 2, (int64_t[]){batch->dim[0], PARTS}, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, t, &shape, &out, err));
	for (int64_t b = 0; b < batch->dim[0] && !rc; b++) {
		int64_t from = i;
		while (i < n && at[i * batch->rank] == b)
			i++;
		if ((rc = kernel_check_cancelled(c, err)) ||
		    (rc = sparse_part_row(batch, from, i, &row, err)))
			break;
		rc = write_part(&row, out, b, err);
		sparse_part_fini(&row);
	}
	return rc;
}

static int serialize_many(struct kernel_call *c, struct mu_err *err)
{
	struct sparse_part batch;
	enum mu_dtype t;
	int rc;

	MU_RETURN_IF_ERROR(serialized_type(c, "out_type", &t, err));
	MU_RETURN_IF_ERROR(sparse_part_in(c, 2, &batch, err));
	rc = sparse_serialize_write_rows(c, &batch, t, err);
	sparse_part_fini(&batch);
	return rc;
}

/* ---- DeserializeSparse ---- */

/* Reads a tensor of this type and rank from element i. */
static int sparse_serialize_read_one(const struct mu_tensor *in, int64_t i, enum mu_dtype type,
				     int rank, struct mu_tensor *out, struct mu_err *err)
{
	const struct mu_tensor *boxed =
	    in->dtype == MU_VARIANT ? variant_unbox(MU_DATA(struct mu_object *, in)[i]) : NULL;
	struct mu_tensor t;

	if (in->dtype == MU_VARIANT && !boxed)
		return mu_invalid(err, "serialized_sparse[%lld] holds no tensor", (long long)i);
	if (boxed)
		t = mu_tensor_ref(boxed);
	else if (mu_tensor_parse(&t, elems_span(in, i), err))
		return mu_wrap(err, "Could not parse serialized_sparse[%lld]", (long long)i);
	if (t.dtype != type || t.shape.rank != rank) {
		int rc = mu_invalid(err, "serialized_sparse[%lld] is %s %s, want %s of rank %d",
				    (long long)i, mu_dtype_name(t.dtype), mu_shape_str(&t.shape),
				    mu_dtype_name(type), rank);
		mu_tensor_unref(&t);
		return rc;
	}
	*out = t;
	return 0;
}

static int read_part(const struct mu_tensor *in, int64_t k, enum mu_dtype type,
		     struct sparse_part *p, struct mu_err *err)
{
	MU_AUTO_TENSOR shape = {0};

	*p = (struct sparse_part){0};
	MU_RETURN_IF_ERROR(sparse_serialize_read_one(in, k * PARTS, MU_INT64, 2, &p->at, err));
	MU_RETURN_IF_ERROR(sparse_serialize_read_one(in, k * PARTS + 1, type, 1, &p->values, err));
	MU_RETURN_IF_ERROR(sparse_serialize_read_one(in, k * PARTS + 2, MU_INT64, 1, &shape, err));
	if (shape.shape.count > MU_MAX_RANK || p->at.shape.dim[0] != p->values.shape.count ||
	    p->at.shape.dim[1] != shape.shape.count)
		return mu_invalid(
		    err,
		    "serialized_sparse %lld: positions %s, values %s and a shape %s do not fit",
		    (long long)k, mu_shape_str(&p->at.shape), mu_shape_str(&p->values.shape),
		    mu_shape_str(&shape.shape));
	p->rank = (int)shape.shape.count;
	memcpy(p->dim, shape.data, (size_t)p->rank * sizeof *p->dim);
	for (int d = 0; d < p->rank; d++)
		if (p->dim[d] < 0)
			return mu_invalid(err, "serialized_sparse %lld: dimension %d is negative",
					  (long long)k, d);
	return 0;
}

static int deserialize(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	enum mu_dtype type = args_attr_type(c->node, "dtype", MU_DT_INVALID), packed;
	struct mu_shape lead;
	int rc = 0;

	MU_RETURN_IF_ERROR(serialized_type(c, "Tserialized", &packed, err));
	if (in->shape.rank < 1 || in->shape.dim[in->shape.rank - 1] != PARTS || !in->shape.count)
		return mu_invalid(err,
				  "Serialized sparse should have 3 as the last dimension, and at "
				  "least one of them, not shape %s",
				  mu_shape_str(&in->shape));
	MU_RETURN_IF_ERROR(mu_shape_set(&lead, in->shape.rank - 1, in->shape.dim, err));
	struct sparse_part *parts = mu_xcalloc((size_t)lead.count, sizeof *parts);
	const struct sparse_part **list = mu_xcalloc((size_t)lead.count, sizeof *list);
	for (int64_t k = 0; k < lead.count && !rc; k++) {
		list[k] = &parts[k];
		rc = read_part(in, k, type, &parts[k], err);
	}
	if (!rc)
		rc = sparse_parts_join(c, list, &lead, type, err);
	for (int64_t k = 0; k < lead.count; k++)
		sparse_part_fini(&parts[k]);
	free(list);
	free(parts);
	return rc;
}

static const struct kernel rows[] = {
    {"SerializeSparse", .run = serialize},
    {"SerializeManySparse", .run = serialize_many},
    {"DeserializeSparse DeserializeManySparse", .run = deserialize},
};
KERNEL_TABLE(sparse_serialize, rows)
