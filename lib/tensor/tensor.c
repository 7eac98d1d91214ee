/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/tensor/tensor.h"
#include "lib/tensor/object.h"

#include <stdio.h>
#include <string.h>

#include "lib/tensor/arena.h"
#include "lib/tensor/small.h"

_Atomic size_t mu_tensor_limit = (size_t)16 << 30;
_Thread_local size_t mu_tensor_thread_limit = SIZE_MAX;

enum { ALIGN = 64 };

int mu_shape_push(struct mu_shape *s, int64_t dim, struct mu_err *err)
{
	int64_t count;

	if (s->rank >= MU_MAX_RANK)
		return mu_fail(err, MU_UNIMPLEMENTED, "tensors may have at most %d dimensions",
			       MU_MAX_RANK);
	if (dim < 0)
		return mu_fail(err, MU_INVALID_ARGUMENT, "dimension %d is negative: %lld", s->rank,
			       (long long)dim);
	if (__builtin_mul_overflow(s->count, dim, &count))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "shape %s times %lld has more elements than fit in 63 bits",
			       mu_shape_str(s), (long long)dim);
	s->dim[s->rank++] = dim;
	s->count = count;
	return 0;
}

int mu_shape_append(struct mu_shape *s, int n, const int64_t *dims, struct mu_err *err)
{
	struct mu_shape shape = *s;

	for (int i = 0; i < n; i++)
		MU_RETURN_IF_ERROR(mu_shape_push(&shape, dims[i], err));
	*s = shape;
	return 0;
}

int mu_shape_set(struct mu_shape *s, int rank, const int64_t *dims, struct mu_err *err)
{
	return mu_shape_splice(s, &(struct mu_shape){.count = 1}, 0, 0, rank, dims, err);
}

int mu_shape_splice(struct mu_shape *out, const struct mu_shape *s, int at, int removed, int n,
		    const int64_t *dims, struct mu_err *err)
{
	const int tail = at + removed;
	struct mu_shape result = mu_shape_scalar();

	MU_RETURN_IF_ERROR(mu_shape_append(&result, at, s->dim, err));
	MU_RETURN_IF_ERROR(mu_shape_append(&result, n, dims, err));
	MU_RETURN_IF_ERROR(mu_shape_append(&result, s->rank - tail, s->dim + tail, err));
	*out = result;
	return 0;
}

int64_t mu_shape_product(const struct mu_shape *s, int from, int to)
{
	int64_t n = 1;

	for (int d = from; d < to; d++)
		n *= s->dim[d];
	return n;
}

struct mu_axis_split mu_shape_split(const struct mu_shape *s, int axis)
{
	return (struct mu_axis_split){mu_shape_product(s, 0, axis), s->dim[axis],
				      mu_shape_product(s, axis + 1, s->rank)};
}

bool mu_shape_eq(const struct mu_shape *a, const struct mu_shape *b)
{
	return a->rank == b->rank &&
	       memcmp(a->dim, b->dim, (size_t)a->rank * sizeof a->dim[0]) == 0;
}

bool mu_shape_part_eq(const struct mu_shape *a, int i, const struct mu_shape *b, int j, int n)
{
	return n <= 0 || (i >= 0 && j >= 0 && i + n <= a->rank && j + n <= b->rank &&
			  !memcmp(a->dim + i, b->dim + j, (size_t)n * sizeof a->dim[0]));
}

bool mu_shape_matches(const struct mu_shape *s, const struct mu_pshape *p)
{
	if (p->rank < 0)
		return true;
	if (s->rank != p->rank)
		return false;
	for (int i = 0; i < s->rank; i++)
		if (p->dim[i] >= 0 && p->dim[i] != s->dim[i])
			return false;
	return true;
}

static const char *dims_str(int rank, const int64_t *dims)
{
	static _Thread_local char text[4][MU_MAX_RANK * 21 + 3];
	static _Thread_local unsigned n_calls;
	char *out = text[n_calls++ % 4];
	size_t n = 0, cap = sizeof text[0];

	n += (size_t)snprintf(out, cap, "[");
	for (int i = 0; i < rank; i++)
		n += (size_t)(dims[i] < 0 ? snprintf(out + n, cap - n, "%s?", i ? "," : "")
					  : snprintf(out + n, cap - n, "%s%lld", i ? "," : "",
						     (long long)dims[i]));
	snprintf(out + n, cap - n, "]");
	return out;
}

