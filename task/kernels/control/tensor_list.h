/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of tensors, as values: an op takes a list and returns one.
 *
 * A list with one reference is changed in place, so a loop that pushes takes linear time. A shared
 * list is copied, its tensors by reference. An element that was never set reads as zeros. */
#ifndef MU_TASK_KERNELS_CONTROL_TENSOR_LIST_H
#define MU_TASK_KERNELS_CONTROL_TENSOR_LIST_H

#include "task/kernels/engine/variant.h"

enum { MAX_LIST = 1 << 22 };

struct list {
	struct mu_object object;
	enum mu_dtype type;
	struct mu_pshape shape; /* of an element */
	int64_t max_elements;   /* -1: unlimited */
	int64_t n, cap;
	struct mu_tensor *items;
};

struct list *list_new(enum mu_dtype type, const struct mu_pshape *shape, int64_t n);
void list_set_length(struct list *l, int64_t n); /* new elements are not set */

/* Returns input 0's list for writing: the list itself if nothing else refers to it, else a copy.
 * *out is a new reference. */
int list_get_mutable(struct kernel_call *c, struct list **out, struct mu_err *err);
/* Returns input 0's list, which must have the node's element type; borrowed. */
int list_get(const struct kernel_call *c, const struct list **out, struct mu_err *err);
/* Returns the list in element `at` of input i, of the node's element type; borrowed. */
int list_get_at(const struct kernel_call *c, unsigned i, int64_t at, const struct list **out,
		struct mu_err *err);
struct list *list_copy(const struct list *from);
/* Sets output 0 to the list, or frees the list if rc is not 0; returns rc. */
int list_output(struct kernel_call *c, struct list *l, int rc, struct mu_err *err);

/* Reads input i as an element shape; a scalar -1 means an unknown rank. */
int list_element_shape(const struct kernel_call *c, unsigned i, struct mu_pshape *out,
		       struct mu_err *err);
/* Merges b into *a; fails if the shapes are incompatible. */
int list_merge_shape(struct mu_pshape *a, const struct mu_pshape *b, struct mu_err *err);
struct mu_pshape list_pshape(const struct mu_shape *s);
/* Computes the shape of the elements.  Merges the shape in input i, the list's shape, and the shape
 * of the first set element at `indices` (NULL: of all). */
int list_whole_shape(const struct kernel_call *c, unsigned i, const struct list *l,
		     const struct mu_tensor *indices, struct mu_shape *out, struct mu_err *err);
int list_check_item(const struct list *l, const struct mu_tensor *t, struct mu_err *err);

#endif
