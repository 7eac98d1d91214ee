/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors: a value struct that points to a reference-counted buffer.
 *
 * A struct mu_tensor is small.  It is copied by mu_tensor_ref, which shares the buffer, or moved by
 * plain assignment.  Each copy holds one reference, which mu_tensor_unref releases.  The zero
 * struct is "no tensor" (dtype MU_DT_INVALID) and may be unref'd.  A buffer with more than one
 * reference is read-only by convention: writers call mu_tensor_is_sole first.
 *
 * Shapes are created only by mu_shape_set, mu_shape_push and related functions, which check for
 * overflow.  So the element count of a struct mu_shape is always correct.
 */
#ifndef MU_LIB_TENSOR_TENSOR_H
#define MU_LIB_TENSOR_TENSOR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/tensor/dtype.h"

enum { MU_MAX_RANK = 32 }; /* as NumPy: a client cannot feed or fetch more */

struct mu_shape {
	int rank;
	int64_t count; /* product of dim[]; 1 for a scalar */
	int64_t dim[MU_MAX_RANK];
};

/* A partially known shape, as in attributes, placeholders and shape inference. */
struct mu_pshape {
	int rank;                 /* -1: unknown rank */
	int64_t dim[MU_MAX_RANK]; /* -1: unknown */
};

static inline struct mu_pshape mu_pshape_of(const struct mu_shape *s)
{
	struct mu_pshape p = {.rank = s->rank};

	memcpy(p.dim, s->dim, (size_t)s->rank * sizeof p.dim[0]);
	return p;
}
int mu_shape_set(struct mu_shape *s, int rank, const int64_t *dims, struct mu_err *err);
int mu_shape_push(struct mu_shape *s, int64_t dim, struct mu_err *err); /* appends a dimension */
int mu_shape_append(struct mu_shape *s, int n, const int64_t *dims, struct mu_err *err);
/* Sets out to s with `dims` in place of the `removed` dimensions from index `at`.  out may be s. */
int mu_shape_splice(struct mu_shape *out, const struct mu_shape *s, int at, int removed, int n,
		    const int64_t *dims, struct mu_err *err);
/* Returns the product of dimensions [from, to). */
int64_t mu_shape_product(const struct mu_shape *s, int from, int to);
/* A shape with its dimensions merged to [outer, n, inner], where n is dimension `axis`. */
struct mu_axis_split {
	int64_t outer, n, inner;
};
struct mu_axis_split mu_shape_split(const struct mu_shape *s, int axis);
static inline struct mu_shape mu_shape_scalar(void)
{
	return (struct mu_shape){.rank = 0, .count = 1};
}
static inline struct mu_shape mu_shape_vec(int64_t n) /* n >= 0, from a count that already fits */
{
	return (struct mu_shape){.rank = 1, .count = n, .dim = {n}};
}
/* Copies only the first `rank` dimensions. */
static inline void mu_shape_copy(struct mu_shape *to, const struct mu_shape *from)
{
	to->rank = from->rank;
	to->count = from->count;
	memcpy(to->dim, from->dim, (size_t)from->rank * sizeof to->dim[0]);
}
bool mu_shape_eq(const struct mu_shape *a, const struct mu_shape *b);
/* True if dimensions [i, i + n) of a equal dimensions [j, j + n) of b.  False if a or b has fewer.
 */
bool mu_shape_part_eq(const struct mu_shape *a, int i, const struct mu_shape *b, int j, int n);
bool mu_shape_matches(const struct mu_shape *s, const struct mu_pshape *p);
/* Return "[2,3]", "[]", "[?,3]" or "<unknown>", in one of a few per-thread buffers. */
const char *mu_shape_str(const struct mu_shape *s);
const char *mu_pshape_str(const struct mu_pshape *p);

/* One element of a MU_STRING tensor.  data is malloc'd and owned by the tensor's buffer;
 * NULL with len 0 is the empty string. */
struct mu_string {
	char *data;
	size_t len;
};

/* One element of a MU_RESOURCE tensor: a name, which kernels look up in its container. */
struct mu_handle {
	char *device, *container, *name, *type_name;
	uint64_t hash_code;
	struct mu_object
	    *owned; /* the resource, if it lives as long as the handles to it; or NULL */
};

struct mu_tbuf {
	_Atomic uint32_t refs;
	_Atomic uint32_t remote_refs; /* the number of refs held for other tasks */
	enum mu_dtype dtype;
	bool device; /* GPU memory: the host must not dereference the address */
	size_t size; /* bytes at data */
	int64_t count;
	void *data;
	void (*release)(struct mu_tbuf *b); /* called at the last unref */
	void *owner; /* for release; not NULL: wrapped memory, which must not be written */
};

struct mu_tensor { /* the shape is last, so that tensors of low rank touch fewer cache lines */
	enum mu_dtype dtype;
	struct mu_tbuf *buf; /* NULL only for "no tensor" */
	void *data;          /* first element; within buf */
	struct mu_shape shape;
};

/* Plain types are not initialized; strings and handles are empty.  Fails with RESOURCE_EXHAUSTED if
 * there is not enough memory or the size exceeds mu_tensor_limit.  Data is aligned to 64 bytes. */
