/* SPDX-License-Identifier: Apache-2.0 */
#include "task/kernels/engine/elems.h"

#include <string.h>

#include "lib/tensor/object.h"
#include "task/kernels/engine/transpose_2d.h"

size_t elems_size(enum mu_dtype t)
{
	return t == MU_STRING     ? sizeof(struct mu_string)
	       : t == MU_RESOURCE ? sizeof(struct mu_handle)
	       : t == MU_VARIANT  ? sizeof(struct mu_object *)
				  : mu_dtype_size(t);
}

static void copy_one(enum mu_dtype t, void *to, const void *from)
{
	if (t == MU_STRING) {
		const struct mu_string *s = from;
		mu_string_set(to, s->data, s->len);
	} else if (t == MU_VARIANT) {
		struct mu_object **at = to;
		mu_object_unref(*at);
		*at = mu_object_ref(*(struct mu_object *const *)from);
	} else {
		mu_handle_fini(to);
		mu_handle_copy(to, from);
	}
}

void elems_copy(enum mu_dtype t, void *to, int64_t at_to, const void *from, int64_t at_from,
		int64_t n)
{
	size_t size = elems_size(t);
	char *d = (char *)to + (size_t)at_to * size;
	const char *s = (const char *)from + (size_t)at_from * size;

	if (n <= 0)
		return;
	if (mu_dtype_size(t)) {
		memcpy(d, s, (size_t)n * size);
		return;
	}
	for (int64_t i = 0; i < n; i++, d += size, s += size)
		copy_one(t, d, s);
}

void elems_fill(enum mu_dtype t, void *to, int64_t at_to, const void *one, int64_t n)
{
	size_t size = elems_size(t);
	char *d = (char *)to + (size_t)at_to * size;

	if (n <= 0)
		return;
	if (!mu_dtype_size(t)) {
		for (int64_t i = 0; i < n; i++, d += size)
			copy_one(t, d, one);
		return;
	}
	/* Doubles the filled part each time, so that memcpy does the work for every size. */
	memcpy(d, one, size);
	for (int64_t filled = 1; filled < n;) {
		int64_t n_copy = filled < n - filled ? filled : n - filled;
		memcpy(d + (size_t)filled * size, d, (size_t)n_copy * size);
		filled += n_copy;
	}
}

void elems_zero(enum mu_dtype t, void *to, int64_t at_to, int64_t n)
{
	size_t size = elems_size(t);
	char *d = (char *)to + (size_t)at_to * size;

	if (n <= 0)
		return;
	if (t == MU_STRING) {
		for (int64_t i = 0; i < n; i++)
			mu_string_set(&((struct mu_string *)(void *)d)[i], NULL, 0);
	} else if (mu_dtype_size(t)) {
		memset(d, 0, (size_t)n * size);
	}
}

/* ---- views ---- */

void view_of(struct view *v, const struct mu_shape *s)
{
	int64_t stride = 1;

	v->rank = s->rank;
	v->offset = 0;
	for (int i = s->rank; i-- > 0;) {
		v->dim[i] = s->dim[i];
		v->stride[i] = stride;
		stride *= s->dim[i] ? s->dim[i] : 1;
	}
}

/* Drops dimensions of 1 and merges neighbours that are contiguous.  Returns the number of elements
 * of the view. */
static int64_t view_simplify(struct view *to, const struct view *v)
{
	int64_t count = 1;

	to->rank = 0;
	to->offset = v->offset;
	for (int i = 0; i < v->rank; i++) {
		count *= v->dim[i];
		if (v->dim[i] == 1)
			continue;
		int last = to->rank - 1;
		if (last >= 0 && to->stride[last] == v->stride[i] * v->dim[i]) {
			to->dim[last] *= v->dim[i];
			to->stride[last] = v->stride[i];
			continue;
		}
		to->dim[to->rank] = v->dim[i];
		to->stride[to->rank++] = v->stride[i];
	}
	if (!to->rank) {
		to->rank = 1;
		to->dim[0] = to->stride[0] = 1;
	}
	return count;
}

