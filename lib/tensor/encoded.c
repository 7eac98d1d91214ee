/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/tensor/encoded.h"

#include "lib/base/pb.h"

enum { F_KIND = 1, F_BYTES = 2 };

static void encoded_free(struct mu_object *o)
{
	struct mu_encoded *e = MU_CONTAINER(o, struct mu_encoded, object);

	free(e->kind);
	mu_buf_fini(&e->bytes);
	free(e);
}

/* "int" is the only format that clients can write into a graph and that supports ZerosLike. */
static int encoded_zeros(const struct mu_object *o, struct mu_object **out, struct mu_err *err)
{
	const struct mu_encoded *e = MU_CONTAINER(o, const struct mu_encoded, object);
	struct mu_buf zero = {0};

	if (strcmp(e->kind, "int"))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "No unary variant unary_op function found for op ZEROS_LIKE Variant "
			       "type_name: %.80s",
			       e->kind);
	mu_buf_put(&zero, (const char[sizeof(int32_t)]){0}, sizeof(int32_t));
	*out = mu_encoded_new(mu_span_of(e->kind), &zero);
	return 0;
}

static int encoded_add(const struct mu_object *a, const struct mu_object *b, struct mu_object **out,
		       struct mu_err *err)
{
	const struct mu_encoded *x = MU_CONTAINER(a, const struct mu_encoded, object);
	const struct mu_encoded *y = MU_CONTAINER(b, const struct mu_encoded, object);
	struct mu_buf bytes = {0};
	uint32_t sum, second;

	if (strcmp(x->kind, "int") || strcmp(y->kind, "int") || x->bytes.len != sizeof sum ||
	    y->bytes.len != sizeof sum)
		return mu_fail(err, MU_INTERNAL,
			       "No binary variant binary_op function found for op ADD Variant "
			       "type_name: '%.80s'",
			       x->kind);
	memcpy(&sum, x->bytes.data, sizeof sum);
	memcpy(&second, y->bytes.data, sizeof second);
	sum += second;
	mu_buf_put(&bytes, (const char *)&sum, sizeof sum);
	*out = mu_encoded_new(mu_span_of(x->kind), &bytes);
	return 0;
}

static const struct mu_object_type encoded_type = {
    .name = "saved object", .free = encoded_free, .zeros = encoded_zeros, .add = encoded_add};

struct mu_object *mu_encoded_new(struct mu_span kind, struct mu_buf *bytes)
{
	struct mu_encoded *e = MU_NEW(struct mu_encoded);

	mu_object_init(&e->object, &encoded_type);
	e->kind = mu_xstrndup(kind.data ? kind.data : "", kind.len);
	e->bytes = *bytes;
	*bytes = (struct mu_buf){0};
	return &e->object;
}

const struct mu_encoded *mu_encoded_of(const struct mu_object *o)
{
	return o && o->type == &encoded_type ? MU_CONTAINER(o, const struct mu_encoded, object)
					     : NULL;
}

void mu_encoded_write(struct mu_buf *b, const struct mu_encoded *e)
{
	mu_pb_put_str(b, F_KIND, e->kind);
	mu_pb_put_bytes(b, F_BYTES, mu_buf_span(&e->bytes));
}

int mu_encoded_parse(struct mu_object **out, struct mu_span proto, struct mu_err *err)
{
	struct mu_pb m = mu_pb_of(proto);
	struct mu_span kind = MU_SPAN(""), bytes = MU_SPAN("");
	struct mu_buf copy = {0};

	for (struct mu_pb_field f; mu_pb_next(&m, &f);) {
		if (f.number == F_KIND)
			kind = f.bytes;
		if (f.number == F_BYTES)
			bytes = f.bytes;
	}
	if (m.bad)
		return mu_fail(err, MU_INVALID_ARGUMENT, "an object is malformed or truncated");
	mu_buf_put(&copy, bytes.data, bytes.len);
	*out = mu_encoded_new(kind, &copy);
	return 0;
}
