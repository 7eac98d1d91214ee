/* SPDX-License-Identifier: Apache-2.0 */
#include "task/kernels/data/dataset.h"

#include <string.h>

#include "task/kernels/engine/elems.h"

static void dataset_free(struct mu_object *o)
{
	struct dataset *d = MU_CONTAINER(o, struct dataset, object);

	bool is_owner = !d->original || d->kind->is_copied;

	if (is_owner && d->shared && d->kind->finish)
		d->kind->finish(d);
	if (is_owner)
		free(d->shared);
	for (unsigned i = 0; i < d->n_in; i++)
		mu_object_unref(&d->in[i]->object);
	free(d->in);
	if (d->original) {
		mu_object_unref(&d->original->object);
		free(d);
		return;
	}
	element_drop(d->params, d->n_params);
	for (unsigned i = 0; i < MAX_FUNCTIONS; i++)
		function_free(d->f[i].f);
	free(d->params);
	mu_buf_fini(&d->attrs);
	free(d);
}

const struct mu_object_type dataset_type = {.name = "dataset", .free = dataset_free};

int64_t dataset_unknown_cardinality(const struct dataset *d, int64_t n)
{
	return UNKNOWN_CARDINALITY;
}

void element_ref(struct mu_tensor *to, const struct mu_tensor *from, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		to[i] = mu_tensor_ref(&from[i]);
}

void element_drop(struct mu_tensor *t, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		mu_tensor_unref(&t[i]);
}

int element_row(const struct mu_tensor *t, unsigned n, int64_t row, struct mu_tensor *out,
		struct mu_err *err)
{
	for (unsigned i = 0; i < n; i++) {
		struct mu_shape s;
		int rc = mu_shape_set(&s, t[i].shape.rank - 1, t[i].shape.dim + 1, err);
		if (rc || (rc = mu_tensor_new(&out[i], t[i].dtype, &s, err))) {
			element_drop(out, i);
			return rc;
		}
		elems_copy(t[i].dtype, out[i].data, 0, t[i].data, row * s.count, s.count);
	}
	return 0;
}

int64_t dataset_number(const struct dataset *d, unsigned k)
{
	const struct mu_tensor *t = &d->params[d->n_params - d->kind->n_scalars + k];

	return t->dtype == MU_BOOL ? MU_DATA(bool, t)[0] : mu_tensor_int(t, 0);
}

struct dataset *dataset_new(const struct dataset_kind *k, const char *op)
{
	struct dataset *d = MU_NEW(struct dataset);

	mu_object_init(&d->object, &dataset_type);
	d->kind = k;
	d->op = op;
	d->cardinality = UNKNOWN_CARDINALITY;
	d->batch_size = -1;
	return d;
}

/* ---- copies ---- */

enum { MAX_COPIES = 10000 }; /* further uses share a dataset */

static int copy_uses(struct dataset *d, unsigned *n, struct dataset **out, struct mu_err *err)
{
	struct dataset *copy;
	int rc = 0;

	if (!d->is_copied || *n == MAX_COPIES) {
		*out = MU_CONTAINER(mu_object_ref(&d->object), struct dataset, object);
		return 0;
	}
	++*n;
	copy = MU_NEW(struct dataset);
	*copy = *d;
	mu_object_init(&copy->object, &dataset_type);
	copy->original = MU_CONTAINER(mu_object_ref(&d->object), struct dataset, object);
	copy->in = MU_NEW_ARRAY(struct dataset *, d->n_in + 1);
	copy->n_in = 0;
	if (d->kind->is_copied)
		copy->shared = mu_xcalloc(1, d->kind->shared_size);
	for (unsigned i = 0; i < d->n_in && !rc; i++) {
		rc = copy_uses(d->in[i], n, &copy->in[i], err);
		copy->n_in += !rc;
	}
	if (!rc && d->kind->is_copied)
		rc = d->kind->check(copy, err);
	if (rc)
		mu_object_unref(&copy->object);
	else
		*out = copy;
	return rc;
}

