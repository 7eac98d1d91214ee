/* SPDX-License-Identifier: Apache-2.0 */
/* Barriers assemble elements by key, one component at a time. A take returns complete elements in
 * the order in which their keys were first inserted.
 *
 * Complete elements are in a priority queue with these components: the number of the insertion that
 * began the element, its key, and its values. The queue's lock also guards the barrier. */
#include "task/kernels/control/queue.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/state/handles.h"

enum { NUMBER, KEY, VALUES }; /* the queue's components */

struct barrier {
	struct resource base;
	struct queue *ready;
	struct mu_map incomplete; /* key -> element: ready->spec.n tensors, some unset */
	int64_t number;           /* of the next insertion with new keys */
	bool closed, cancelled;
};

static unsigned components(const struct barrier *b)
{
	return b->ready->spec.n - VALUES;
}

static void free_element(const struct barrier *b, struct mu_tensor *element)
{
	for (unsigned i = 0; i < b->ready->spec.n; i++)
		mu_tensor_unref(&element[i]);
	free(element);
}

static void drop_incomplete(struct barrier *b)
{
	mu_map_each (&b->incomplete, s)
		free_element(b, s->value);
	mu_map_fini(&b->incomplete);
	mu_map_init(&b->incomplete);
}

static void barrier_free(struct resource *r)
{
	struct barrier *b = MU_CONTAINER(r, struct barrier, base);

	drop_incomplete(b);
	mu_map_fini(&b->incomplete);
	resource_unref(&b->ready->base);
	free(b);
}

static size_t barrier_bytes(struct resource *r)
{
	struct barrier *b = MU_CONTAINER(r, struct barrier, base);
	size_t total = queue_type.bytes(&b->ready->base);

	pthread_mutex_lock(&b->ready->waiters.lock);
	mu_map_each (&b->incomplete, s)
		for (unsigned i = 0; i < b->ready->spec.n; i++)
			total += mu_tensor_bytes(&((struct mu_tensor *)s->value)[i]);
	pthread_mutex_unlock(&b->ready->waiters.lock);
	return total;
}

static void barrier_close(struct resource *r)
{
	queue_type.close(&MU_CONTAINER(r, struct barrier, base)->ready->base);
}

static const struct resource_type barrier_type = {
    .name = "barrier", .free = barrier_free, .bytes = barrier_bytes, .close = barrier_close};

/* ---- creation ---- */

static int barrier_read_spec(const struct mu_node *n, struct queue_spec *s, struct mu_err *err)
{
	const struct mu_attr *types = mu_node_attr(n, "component_types");
	const struct mu_attr *shapes = mu_node_attr(n, "shapes");

	if (!types || types->kind != MU_ATTR_LIST + MU_ATTR_TYPE || types->n < 1)
		return mu_invalid(err, "a barrier has at least one component");
	if (!shapes || shapes->kind != MU_ATTR_LIST + MU_ATTR_SHAPE || shapes->n != types->n)
		return mu_invalid(err, "All of the component shapes must be specified");
	if (args_attr_int(n, "capacity", -1) != -1)
		return mu_invalid(err, "Barrier only accepts capacity=-1.  Feed the inputs to your "
				       "Barrier through a queue to enforce a limited capacity.");
	*s = (struct queue_spec){
	    .kind = "Barrier", .has_shapes = true, .capacity = -1, .by_priority = true};
	queue_spec_init(s, types->n + VALUES);
	s->type[NUMBER] = MU_INT64;
	s->type[KEY] = MU_STRING;
	for (unsigned i = 0; i < types->n; i++) {
		s->type[VALUES + i] = types->types[i];
		s->shape[VALUES + i] = shapes->shapes[i];
		/* TensorFlow reads an unknown rank as the shape of a scalar here. */
		if (s->shape[VALUES + i].rank < 0)
			s->shape[VALUES + i].rank = 0;
		for (int d = 0; d < s->shape[VALUES + i].rank; d++)
			if (s->shape[VALUES + i].dim[d] < 0)
				return mu_invalid(err,
						  "component %u must have a known shape, not %s", i,
						  mu_pshape_str(&s->shape[VALUES + i]));
	}
	return 0;
}

