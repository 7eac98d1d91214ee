/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of tensor elements of any type, strings and handles included. */
#ifndef MU_TASK_KERNELS_ENGINE_ELEMS_H
#define MU_TASK_KERNELS_ENGINE_ELEMS_H

#include "lib/tensor/tensor.h"

size_t elems_size(enum mu_dtype t); /* bytes of one element in memory */
/* to[at_to …] = from[at_from …], n elements; strings are copied deep. */
void elems_copy(enum mu_dtype t, void *to, int64_t at_to, const void *from, int64_t at_from,
		int64_t n);
/* Fills with n copies of one element. */
void elems_fill(enum mu_dtype t, void *to, int64_t at_to, const void *one, int64_t n);
void elems_zero(enum mu_dtype t, void *to, int64_t at_to, int64_t n);

/* The bytes of string i. */
static inline struct mu_span elems_span(const struct mu_tensor *t, int64_t i)
{
	const struct mu_string *s = &MU_DATA(struct mu_string, t)[i];

	return (struct mu_span){s->data ? s->data : "", s->len};
}
/* The bytes of element i, of any type but handles and variants; of a string its characters. */
static inline struct mu_span elems_bytes(const struct mu_tensor *t, int64_t i)
{
	size_t size = mu_dtype_size(t->dtype);

	if (t->dtype == MU_STRING)
		return elems_span(t, i);
	return (struct mu_span){(const char *)t->data + (size_t)i * size, size};
}

/* A strided view of a tensor's elements, as in NumPy, for transpose, slices, tiles, broadcasts,
 * reversals, concatenation and padding.  Strides and offset count elements. */
enum { VIEW_MAX_RANK = 2 * MU_MAX_RANK };
struct view {
	int rank;
	int64_t offset;
	int64_t dim[VIEW_MAX_RANK], stride[VIEW_MAX_RANK];
};
void view_of(struct view *v, const struct mu_shape *s); /* the dense view of a shape */
/* Reads the elements of view v of `from` to dense `to`, in the order of v. */
void view_read(enum mu_dtype t, void *to, const void *from, const struct view *v);
/* Writes dense `from` to the elements of view v of `to`, which must be distinct. */
void view_write(enum mu_dtype t, void *to, const struct view *v, const void *from);

#endif