#define STRIDED_LOOP(T)                                                                            \
	do {                                                                                       \
		T *d_ = (T *)to + at_to;                                                           \
		const T *s_ = (const T *)from + at_from;                                           \
		for (int64_t i_ = 0; i_ < n; i_++)                                                 \
			d_[i_ * to_step] = s_[i_ * from_step];                                     \
	} while (0)

/* Copies n elements; offsets and steps are numbers of elements. */
static void copy_strided(enum mu_dtype t, void *to, int64_t at_to, int64_t to_step,
			 const void *from, int64_t at_from, int64_t from_step, int64_t n)
{
	if (to_step == 1 && from_step == 1) {
		elems_copy(t, to, at_to, from, at_from, n);
		return;
	}
	switch (mu_dtype_size(t)) {
	case 1:
		STRIDED_LOOP(uint8_t);
		return;
	case 2:
		STRIDED_LOOP(uint16_t);
		return;
	case 4:
		STRIDED_LOOP(uint32_t);
		return;
	case 8:
		STRIDED_LOOP(uint64_t);
		return;
	default:
		for (int64_t i = 0; i < n; i++)
			elems_copy(t, to, at_to + i * to_step, from, at_from + i * from_step, 1);
	}
}

static void view_walk(enum mu_dtype t, void *to, const void *from, const struct view *original,
		      bool is_read)
{
	struct view v;
	int64_t at[VIEW_MAX_RANK] = {0}, dense = 0;

	if (!view_simplify(&v, original))
		return;
	int inner = v.rank - 1;
	for (int64_t n = v.dim[inner], position = v.offset;; dense += n) {
		if (is_read)
			copy_strided(t, to, dense, 1, from, position, v.stride[inner], n);
		else
			copy_strided(t, to, position, v.stride[inner], from, dense, 1, n);
		int d = inner - 1;
		for (; d >= 0; d--) {
			position += v.stride[d];
			if (++at[d] < v.dim[d])
				break;
			position -= v.stride[d] * v.dim[d];
			at[d] = 0;
		}
		if (d < 0)
			return;
	}
}

/* The dimension whose elements are contiguous in the input, if it is not the last one; -1: none, or
 * too short to be faster. */
static int dense_dim(const struct view *v)
{
	enum { MIN_DIM = 4 };

	if (v->stride[v->rank - 1] == 1 || v->dim[v->rank - 1] < MIN_DIM)
		return -1;
	for (int i = 0; i < v->rank - 1; i++)
		if (v->stride[i] == 1 && v->dim[i] >= MIN_DIM)
			return i;
	return -1;
}

/* Transposes dimension `dense` and the last one; v is simplified and not empty.  4.8 times as fast
 * as view_walk from NHWC to NCHW, 17 times for a matrix of 1024 by 1024. */
static void view_transpose(size_t size, char *to, const char *from, const struct view *v, int dense)
{
	int64_t at[VIEW_MAX_RANK] = {0}, step[VIEW_MAX_RANK], from_at = v->offset, to_at = 0;
	int inner = v->rank - 1, d;

	step[inner] = 1;
	for (int i = inner; i-- > 0;)
		step[i] = step[i + 1] * v->dim[i + 1];
	do {
		transpose_2d(size, to + (size_t)to_at * size, step[dense],
			     from + (size_t)from_at * size, v->stride[inner], v->dim[dense],
			     v->dim[inner]);
		for (d = inner - 1; d >= 0; d--) {
			if (d == dense)
				continue;
			from_at += v->stride[d];
			to_at += step[d];
			if (++at[d] < v->dim[d])
				break;
			from_at -= v->stride[d] * v->dim[d];
			to_at -= step[d] * v->dim[d];
			at[d] = 0;
		}
	} while (d >= 0);
}

void view_read(enum mu_dtype t, void *to, const void *from, const struct view *v)
{
	size_t size = mu_dtype_size(t);
	struct view simple;

	if ((size == 1 || size == 2 || size == 4 || size == 8) && view_simplify(&simple, v)) {
		int dense = dense_dim(&simple);
		if (dense >= 0) {
			view_transpose(size, to, from, &simple, dense);
			return;
		}
	}
	view_walk(t, to, from, v, true);
}

void view_write(enum mu_dtype t, void *to, const struct view *v, const void *from)
{
	view_walk(t, to, from, v, false);
}