struct barrier_args {
	struct queue_spec spec;
	const char *name;
};

static struct resource *barrier_create(void *arg, struct mu_err *err)
{
	const struct barrier_args *w = arg;
	struct barrier *b = MU_NEW(struct barrier);

	resource_init(&b->base, &barrier_type);
	b->ready = queue_new(&w->spec);
	b->ready->base.name = mu_xstrdup(w->name); /* for its error messages */
	mu_map_init(&b->incomplete);
	b->number = INT64_MIN;
	return &b->base;
}

static int barrier_make(struct kernel_call *c, struct mu_err *err)
{
	struct barrier_args w = {.name = resource_name(c)};
	struct resource *r;
	int rc = barrier_read_spec(c->node, &w.spec, err);

	if (!rc)
		rc = handle_make(c, &barrier_type, barrier_create, &w, &r, err);
	if (!rc) {
		const struct barrier *b = MU_CONTAINER(r, struct barrier, base);

		rc = queue_check_components_equal(&b->ready->spec, &w.spec, VALUES, "barrier",
						  r->name, err);
		resource_unref(r);
	}
	queue_spec_fini(&w.spec);
	return rc;
}

static int barrier_find(const struct kernel_call *c, struct barrier **out, struct mu_err *err)
{
	struct resource *r;

	MU_RETURN_IF_ERROR(handle_find(c, 0, &barrier_type, &r, err));
	*out = MU_CONTAINER(r, struct barrier, base);
	return 0;
}

/* ---- insert ---- */

struct barrier_insert {
	struct barrier *b;
	struct kernel_call *c;
	unsigned component; /* of the queue */
	bool element_added; /* for a new key */
	struct mu_err err;
};

static int check_values(const struct kernel_call *c, const struct barrier *b, unsigned component,
			struct mu_err *err)
{
	const struct mu_tensor *keys = kernel_in(c, 1), *values = kernel_in(c, 2);
	const struct mu_pshape *want = &b->ready->spec.shape[component];
	struct mu_shape element;

	MU_RETURN_IF_ERROR(args_type(c, 2, b->ready->spec.type[component], err));
	if (keys->shape.count && !values->shape.count)
		return mu_invalid(
		    err, "Tensors with no elements are not supported %s: received shape %s",
		    b->base.name, mu_shape_str(&values->shape));
	if (values->shape.rank < 1 || values->shape.dim[0] != keys->shape.count)
		return mu_invalid(err, "values %s are not one for each of %lld keys",
				  mu_shape_str(&values->shape), (long long)keys->shape.count);
	MU_RETURN_IF_ERROR(
	    mu_shape_set(&element, values->shape.rank - 1, values->shape.dim + 1, err));
	if (keys->shape.count && !mu_shape_matches(&element, want))
		return mu_invalid(err, "Shape mismatch in tuple component %u. Expected %s, got %s",
				  component, mu_pshape_str(want), mu_shape_str(&element));
	return 0;
}

/* Finds the incomplete element of the key, or creates one. */
static int find_or_add_element(struct barrier_insert *in, struct mu_span key,
			       struct mu_tensor **out, struct mu_err *err)
{
	struct barrier *b = in->b;
	int rc;

	if ((*out = mu_map_get_n(&b->incomplete, key.data, key.len)))
		return 0;
	if (b->closed)
		return mu_fail(err, MU_CANCELLED,
			       "Barrier %s is closed, but attempted to insert a brand new key: "
			       "%.*s.",
			       b->base.name, (int)(key.len < 64 ? key.len : 64), key.data);
	struct mu_tensor *element = MU_NEW_ARRAY(struct mu_tensor, b->ready->spec.n);
	if ((rc = mu_tensor_scalar(&element[NUMBER], MU_INT64, &b->number, err)) ||
	    (rc = mu_tensor_string(&element[KEY], key.data, key.len, err))) {
		free_element(b, element);
		return rc;
	}
	in->element_added = true;
	mu_map_put_n(&b->incomplete, key.data, key.len, element);
	*out = element;
	return 0;
}