int mu_tensor_new(struct mu_tensor *out, enum mu_dtype dtype, const struct mu_shape *shape,
		  struct mu_err *err);
/* Wraps memory of another owner.  The last unref calls release(buf), with buf->owner == owner. */
void mu_tensor_wrap(struct mu_tensor *out, enum mu_dtype dtype, const struct mu_shape *shape,
		    void *data, void (*release)(struct mu_tbuf *), void *owner);
/* Assigns *from to *to, but copies only `rank` dimensions. */
static inline void mu_tensor_move(struct mu_tensor *to, const struct mu_tensor *from)
{
	to->dtype = from->dtype;
	to->buf = from->buf;
	to->data = from->data;
	mu_shape_copy(&to->shape, &from->shape);
}
static inline void mu_tensor_share(struct mu_tensor *to, const struct mu_tensor *from)
{
	if (from->buf)
		atomic_fetch_add_explicit(&from->buf->refs, 1, memory_order_relaxed);
	mu_tensor_move(to, from);
}
static inline struct mu_tensor mu_tensor_ref(const struct mu_tensor *t)
{
	if (t->buf)
		atomic_fetch_add_explicit(&t->buf->refs, 1, memory_order_relaxed);
	return *t;
}
/* Releases the reference and zeroes *t.  The last reference needs no atomic decrement, because no
 * other thread can add one. */
static inline void mu_tensor_unref(struct mu_tensor *t)
{
	struct mu_tbuf *b = t->buf;

	t->dtype = MU_DT_INVALID;
	t->buf = NULL;
	t->data = NULL;
	if (b && (atomic_load_explicit(&b->refs, memory_order_acquire) == 1 ||
		  atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) == 1))
		b->release(b);
}
int mu_tensor_copy(struct mu_tensor *out, const struct mu_tensor *in,
		   struct mu_err *err); /* deep */
/* Returns a new reference with another shape, which must have the same count. */
struct mu_tensor mu_tensor_reshaped(const struct mu_tensor *t, const struct mu_shape *shape);
static inline bool mu_tensor_is_sole(const struct mu_tensor *t)
{
	return t->buf && atomic_load_explicit(&t->buf->refs, memory_order_acquire) == 1;
}
/* True if the memory may be written: there is no other reference, and it is not wrapped memory. */
static inline bool mu_tensor_is_own(const struct mu_tensor *t)
{
	return mu_tensor_is_sole(t) && !t->buf->owner;
}
/* Marks a reference that the caller holds for another task, which maps the memory or waits for its
 * bytes.  While remote references exist, an update must write to a new buffer. */
static inline void mu_tensor_add_remote_ref(const struct mu_tensor *t)
{
	atomic_fetch_add_explicit(&t->buf->remote_refs, 1, memory_order_relaxed);
}
static inline void mu_tensor_unref_remote(struct mu_tensor *t)
{
	atomic_fetch_sub_explicit(&t->buf->remote_refs, 1, memory_order_release);
	mu_tensor_unref(t);
}
static inline bool mu_tensor_has_remote_refs(const struct mu_tensor *t)
{
	return atomic_load_explicit(&t->buf->remote_refs, memory_order_acquire) != 0;
}
size_t mu_tensor_bytes(const struct mu_tensor *t); /* payload, strings included */

extern _Atomic size_t mu_tensor_limit; /* largest single tensor in bytes; 16 GiB unless set */
extern _Thread_local size_t
    mu_tensor_thread_limit; /* additional limit of this thread; SIZE_MAX unless set */

static inline bool mu_tensor_is_set(const struct mu_tensor *t)
{
	return t->dtype != MU_DT_INVALID;
}

/* Typed access; the caller has checked dtype. */
#define MU_DATA(type, t) ((type *)(t)->data)

int mu_tensor_scalar(struct mu_tensor *out, enum mu_dtype dtype, const void *value,
		     struct mu_err *err); /* plain types: copies mu_dtype_size bytes */
int mu_tensor_string(struct mu_tensor *out, const char *s, size_t n,
		     struct mu_err *err);                                /* scalar */
void mu_string_set(struct mu_string *e, const char *s, size_t n);        /* frees the old value */
void mu_handle_copy(struct mu_handle *to, const struct mu_handle *from); /* `to` must be empty */
void mu_handle_fini(struct mu_handle *h);

/* Returns element i of an int32 or int64 tensor. */
static inline int64_t mu_tensor_int(const struct mu_tensor *t, int64_t i)
{
	return t->dtype == MU_INT64 ? MU_DATA(int64_t, t)[i] : MU_DATA(int32_t, t)[i];
}

/* Sets element i of an int32 or int64 tensor; v must be in range. */
static inline void mu_tensor_set_int(struct mu_tensor *t, int64_t i, int64_t v)
{
	if (t->dtype == MU_INT32)
		MU_DATA(int32_t, t)[i] = (int32_t)v;
	else
		MU_DATA(int64_t, t)[i] = v;
}

#define MU_AUTO_TENSOR __attribute__((cleanup(mu_tensor_unref))) struct mu_tensor

#endif