int dataset_copy(struct dataset *d, struct dataset **out, struct mu_err *err)
{
	unsigned n = 0;

	return copy_uses(d, &n, out, err);
}

/* ---- iterators ---- */

int dataset_iterator_open(const struct dataset *d, struct caller *caller,
			  struct dataset_iterator **out, struct mu_err *err)
{
	struct dataset_iterator *it = MU_NEW(struct dataset_iterator);
	int rc;

	it->d = d;
	it->caller = caller;
	mu_object_ref((struct mu_object *)&d->object);
	if (d->kind->state_size)
		it->state = mu_xcalloc(1, d->kind->state_size);
	if (d->kind->open && (rc = d->kind->open(it, err))) {
		dataset_iterator_close(it);
		return rc;
	}
	*out = it;
	return 0;
}

void dataset_iterator_close(struct dataset_iterator *it)
{
	if (!it)
		return;
	if (it->d->kind->close)
		it->d->kind->close(it);
	dataset_iterator_close(it->input);
	mu_object_unref((struct mu_object *)&it->d->object);
	free(it->state);
	free(it);
}

void dataset_iterator_close_input(struct dataset_iterator *it)
{
	dataset_iterator_close(it->input);
	it->input = NULL;
}

int dataset_iterator_open_input(struct dataset_iterator *it, struct mu_err *err)
{
	dataset_iterator_close_input(it);
	return dataset_iterator_open(it->d->in[0], it->caller, &it->input, err);
}

int dataset_apply(const struct dataset_iterator *it, unsigned which, struct mu_tensor *element,
		  unsigned n, struct mu_tensor *out, unsigned n_out, struct mu_err *err)
{
	const struct dataset *d = it->d;
	unsigned n_captured = d->f[which].n;
	struct mu_tensor *in = MU_NEW_ARRAY(struct mu_tensor, n + n_captured + 1);

	if (n) /* `element` of a generator's init_func is NULL */
		memcpy(in, element, n * sizeof *in);
	if (n_captured)
		memcpy(in + n, d->params + d->f[which].from, n_captured * sizeof *in);
	int rc = function_call(d->f[which].f, it->caller, in, n + n_captured, out, n_out, err);
	element_drop(element, n);
	free(in);
	return rc;
}

int dataset_next_mapped(struct dataset_iterator *it, unsigned which, struct mu_tensor *out,
			unsigned n_out, struct mu_tensor *element, struct mu_err *err)
{
	unsigned n = it->d->in[0]->n_out;
	MU_AUTO_FREE struct mu_tensor *in = MU_NEW_ARRAY(struct mu_tensor, n + 1);
	int rc = dataset_iterator_next(it->input, in, err);

	if (rc <= 0)
		return rc;
	if (element)
		element_ref(element, in, n);
	rc = dataset_apply(it, which, in, n, out, n_out, err);
	if (rc && element)
		element_drop(element, n);
	return rc ? rc : 1;
}

int dataset_out_of_range(const struct dataset *d, struct mu_err *err)
{
	err->code = MU_INTERNAL;
	return mu_wrap(
	    err,
	    "Iterator \"%s\" returned `OutOfRange`. This indicates an implementation error "
	    "as `OutOfRange` errors are not expected to be returned here. Original message",
	    d->op);
}

int dataset_function_ended(struct dataset_iterator *it, struct mu_err *err)
{
	if (it->d->preserve_cardinality) {
		err->code = MU_INVALID_ARGUMENT;
		return mu_wrap(err, "Function invocation produced OutOfRangeError");
	}
	dataset_iterator_close_input(it);
	return 0;
}

struct dataset *dataset_in(const struct mu_tensor *t)
{
	struct mu_object *o =
	    t->dtype == MU_VARIANT && t->shape.count == 1 ? *MU_DATA(struct mu_object *, t) : NULL;

	return o && o->type == &dataset_type ? MU_CONTAINER(o, struct dataset, object) : NULL;
}