/* Inserts value i for its key. An element that is complete moves to the queue. */
static int insert_one(struct barrier_insert *in, int64_t i, struct mu_err *err)
{
	const struct mu_tensor *values = kernel_in(in->c, 2);
	struct mu_span key = elems_span(kernel_in(in->c, 1), i);
	struct barrier *b = in->b;
	struct mu_tensor *element;
	struct mu_shape shape;

	MU_RETURN_IF_ERROR(find_or_add_element(in, key, &element, err));
	struct mu_tensor *value = &element[in->component];
	if (mu_tensor_is_set(value))
		return mu_invalid(err,
				  "Key %.*s already has a value for component %u in barrier %s",
				  (int)(key.len < 64 ? key.len : 64), key.data,
				  in->component - VALUES, b->base.name);
	MU_RETURN_IF_ERROR(
	    mu_shape_set(&shape, values->shape.rank - 1, values->shape.dim + 1, err));
	MU_RETURN_IF_ERROR(mu_tensor_new(value, values->dtype, &shape, err));
	elems_copy(values->dtype, value->data, 0, values->data, i * shape.count, shape.count);
	for (unsigned k = 0; k < b->ready->spec.n; k++)
		if (!mu_tensor_is_set(&element[k]))
			return 0;
	queue_push(b->ready, element);
	mu_map_del_n(&b->incomplete, key.data, key.len);
	free(element);
	return 0;
}

static void insert_all(void *arg)
{
	struct barrier_insert *in = arg;
	struct barrier *b = in->b;
	int64_t n = kernel_in(in->c, 1)->shape.count;
	int rc = 0;

	if (b->closed && (b->cancelled || (n && !b->incomplete.count)))
		rc =
		    mu_fail(&in->err, MU_CANCELLED,
			    "Barrier %s is closed.  Pending enqueues cancelled: %d.  Number of new "
			    "insertions: %lld.  Number of incomplete keys: %zu.",
			    b->base.name, b->cancelled, (long long)n, b->incomplete.count);
	for (int64_t i = 0; i < n && !rc; i++)
		rc = insert_one(in, i, &in->err);
	b->number += in->element_added;
	if (b->closed && !b->incomplete.count)
		b->ready->closed = true; /* no further element can be completed */
}

static int insert_many(struct kernel_call *c, struct mu_err *err)
{
	int64_t component = args_attr_int(c->node, "component_index", -1);
	struct barrier_insert in = {.c = c};
	int rc = 0;

	MU_RETURN_IF_ERROR(barrier_find(c, &in.b, err));
	if (component < 0 || component >= components(in.b))
		rc =
		    mu_invalid(err, "The component ID is out of range %lld > num_components (= %u)",
			       (long long)component, components(in.b));
	in.component = (unsigned)component + VALUES;
	if (!rc && !(rc = check_values(c, in.b, in.component, err))) {
		wait_queue_update(&in.b->ready->waiters, insert_all, &in);
		if (in.err.code)
			rc = mu_fail(err, in.err.code, "%s", in.err.msg);
	}
	resource_unref(&in.b->base);
	return rc;
}

/* ---- take ---- */

