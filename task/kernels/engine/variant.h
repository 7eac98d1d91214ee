/* SPDX-License-Identifier: Apache-2.0 */
/* Variant tensors of one object, as inputs and outputs of kernels. */
#ifndef MU_TASK_KERNELS_ENGINE_VARIANT_H
#define MU_TASK_KERNELS_ENGINE_VARIANT_H

#include "lib/tensor/object.h"
#include "task/runtime/kernel.h"

/* The object of input i, of this type; borrowed. */
int variant_in(const struct kernel_call *c, unsigned i, const struct mu_object_type *type,
	       struct mu_object **out, struct mu_err *err);
/* Sets output i to a scalar that holds the object; takes the reference, also on failure. */
int variant_out(struct kernel_call *c, unsigned i, struct mu_object *o, struct mu_err *err);
int variant_tensor(struct mu_tensor *out, struct mu_object *o, struct mu_err *err); /* the same */
/* variant_box: an object that holds a tensor.  variant_unbox: the tensor in such an object; NULL
 * for other objects. */
struct mu_object *variant_box(const struct mu_tensor *t);
const struct mu_tensor *variant_unbox(const struct mu_object *o);
/* A ragged tensor as an object: a boxed vector of n boxed tensors, which are the splits of all
 * levels and then the values. */
int variant_box_ragged(const struct mu_tensor *parts, unsigned n, struct mu_object **out,
		       struct mu_err *err);
/* True if input i is the only reference to its object, which may then be changed and returned. */
bool variant_is_sole(const struct kernel_call *c, unsigned i);

/* Counts n objects or parts of them that ZerosLike or AddN copies; too many are an error. */
int variant_count(int64_t n, struct mu_err *err);
/* ZerosLike of a variant tensor and AddN of two, element by element. */
int variant_zeros(struct mu_tensor *out, const struct mu_tensor *t, struct mu_err *err);
int variant_add(struct mu_tensor *out, const struct mu_tensor *a, const struct mu_tensor *b,
		struct mu_err *err);
/* Output 0 = AddN of all inputs. */
int variant_add_all(struct kernel_call *c, struct mu_err *err);

#endif
