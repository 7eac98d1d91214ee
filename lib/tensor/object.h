/* SPDX-License-Identifier: Apache-2.0 */
/* What an element of a MU_VARIANT tensor points at: an object of a kind that kernels know (a list
 * of tensors, an optional value, a dataset), counted and never changed while it is shared.  Objects
 * stay in their process. */
#ifndef MU_TENSOR_OBJECT_H
#define MU_TENSOR_OBJECT_H

#include "lib/tensor/tensor.h"

struct mu_object;
struct mu_object_type {
	const char *name; /* "list of tensors", … for messages */
	void (*free)(struct mu_object *o);
	/* (optional) what ZerosLike and AddN mean; *out is a new reference */
	int (*zeros)(const struct mu_object *o, struct mu_object **out, struct mu_err *err);
	int (*add)(const struct mu_object *a, const struct mu_object *b, struct mu_object **out,
		   struct mu_err *err);
};
struct mu_object {
	const struct mu_object_type *type;
	_Atomic unsigned refs;
};

void mu_object_init(struct mu_object *o, const struct mu_object_type *type); /* one reference */
struct mu_object *mu_object_ref(struct mu_object *o);                        /* NULL stays NULL */
void mu_object_unref(struct mu_object *o);

#endif