/* Sets *n to the number of elements to wait for; fails if a closed barrier has too few. */
static int check_take(struct barrier *b, bool allow_small, int64_t *n, struct mu_err *err)
{
	int rc = 0;

	pthread_mutex_lock(&b->ready->waiters.lock);
	int64_t n_elements = b->ready->count + (allow_small ? 0 : (int64_t)b->incomplete.count);
	if (b->closed && allow_small && *n > n_elements)
		*n = n_elements;
	if (b->closed && n_elements < (*n > 1 ? *n : 1))
		rc = mu_fail(err, MU_OUT_OF_RANGE,
			     "Barrier '%s' is closed and has insufficient elements (requested "
			     "%lld, total size %lld)",
			     b->base.name, (long long)*n, (long long)n_elements);
	pthread_mutex_unlock(&b->ready->waiters.lock);
	return rc;
}

static int barrier_take(struct kernel_call *c, struct mu_err *err)
{
	bool allow_small = args_attr_bool(c->node, "allow_small_batch", false);
	struct barrier *b;
	int64_t n;
	int rc = 0;

	if (args_attr_int(c->node, "timeout_ms", -1) != -1)
		return mu_invalid(err, "Timeout not supported yet.");
	MU_RETURN_IF_ERROR(args_rank(c, 1, 0, err));
	MU_RETURN_IF_ERROR(args_int(c, 1, &n, err));
	MU_RETURN_IF_ERROR(barrier_find(c, &b, err));
	if (c->n_out != b->ready->spec.n)
		rc = mu_invalid(err, "the barrier has %u components, the call takes %u",
				components(b), c->n_out < VALUES ? 0 : c->n_out - VALUES);
	if (!rc && !(rc = check_take(b, allow_small, &n, err)))
		rc = queue_take_many(c, b->ready, n, allow_small, err);
	resource_unref(&b->base);
	return rc;
}

static void barrier_take_many(struct kernel_call *c)
{
	struct mu_err err;

	if (barrier_take(c, &err))
		kernel_finish(c, &err);
}

/* ---- close and size ---- */

struct close_request {
	struct barrier *b;
	bool cancel;
	struct mu_err err;
};

static void apply_close(void *arg)
{
	struct close_request *k = arg;
	struct barrier *b = k->b;

	if (b->closed && (b->cancelled || !k->cancel)) {
		mu_fail(&k->err, MU_CANCELLED, "Barrier '%s' is already closed.", b->base.name);
		return;
	}
	b->closed = true;
	b->cancelled = k->cancel;
	if (k->cancel)
		drop_incomplete(b);
	if (!b->incomplete.count)
		b->ready->closed = true;
}

static int close_barrier(struct kernel_call *c, struct mu_err *err)
{
	struct close_request k = {.cancel =
				      args_attr_bool(c->node, "cancel_pending_enqueues", false)};

	MU_RETURN_IF_ERROR(barrier_find(c, &k.b, err));
	wait_queue_update(&k.b->ready->waiters, apply_close, &k);
	resource_unref(&k.b->base);
	return k.err.code ? mu_fail(err, k.err.code, "%s", k.err.msg) : 0;
}

static int barrier_count(struct kernel_call *c, bool complete, struct mu_err *err)
{
	struct barrier *b;

	MU_RETURN_IF_ERROR(barrier_find(c, &b, err));
	pthread_mutex_lock(&b->ready->waiters.lock);
	int32_t n = (int32_t)(complete ? (size_t)b->ready->count : b->incomplete.count);
	pthread_mutex_unlock(&b->ready->waiters.lock);
	resource_unref(&b->base);
	return kernel_out_value(c, 0, MU_INT32, &n, err);
}

KERNEL_RUN(ready_size, barrier_count(c, true, err))
KERNEL_RUN(incomplete_size, barrier_count(c, false, err))

static const struct kernel rows[] = {
    {"Barrier", .run = barrier_make},
    {"BarrierInsertMany", .run = insert_many},
    {"BarrierTakeMany", .start = barrier_take_many},
    {"BarrierClose", .run = close_barrier},
    {"BarrierReadySize", .run = ready_size},
    {"BarrierIncompleteSize", .run = incomplete_size},
};
KERNEL_TABLE(control_barrier, rows)
