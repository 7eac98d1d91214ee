/* SPDX-License-Identifier: Apache-2.0 */
#include "task/kernels/data/element_list.h"

#include <string.h>

#include "task/kernels/data/serializer.h"
#include "task/kernels/engine/variant.h"

struct mu_tensor *element_list_next(struct element_list *l, unsigned n_out)
{
	if (l->n == l->cap) {
		l->cap = l->cap ? 2 * l->cap : 8;
		l->t = mu_xrealloc(l->t, (size_t)l->cap * n_out * sizeof *l->t);
	}
	struct mu_tensor *t = l->t + l->n * n_out;
	memset(t, 0, n_out * sizeof *t);
	return t;
}

void element_list_drop(struct element_list *l, int64_t n, unsigned n_out)
{
	if (!n) /* l->t may be NULL, which memmove does not accept */
		return;
	for (int64_t i = 0; i < n * n_out; i++)
		mu_tensor_unref(&l->t[i]);
	l->n -= n;
	memmove(l->t, l->t + n * n_out, (size_t)(l->n * n_out) * sizeof *l->t);
}

void element_list_fini(struct element_list *l, unsigned n_out)
{
	element_list_drop(l, l->n, n_out);
	free(l->t);
	*l = (struct element_list){0};
}

/* ---- the dataset of a list ---- */

static void finish_list(struct dataset *d)
{
	element_list_fini(d->shared, d->n_out);
}

static int list_next(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err)
{
	const struct element_list *l = it->d->shared;
	int64_t *at = it->state;

	if (*at >= l->n)
		return 0;
	element_ref(out, &l->t[*at * it->d->n_out], it->d->n_out);
	++*at;
	return 1;
}

static int list_serialize(struct dataset_iterator *it, struct serializer *ser, struct mu_err *err)
{
	return serialize_number(ser, it->state, 0, INT64_MAX, err);
}

static const struct dataset_kind list_kind = {.shared_size = sizeof(struct element_list),
					      .state_size = sizeof(int64_t),
					      .finish = finish_list,
					      .next = list_next,
					      .serialize = list_serialize};

struct dataset *element_list_dataset_new(struct element_list *l, unsigned n_out)
{
	struct dataset *d = dataset_new(&list_kind, "WindowOp");

	d->n_out = n_out;
	d->shared = mu_xcalloc(1, sizeof *l);
	*(struct element_list *)d->shared = *l;
	d->cardinality = l->n;
	*l = (struct element_list){0};
	return d;
}

int element_list_to_dataset(struct element_list *l, unsigned n_out, struct mu_tensor *out,
			    struct mu_err *err)
{
	return variant_tensor(out, &element_list_dataset_new(l, n_out)->object, err);
}

bool dataset_is_list(const struct mu_object *o)
{
	return o->type == &dataset_type &&
	       MU_CONTAINER(o, const struct dataset, object)->kind == &list_kind;
}
