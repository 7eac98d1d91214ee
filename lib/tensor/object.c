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

/* Objects hold objects, nested as deep as a client likes: what `free` releases waits in a list
 * until it returns, because a recursion would need too much stack. */
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
