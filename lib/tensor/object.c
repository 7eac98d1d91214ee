/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/tensor/object.h"

void mu_object_init(struct mu_object *o, const struct mu_object_type *type)
{
	o->type = type;
	atomic_init(&o->refs, 1);
}

struct mu_object *mu_object_ref(struct mu_object *o)
{
	if (o)
		atomic_fetch_add_explicit(&o->refs, 1, memory_order_relaxed);
	return o;
}

void mu_object_unref(struct mu_object *o)
{
	if (o && atomic_fetch_sub_explicit(&o->refs, 1, memory_order_acq_rel) == 1)
		o->type->free(o);
}