const char *mu_shape_str(const struct mu_shape *s)
{
	return dims_str(s->rank, s->dim);
}

const char *mu_pshape_str(const struct mu_pshape *p)
{
	return p->rank < 0 ? "<unknown>" : dims_str(p->rank, p->dim);
}

void mu_string_set(struct mu_string *e, const char *s, size_t n)
{
	char *copy = n ? mu_xmalloc(n) : NULL;

	if (n)
		memcpy(copy, s, n);
	free(e->data);
	e->data = copy;
	e->len = n;
}

void mu_handle_copy(struct mu_handle *to, const struct mu_handle *from)
{
	*to = (struct mu_handle){
	    .device = from->device ? mu_xstrdup(from->device) : NULL,
	    .container = from->container ? mu_xstrdup(from->container) : NULL,
	    .name = from->name ? mu_xstrdup(from->name) : NULL,
	    .type_name = from->type_name ? mu_xstrdup(from->type_name) : NULL,
	    .hash_code = from->hash_code,
	    .owned = mu_object_ref(from->owned),
	};
}

void mu_handle_fini(struct mu_handle *h)
{
	free(h->device);
	free(h->container);
	free(h->name);
	free(h->type_name);
	mu_object_unref(h->owned);
	*h = (struct mu_handle){0};
}

static size_t element_size(enum mu_dtype t)
{
	return t == MU_STRING     ? sizeof(struct mu_string)
	       : t == MU_RESOURCE ? sizeof(struct mu_handle)
	       : t == MU_VARIANT  ? sizeof(struct mu_object *)
				  : mu_dtype_size(t);
}

static void fini_elements(struct mu_tbuf *b)
{
	if (b->dtype == MU_STRING)
		for (int64_t i = 0; i < b->count; i++)
			free(((struct mu_string *)b->data)[i].data);
	else if (b->dtype == MU_RESOURCE)
		for (int64_t i = 0; i < b->count; i++)
			mu_handle_fini(&((struct mu_handle *)b->data)[i]);
	else if (b->dtype == MU_VARIANT)
		for (int64_t i = 0; i < b->count; i++)
			mu_object_unref(((struct mu_object **)b->data)[i]);
}

enum { HEADER_BYTES = (sizeof(struct mu_tbuf) + ALIGN - 1) / ALIGN * ALIGN };

static size_t allocation_size(size_t bytes)
{
	return HEADER_BYTES + ((bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1));
}

/* Releases a buffer whose header and data are one allocation. */
static void release_inline(struct mu_tbuf *b)
{
	fini_elements(b);
	small_free(b, allocation_size(b->size));
}

static void release_arena(struct mu_tbuf *b)
{
	arena_free(b->data, b->size);
	small_free(b, HEADER_BYTES);
}

/* Allocates the header separately, because other tasks may map the data. */
static struct mu_tbuf *new_in_arena(size_t bytes)
{
	void *data = arena_alloc(bytes);
	struct mu_tbuf *b;

	if (!data)
		return NULL;
	b = small_alloc(HEADER_BYTES);
	if (!b) {
		arena_free(data, bytes);
		return NULL;
	}
	b->data = data;
	b->release = release_arena;
	return b;
}

int mu_tensor_new(struct mu_tensor *out, enum mu_dtype dtype, const struct mu_shape *shape,
		  struct mu_err *err)
{
	size_t element_bytes = element_size(dtype), bytes;

	if (!element_bytes)
		return mu_fail(err, MU_UNIMPLEMENTED, "tensors of type %s are not supported",
			       mu_dtype_name(dtype));
	if (__builtin_mul_overflow((size_t)shape->count, element_bytes, &bytes) ||
	    bytes > atomic_load_explicit(&mu_tensor_limit, memory_order_relaxed) ||
	    bytes > mu_tensor_thread_limit)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED,
			       "a tensor of shape %s and type %s exceeds the limit of %zu bytes",
			       mu_shape_str(shape), mu_dtype_name(dtype),
			       atomic_load_explicit(&mu_tensor_limit, memory_order_relaxed));
	struct mu_tbuf *b = mu_dtype_size(dtype) ? new_in_arena(bytes) : NULL;
	if (!b) {
		b = small_alloc(allocation_size(bytes));
		if (b) {
			b->data = (char *)b + HEADER_BYTES;
			b->release = release_inline;
		}
	}
	if (!b)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED,
			       "out of memory for a tensor of shape %s and type %s",
			       mu_shape_str(shape), mu_dtype_name(dtype));
	atomic_init(&b->refs, 1);
	atomic_init(&b->remote_refs, 0);
	b->dtype = dtype;
	b->size = bytes;
	b->count = shape->count;
	b->owner = NULL;
	b->device = false;
	if (!mu_dtype_size(dtype))
		memset(b->data, 0, bytes);
	out->dtype = dtype;
	mu_shape_copy(&out->shape, shape);
	out->buf = b;
	out->data = b->data;
	return 0;
}

