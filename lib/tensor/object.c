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

/* Objects contain objects, to any depth that a client chooses, so a recursion could overflow the
 * stack.  Objects that become unused in a call of `free` are added to a list.  The outermost call
 * of mu_object_unref frees them. */
void mu_object_unref(struct mu_object *o)
{
	static _Thread_local struct mu_object *unused;
	static _Thread_local bool is_freeing;

	if (!o || atomic_fetch_sub_explicit(&o->refs, 1, memory_order_acq_rel) != 1)
		return;
	o->next_unused = unused;
	unused = o;
	if (is_freeing)
		return;
	is_freeing = true;
	while ((o = unused)) {
		unused = o->next_unused;
		o->type->free(o);
	}
	is_freeing = false;
}
