/* SPDX-License-Identifier: Apache-2.0 */
#include "task/kernels/data/dataset.h"

#include <string.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/variant.h"

static void dataset_free(struct mu_object *o)
{
	struct dataset *d = MU_CONTAINER(o, struct dataset, object);

	if (d->shared && d->kind->finish)
		d->kind->finish(d);
	for (unsigned i = 0; i < d->n_in; i++)
		mu_object_unref(&d->in[i]->object);
	element_drop(d->params, d->n_params);
	for (unsigned i = 0; i < MAX_FUNCTIONS; i++)
		function_free(d->f[i].f);
	free(d->in);
	free(d->params);
	free(d->shared);
	free(d);
}

const struct mu_object_type dataset_type = {.name = "dataset", .free = dataset_free};

static const struct dataset_kind *kind_find(const char *op)
{
	static const struct dataset_kind *const tables[] = {
	    source_kinds, pass_kinds, batch_kinds, function_kinds, shuffle_kinds, file_kinds,
	    group_kinds,  mix_kinds,  csv_kinds,   parse_kinds,    sparse_kinds,  generator_kinds};

	for (unsigned t = 0; t < MU_COUNT(tables); t++)
		for (const struct dataset_kind *k = tables[t]; k->op; k++)
			if (strcmp(k->op, op) == 0)
				return k;
	return NULL;
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

/* Datasets among the inputs are drawn from, the rest are parameters. */
static int take_inputs(struct kernel_call *c, struct dataset *d, struct mu_err *err)
{
	const struct dataset_kind *k = d->kind;
	unsigned want = k->n_in == ANY_NUMBER ? c->n_in : k->n_in;
	unsigned n = c->n_in > k->n_behind ? c->n_in - k->n_behind : 0;

	d->in = MU_NEW_ARRAY(struct dataset *, c->n_in + 1);
	d->params = MU_NEW_ARRAY(struct mu_tensor, c->n_in + 1);
	for (unsigned i = 0; i < n; i++) {
		struct mu_object *o;
		if (d->n_in < want) {
			int rc = variant_in(c, i, &dataset_type, &o, err);
			if (rc)
				return rc;
			mu_object_ref(o);
			d->in[d->n_in] = MU_CONTAINER(o, struct dataset, object);
			if (d->in[d->n_in]->depth >= d->depth)
				d->depth = d->in[d->n_in]->depth + 1;
			d->n_in++;
		} else {
			d->params[d->n_params++] = mu_tensor_ref(kernel_in(c, i));
		}
	}
	if (d->depth > MAX_CHAIN)
		return mu_fail(err, MU_INVALID_ARGUMENT, "over %d datasets in a chain", MAX_CHAIN);
	if (d->n_in < want || d->n_params < k->n_scalars)
		return mu_fail(err, MU_INVALID_ARGUMENT, "%s lacks inputs", k->op);
	for (unsigned s = d->n_params - k->n_scalars; s < d->n_params; s++) {
		const struct mu_tensor *t = &d->params[s];
		if (t->shape.count != 1 ||
		    (t->dtype != MU_INT64 && t->dtype != MU_INT32 && t->dtype != MU_BOOL))
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "%s: parameter %u must be one number, not %s of shape %s",
				       k->op, s, mu_dtype_name(t->dtype), mu_shape_str(&t->shape));
	}
	return 0;
}

/* The functions, and which of the parameters each has captured. */
static int take_functions(struct kernel_call *c, struct dataset *d, struct mu_err *err)
{
	unsigned captured = 0, at;
	int rc;

	for (unsigned i = 0; i < MAX_FUNCTIONS && d->kind->function[i].name; i++) {
		const struct mu_attr *t = mu_node_attr(c->node, d->kind->function[i].captured);
		d->f[i].n = t ? t->n : 0;
		captured += d->f[i].n;
	}
	if (captured > d->n_params - d->kind->n_scalars)
		return mu_fail(err, MU_INVALID_ARGUMENT, "%s lacks what its functions captured",
			       d->kind->op);
	at = d->n_first = d->n_params - d->kind->n_scalars - captured;
	for (unsigned i = 0; i < MAX_FUNCTIONS && d->kind->function[i].name; i++) {
		const char *name = d->kind->function[i].name;
		const struct mu_attr *f = mu_node_attr(c->node, name);
		if (!f || f->kind != MU_ATTR_FUNC)
			return mu_fail(err, MU_INVALID_ARGUMENT, "%s has no function %s",
				       d->kind->op, name);
		d->f[i].from = at;
		at += d->f[i].n;
		if ((rc = function_new(c->runtime, c->step, f->func, &d->f[i].f, err)))
			return rc;
	}
	return 0;
}

/* Its switch, whatever its op calls it, and what it means where the node does not have it. */
static bool flag_of(const struct mu_node *n)
{
	return args_attr_bool(n, "reshuffle_each_iteration",
			      args_attr_bool(n, "rerandomize_each_iteration",
					     args_attr_bool(n, "stop_on_empty_dataset",
							    mu_node_attr(n, "N") == NULL &&
								strcmp(n->op, "RandomDatasetV2"))));
}

