/* SPDX-License-Identifier: Apache-2.0 */
/* Reference-counted objects, the elements of MU_VARIANT tensors: tensor lists, optionals, datasets.
 * A shared object must not be modified.  Objects do not leave their process, except for struct
 * mu_encoded. */
#ifndef MU_LIB_TENSOR_OBJECT_H
#define MU_LIB_TENSOR_OBJECT_H

#include "lib/tensor/tensor.h"

struct mu_object;
struct mu_object_type {
	const char *name; /* "list of tensors", … for messages */
	void (*free)(struct mu_object *o);
	/* (optional) ZerosLike and AddN; *out is a new reference */
	int (*zeros)(const struct mu_object *o, struct mu_object **out, struct mu_err *err);
	int (*add)(const struct mu_object *a, const struct mu_object *b, struct mu_object **out,
		   struct mu_err *err);
};
struct mu_object {
	const struct mu_object_type *type;
	_Atomic unsigned refs;
	struct mu_object *next_unused; /* once refs is 0 */
};

void mu_object_init(struct mu_object *o, const struct mu_object_type *type); /* one reference */
struct mu_object *mu_object_ref(struct mu_object *o);                        /* NULL stays NULL */
void mu_object_unref(struct mu_object *o);

#endif
