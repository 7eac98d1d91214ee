/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the inputs of kernels, and access to small inputs and attributes. */
#ifndef MU_TASK_KERNELS_ENGINE_ARGS_H
#define MU_TASK_KERNELS_ENGINE_ARGS_H

#include "task/runtime/kernel.h"

int args_type(const struct kernel_call *c, unsigned i, enum mu_dtype want, struct mu_err *err);
int args_rank(const struct kernel_call *c, unsigned i, int rank, struct mu_err *err);
int args_same_shape(const struct kernel_call *c, unsigned i, unsigned j, struct mu_err *err);
/* Checks that input i is int32 or int64, of any shape. */
int args_is_int(const struct kernel_call *c, unsigned i, struct mu_err *err);
/* Reads one int32 or int64 element. */
int args_int(const struct kernel_call *c, unsigned i, int64_t *out, struct mu_err *err);
/* Reads a scalar or vector of at most `max` elements of type int16, int32 or int64. */
int args_ints(const struct kernel_call *c, unsigned i, int64_t *out, int max, int *n,
	      struct mu_err *err);
/* Reads a vector of dimensions as a shape. */
int args_shape(const struct kernel_call *c, unsigned i, struct mu_shape *out, struct mu_err *err);
/* Copies one string element to *out, NUL-terminated; the caller frees it. */
int args_string(const struct kernel_call *c, unsigned i, char **out, struct mu_err *err);
/* Appends the numbers with the separator between them. */
void args_put_numbers(struct mu_buf *b, const int64_t *x, int n, const char *separator);
/* Appends the coordinates of element `at` in the first `rank` dimensions of the shape, as "[1,2]";
 * nothing for a scalar. */
void args_put_index(struct mu_buf *b, const struct mu_shape *s, int rank, int64_t at);
/* Fails with the error that row i of the indices, `depth` numbers, is outside of the shape, which
 * the message calls shape_name.  The message also names the node, unless it is NULL. */
int args_fail_position(const struct mu_tensor *indices, int64_t i, int depth,
		       const char *shape_name, const struct mu_shape *shape,
		       const struct mu_node *node, struct mu_err *err);
/* Sets *out to the axis; negative axes count from the end. */
int args_axis(int64_t axis, int rank, int *out, struct mu_err *err);
/* Fails with the error that the op has no kernel for type t. */
int args_no_kernel(const struct kernel_call *c, enum mu_dtype t, struct mu_err *err);

/* The value of an attribute, or default_value if the node does not have it. */
int64_t args_attr_int(const struct mu_node *n, const char *name, int64_t default_value);
float args_attr_float(const struct mu_node *n, const char *name, float default_value);
bool args_attr_bool(const struct mu_node *n, const char *name, bool default_value);
enum mu_dtype args_attr_type(const struct mu_node *n, const char *name,
			     enum mu_dtype default_value);
const char *args_attr_string(const struct mu_node *n, const char *name, const char *default_value);
/* Reads a list(int) attribute of at most max elements.  Returns its length, 0 if there is none, or
 * -1 if it is longer. */
int args_attr_ints(const struct mu_node *n, const char *name, int64_t *out, int max);

#endif