static int dataset_fill(struct kernel_call *c, struct dataset *d, struct mu_err *err)
{
	const struct mu_attr *types = mu_node_attr(c->node, "output_types");
	int rc = take_inputs(c, d, err);

	if (rc)
		return rc;
	if (!types)
		types = mu_node_attr(c->node, "Toutput_types");
	d->n_out = types ? types->n : 1; /* records and lines have no such attribute */
	if (d->n_out > MAX_COMPONENTS)
		return mu_fail(err, MU_INVALID_ARGUMENT, "elements of over %d components",
			       MAX_COMPONENTS);
	if (d->n_in == 1 && !d->kind->function[0].name && !d->kind->reshapes &&
	    d->in[0]->n_out != d->n_out)
		return mu_fail(err, MU_INVALID_ARGUMENT, "%s of %u components over one of %u",
			       d->kind->op, d->n_out, d->in[0]->n_out);
	d->flag = flag_of(c->node);
	d->keeps_count = args_attr_bool(c->node, "preserve_cardinality", false);
	if ((rc = take_functions(c, d, err)))
		return rc;
	if (d->kind->shared_size)
		d->shared = mu_xcalloc(1, d->kind->shared_size);
	if (d->kind->read)
		d->kind->read(d, c->node);
	return d->kind->check ? d->kind->check(d, err) : 0;
}

static struct dataset *new_of(const struct dataset_kind *k)
{
	struct dataset *d = MU_NEW(struct dataset);

	mu_object_init(&d->object, &dataset_type);
	d->kind = k;
	return d;
}

struct dataset *dataset_new(const struct dataset_kind *k, unsigned n_out)
{
	struct dataset *d = new_of(k);

	d->n_out = n_out;
	d->shared = mu_xcalloc(1, k->shared_size);
	return d;
}

int dataset_make(struct kernel_call *c, struct mu_err *err)
{
	struct dataset *d = new_of(kind_find(c->node->op));
	int rc = dataset_fill(c, d, err);

	if (!rc)
		return variant_out(c, 0, &d->object, err);
	mu_object_unref(&d->object);
	return rc;
}

/* ---- cursors ---- */

int cursor_open(const struct dataset *d, struct caller *who, struct cursor **out,
		struct mu_err *err)
{
	struct cursor *c = MU_NEW(struct cursor);
	int rc;

	c->d = d;
	c->who = who;
	mu_object_ref((struct mu_object *)&d->object);
	if (d->kind->cursor_size)
		c->own = mu_xcalloc(1, d->kind->cursor_size);
	if (d->kind->open && (rc = d->kind->open(c, err))) {
		cursor_close(c);
		return rc;
	}
	*out = c;
	return 0;
}

void cursor_close(struct cursor *c)
{
	if (!c)
		return;
	if (c->d->kind->close)
		c->d->kind->close(c);
	cursor_close(c->up);
	mu_object_unref((struct mu_object *)&c->d->object);
	free(c->own);
	free(c);
}

int cursor_open_up(struct cursor *c, struct mu_err *err)
{
	cursor_close(c->up);
	c->up = NULL;
	return cursor_open(c->d->in[0], c->who, &c->up, err);
}

int dataset_apply(const struct cursor *c, unsigned which, struct mu_tensor *element, unsigned n,
		  struct mu_tensor *out, unsigned n_out, struct mu_err *err)
{
	const struct dataset *d = c->d;
	unsigned more = d->f[which].n;
	struct mu_tensor *in = MU_NEW_ARRAY(struct mu_tensor, n + more + 1);

	if (n) /* a generator's function may be given nothing, from nowhere */
		memcpy(in, element, n * sizeof *in);
	if (more)
		memcpy(in + n, d->params + d->f[which].from, more * sizeof *in);
	int rc = function_call(d->f[which].f, c->who, in, n + more, out, n_out, err);
	element_drop(element, n);
	free(in);
	return rc;
}

int dataset_draw(struct cursor *c, unsigned which, struct mu_tensor *out, unsigned n_out,
		 struct mu_tensor *kept, struct mu_err *err)
{
	struct mu_tensor in[MAX_COMPONENTS] = {0};
	unsigned n = c->d->in[0]->n_out;
	int rc = cursor_next(c->up, in, err);

	if (rc <= 0)
		return rc;
	for (unsigned i = 0; kept && i < n; i++)
		kept[i] = mu_tensor_ref(&in[i]);
	rc = dataset_apply(c, which, in, n, out, n_out, err);
	if (rc && kept)
		element_drop(kept, n);
	return rc ? rc : 1;
}

struct dataset *dataset_in(const struct mu_tensor *t)
{
	struct mu_object *o =
	    t->dtype == MU_VARIANT && t->shape.count == 1 ? *MU_DATA(struct mu_object *, t) : NULL;

	return o && o->type == &dataset_type ? MU_CONTAINER(o, struct dataset, object) : NULL;
}

int64_t dataset_count(const struct dataset *d)
{
	int64_t n = d->n_in ? dataset_count(d->in[0]) : UNKNOWN_MANY;

	if (d->kind->count)
		return d->kind->count(d, n);
	return d->kind->function[0].name ? UNKNOWN_MANY : n;
}