static void release_wrapped(struct mu_tbuf *b)
{
	free(b);
}

void mu_tensor_wrap(struct mu_tensor *out, enum mu_dtype dtype, const struct mu_shape *shape,
		    void *data, void (*release)(struct mu_tbuf *), void *owner)
{
	struct mu_tbuf *b = MU_NEW(struct mu_tbuf);

	atomic_init(&b->refs, 1);
	atomic_init(&b->remote_refs, 0);
	b->dtype = dtype;
	b->count = shape->count;
	b->size = (size_t)shape->count * element_size(dtype);
	b->data = data;
	b->release = release ? release : release_wrapped;
	b->owner = owner;
	*out = (struct mu_tensor){.dtype = dtype, .shape = *shape, .buf = b, .data = data};
}

struct mu_tensor mu_tensor_reshaped(const struct mu_tensor *t, const struct mu_shape *shape)
{
	struct mu_tensor r = mu_tensor_ref(t);

	r.shape = *shape;
	return r;
}

int mu_tensor_copy(struct mu_tensor *out, const struct mu_tensor *in, struct mu_err *err)
{
	struct mu_tensor t;

	if (in->buf && in->buf->device)
		return mu_fail(err, MU_INTERNAL, "cannot copy a tensor in GPU memory on the host");
	int rc = mu_tensor_new(&t, in->dtype, &in->shape, err);
	if (rc)
		return rc;
	int64_t n = in->shape.count;
	if (in->dtype == MU_STRING)
		for (int64_t i = 0; i < n; i++)
			mu_string_set(&MU_DATA(struct mu_string, &t)[i],
				      MU_DATA(struct mu_string, in)[i].data,
				      MU_DATA(struct mu_string, in)[i].len);
	else if (in->dtype == MU_RESOURCE)
		for (int64_t i = 0; i < n; i++)
			mu_handle_copy(&MU_DATA(struct mu_handle, &t)[i],
				       &MU_DATA(struct mu_handle, in)[i]);
	else if (in->dtype == MU_VARIANT)
		for (int64_t i = 0; i < n; i++) {
			struct mu_object *o = MU_DATA(struct mu_object *, in)[i];
			MU_DATA(struct mu_object *, &t)[i] = mu_object_ref(o);
		}
	else if (n)
		memcpy(t.data, in->data, (size_t)n * mu_dtype_size(in->dtype));
	*out = t;
	return 0;
}

size_t mu_tensor_bytes(const struct mu_tensor *t)
{
	size_t total = (size_t)t->shape.count * element_size(t->dtype);

	if (t->dtype == MU_STRING)
		for (int64_t i = 0; i < t->shape.count; i++)
			total += MU_DATA(struct mu_string, t)[i].len;
	return total;
}

int mu_tensor_scalar(struct mu_tensor *out, enum mu_dtype dtype, const void *value,
		     struct mu_err *err)
{
	struct mu_shape s = mu_shape_scalar();
	struct mu_tensor t;
	int rc = mu_tensor_new(&t, dtype, &s, err);

	if (rc)
		return rc;
	memcpy(t.data, value, mu_dtype_size(dtype));
	*out = t;
	return 0;
}

int mu_tensor_string(struct mu_tensor *out, const char *s, size_t n, struct mu_err *err)
{
	struct mu_shape scalar = mu_shape_scalar();
	struct mu_tensor t;
	int rc = mu_tensor_new(&t, MU_STRING, &scalar, err);

	if (rc)
		return rc;
	mu_string_set(t.data, s, n);
	*out = t;
	return 0;
}
