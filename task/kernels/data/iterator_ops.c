/* SPDX-License-Identifier: Apache-2.0 */
/* The ops on iterators: creation, GetNext, saving and restoring, handles as strings. */
#include <string.h>

#include "lib/tensor/encoded.h"
#include "lib/tensor/tensor_proto.h"
#include "task/kernels/control/optional.h"
#include "task/kernels/data/iterator.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/variant.h"
#include "task/kernels/state/handles.h"

/* ---- GetNext ---- */

struct get_call {
	struct waiter w;
	struct iterator *it;
	bool optional;  /* the end is an optional without a value, not an error */
	uint64_t round; /* the round of the element; 0: any */
	unsigned shard;
};

static void get_call_free(struct waiter *w)
{
	free(MU_CONTAINER(w, struct get_call, w));
}

static int output_element(struct kernel_call *c, const struct buffered_element *r, bool optional,
			  struct mu_err *err)
{
	const struct mu_attr *types = mu_node_attr(c->node, "output_types");
	const struct mu_attr *shapes = mu_node_attr(c->node, "output_shapes");
	unsigned want = types ? types->n : 0;

	if (r->n != want || (!optional && c->n_out != want))
		return mu_invalid(
		    err, "Number of components does not match: expected %u types but got %u.", want,
		    r->n);
	for (unsigned i = 0; i < r->n; i++) {
		const struct mu_tensor *t = &r->t[i];

		if (t->dtype != types->types[i])
			return mu_invalid(
			    err, "Data type mismatch at component %u: expected %s but got %s.", i,
			    mu_dtype_name(types->types[i]), mu_dtype_name(t->dtype));
		if (shapes && i < shapes->n && !mu_shape_matches(&t->shape, &shapes->shapes[i]))
			return mu_invalid(
			    err, "Incompatible shapes at component %u: expected %s but got %s.", i,
			    mu_pshape_str(&shapes->shapes[i]), mu_shape_str(&t->shape));
		if (!optional)
			kernel_out_take(c, i, mu_tensor_ref(t));
	}
	return optional ? optional_out(c, r->t, r->n, err) : 0;
}

/* The first buffered element of a shard, removed from the buffer, or NULL. */
static struct buffered_element *take_buffered(struct iterator *it, unsigned shard)
{
	struct buffered_element **p = &it->head, *r;

	while (*p && (*p)->shard != shard)
		p = &(*p)->next;
	if (!(r = *p))
		return NULL;
	*p = r->next;
	if (it->tail == &r->next)
		it->tail = p;
	it->n_buffered--;
	return r;
}

static bool get_try(struct waiter *w)
{
	const struct get_call *g = MU_CONTAINER(w, struct get_call, w);
	struct iterator *it = g->it;
	struct buffered_element *r;

	if (g->round && g->round != it->round) {
		mu_invalid(&w->err, "Invalid incarnation id: %llu, not %llu",
			   (unsigned long long)g->round, (unsigned long long)it->round);
		return true;
	}
	if (g->shard >= it->n_shards) {
		mu_invalid(&w->err, "there is no shard %u of %u", g->shard, it->n_shards);
		return true;
	}
	if ((r = take_buffered(it, g->shard))) {
		if (r->err.code != MU_OK)
			w->err = r->err;
		else
			output_element(w->c, r, g->optional, &w->err);
		buffered_element_free(r);
		pthread_cond_signal(&it->work);
		return true;
	}
	if (it->ended && g->optional) {
		optional_out(w->c, NULL, 0, &w->err);
		return true;
	}
	if (it->ended) {
		mu_fail(&w->err, MU_OUT_OF_RANGE, "End of sequence");
		return true;
	}
	if (!it->dataset && !it->factory) {
		mu_fail(&w->err, MU_FAILED_PRECONDITION,
			"GetNext() failed because the iterator has not been initialized. Ensure "
			"that you have run the initializer operation for this iterator before "
			"getting the next element.");
		return true;
	}
	/* If the buffer has only elements of other shards, the call waits until they are read. */
	it->element_requested = !it->n_buffered;
	pthread_cond_signal(&it->work);
	return false;
}

/* kind: WAIT_PEEK for shards, so that a call for one shard does not block calls for others. */
static void start_get_next(struct kernel_call *c, struct get_call get, int kind)
{
	struct mu_err err;
	struct resource *r;

	if (handle_find(c, 0, &iterator_type, &r, &err)) {
		kernel_finish(c, &err);
		return;
	}
	struct iterator *it = MU_CONTAINER(r, struct iterator, base);
	if (iterator_start(it, c->runtime, &err)) {
		resource_unref(r);
		kernel_finish(c, &err);
		return;
	}
	struct get_call *g = MU_NEW(struct get_call);
	*g = get;
	g->it = it;
	g->w = (struct waiter){.c = c,
			       .waiters = &it->waiters,
			       .owner = r,
			       .what = "GetNext",
			       .try = get_try,
			       .free = get_call_free};
	wait_queue_add(&g->w, kind);
}

static void get_next(struct kernel_call *c)
{
	start_get_next(c, (struct get_call){0}, WAIT_TAKE);
}

static void get_next_as_optional(struct kernel_call *c)
{
	start_get_next(c, (struct get_call){.optional = true}, WAIT_TAKE);
}

/* Inputs: the iterator, the shard and the round (TensorFlow's incarnation_id). */
static void get_from_shard(struct kernel_call *c)
{
	struct mu_err err;
	int64_t shard, round;

	if (!args_int(c, 1, &shard, &err) && !args_int(c, 2, &round, &err)) {
		if (shard >= 0 && round > 0) {
			start_get_next(
			    c,
			    (struct get_call){.shard = (unsigned)shard, .round = (uint64_t)round},
			    WAIT_PEEK);
			return;
		}
		mu_invalid(&err, "there is no shard %lld of round %lld", (long long)shard,
			   (long long)round);
	}
	kernel_finish(c, &err);
}

/* ---- saving and restoring ---- */

struct state_call {
	struct waiter w;
	struct iterator *it;
	struct state_request *t;
};

static int output_state(struct kernel_call *c, struct state_request *t, struct mu_err *err)
{
	struct mu_shape one = mu_shape_vec(1);
	struct mu_tensor out;

	MU_RETURN_IF_ERROR(mu_tensor_new(&out, MU_VARIANT, &one, err));
	*MU_DATA(struct mu_object *, &out) = mu_object_ref(t->state);
	kernel_out_take(c, 0, out);
	return 0;
}

static void queue_request(struct iterator *it, struct state_request *t)
{
	struct state_request **p = &it->requests;

	while (*p)
		p = &(*p)->next;
	*p = t;
	t->queued = true;
	atomic_fetch_add(&t->refs, 1);
	pthread_cond_signal(&it->work);
}

static bool state_call_try(struct waiter *w)
{
	struct state_request *t = MU_CONTAINER(w, struct state_call, w)->t;

	if (!t->queued)
		queue_request(MU_CONTAINER(w, struct state_call, w)->it, t);
	if (!t->done)
		return false;
	w->err = t->err;
	if (t->err.code == MU_OK && !t->restores)
		output_state(w->c, t, &w->err);
	return true;
}

/* Removes the request from the queue if the thread has not started it. */
static void state_call_undo(struct waiter *w)
{
	struct state_call *m = MU_CONTAINER(w, struct state_call, w);

	for (struct state_request **p = &m->it->requests; *p; p = &(*p)->next)
		if (*p == m->t) {
			*p = m->t->next;
			state_request_unref(m->t);
			return;
		}
}

static void state_call_free(struct waiter *w)
{
	struct state_call *m = MU_CONTAINER(w, struct state_call, w);

	state_request_unref(m->t);
	free(m);
}

/* Starts a restore of `state`, whose reference it takes, or with NULL a save. */
static void start_request(struct kernel_call *c, struct mu_object *state)
{
	struct state_call *m = MU_NEW(struct state_call);
	struct resource *r = NULL;
	struct mu_err err;

	m->t = MU_NEW(struct state_request);
	atomic_init(&m->t->refs, 1);
	m->t->state = state;
	m->t->restores = state != NULL;
	int rc = handle_find(c, 0, &iterator_type, &r, &err);
	if (!rc) {
		m->it = MU_CONTAINER(r, struct iterator, base);
		rc = iterator_start(m->it, c->runtime, &err);
	}
	if (rc) {
		if (r)
			resource_unref(r);
		state_call_free(&m->w);
		kernel_finish(c, &err);
		return;
	}
	m->w = (struct waiter){.c = c,
			       .waiters = &m->it->waiters,
			       .owner = r,
			       .what = state ? "DeserializeIterator" : "SerializeIterator",
			       .try = state_call_try,
			       .undo = state_call_undo,
			       .free = state_call_free};
	wait_queue_add(&m->w, WAIT_PEEK);
}

static void iterator_serialize(struct kernel_call *c)
{
	start_request(c, NULL);
}

static void iterator_deserialize(struct kernel_call *c)
{
	const struct mu_tensor *t = kernel_in(c, 1);
	struct mu_object *o =
	    t->dtype == MU_VARIANT && t->shape.count == 1 ? *MU_DATA(struct mu_object *, t) : NULL;
	const struct mu_encoded *e = mu_encoded_of(o);
	struct mu_err err;

	if (e && strcmp(e->kind, ITERATOR_STATE_KIND) == 0) {
		start_request(c, mu_object_ref(o));
		return;
	}
	mu_invalid(
	    &err,
	    "this is no iterator's state that was saved here: those of TensorFlow are not read");
	kernel_finish(c, &err);
}

/* ---- creation ---- */

static int iterator_make_with(struct kernel_call *c,
			      struct resource *(*create)(void *arg, struct mu_err *err), void *arg,
			      struct mu_err *err)
{
	struct resource *r;

	MU_RETURN_IF_ERROR(handle_make(c, &iterator_type, create, arg, &r, err));
	resource_unref(r);
	return 0;
}

static int iterator_make(struct kernel_call *c, struct mu_err *err)
{
	return iterator_make_with(c, iterator_create, NULL, err);
}

/* Creates a new iterator in each call, with the lifetime of the session. */
static int make_anonymous(struct kernel_call *c, struct mu_err *err)
{
	static _Atomic unsigned long long next_id;
	MU_AUTO_BUF buf = {0};
	const char *container = handle_container(c, &buf);
	MU_AUTO_FREE char *name =
	    mu_xasprintf("%s_%llu", c->node->name, atomic_fetch_add(&next_id, 1));
	struct resource *r;

	MU_RETURN_IF_ERROR(resources_find_or_create(c->runtime->resources, container, name,
						    &iterator_type, iterator_create, NULL, &r,
						    err));
	resource_unref(r);
	return handle_output(c, container, name, &iterator_type, err);
}

struct one_shot {
	struct kernel_call *c;
	const struct mu_func *f;
};

static struct resource *create_one_shot(void *arg, struct mu_err *err)
{
	struct one_shot *o = arg;
	struct function *f;

	if (function_new(o->c->runtime, o->c->step, o->f, &f, err))
		return NULL;
	return iterator_create(f, err);
}

static int one_shot(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_attr *f = mu_node_attr(c->node, "dataset_factory");

	if (!f || f->kind != MU_ATTR_FUNC)
		return mu_invalid(err, "there is no dataset_factory");
	struct one_shot arg = {c, f->func};

	return iterator_make_with(c, create_one_shot, &arg, err);
}

struct new_round {
	struct iterator *it;
	struct dataset *d;
	int64_t shard_buffer_size;
	uint64_t round; /* set by start_round */
};

static void start_round(void *arg)
{
	struct new_round *n = arg;

	iterator_set_dataset(n->it, n->d, n->shard_buffer_size);
	n->round = n->it->round;
	pthread_cond_signal(&n->it->work);
}

static int iterator_begin_round(struct kernel_call *c, int64_t shard_buffer_size, uint64_t *round,
				struct mu_err *err)
{
	struct mu_object *o;
	struct resource *r;

	MU_RETURN_IF_ERROR(variant_in(c, 0, &dataset_type, &o, err));
	MU_RETURN_IF_ERROR(handle_find(c, 1, &iterator_type, &r, err));
	struct new_round n = {.it = MU_CONTAINER(r, struct iterator, base),
			      .shard_buffer_size = shard_buffer_size};
	int rc = dataset_copy(MU_CONTAINER(o, struct dataset, object), &n.d, err);
	if (!rc)
		wait_queue_update(&n.it->waiters, start_round, &n);
	resource_unref(r);
	*round = n.round;
	return rc;
}

static int make_iterator(struct kernel_call *c, struct mu_err *err)
{
	uint64_t round;

	return iterator_begin_round(c, 0, &round, err);
}

/* ---- MultiDeviceIterator: each device draws the elements of its shard ---- */

static unsigned n_devices(const struct mu_node *n)
{
	const struct mu_attr *devices = mu_node_attr(n, "devices");

	return devices ? devices->n : 1;
}

static struct resource *create_sharded(void *arg, struct mu_err *err)
{
	struct resource *r = iterator_create(NULL, err);

	MU_CONTAINER(r, struct iterator, base)->n_shards = *(unsigned *)arg;
	return r;
}

static int multi_device_iterator(struct kernel_call *c, struct mu_err *err)
{
	unsigned n = n_devices(c->node);

	return iterator_make_with(c, create_sharded, &n, err);
}

static int make_owned(struct kernel_call *c, struct mu_err *err)
{
	unsigned n = n_devices(c->node);

	return handle_make_owned(c, create_sharded(&n, err), err);
}

/* The iterator is deleted with the last handle. */
static int delete_iterator(struct kernel_call *c, struct mu_err *err)
{
	(void)c, (void)err;
	return 0;
}

static int multi_device_iterator_init(struct kernel_call *c, struct mu_err *err)
{
	int64_t shard_buffer_size;
	uint64_t round;

	MU_RETURN_IF_ERROR(args_int(c, 2, &shard_buffer_size, err));
	MU_RETURN_IF_ERROR(iterator_begin_round(c, shard_buffer_size, &round, err));
	return kernel_out_value(c, 0, MU_INT64, &round, err);
}

/* ---- string handles, device ---- */

static int to_string(struct kernel_call *c, struct mu_err *err)
{
	MU_AUTO_BUF b = {0};

	mu_tensor_write(&b, kernel_in(c, 0));
	return kernel_out_string(c, 0, mu_buf_span(&b), err);
}

static int from_string(struct kernel_call *c, struct mu_err *err)
{
	struct mu_tensor t;

	if (kernel_in(c, 0)->shape.count != 1 ||
	    mu_tensor_parse(&t, elems_span(kernel_in(c, 0), 0), NULL))
		return mu_invalid(err, "Could not parse string_handle as a valid ResourceHandle");
	if (t.dtype != MU_RESOURCE || t.shape.count != 1) {
		mu_tensor_unref(&t);
		return mu_invalid(err, "Could not parse string_handle as a valid ResourceHandle");
	}
	kernel_out_take(c, 0, t);
	return 0;
}

static int get_device(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_handle *h;

	MU_RETURN_IF_ERROR(resource_handle_in(c, 0, &h, err));
	return kernel_out_string(c, 0, mu_span_of(h->device ? h->device : ""), err);
}

static const struct kernel rows[] = {
    {"Iterator IteratorV2", .run = iterator_make},
    {"AnonymousIterator", .run = make_anonymous},
    {"AnonymousIteratorV2 AnonymousIteratorV3 AnonymousMultiDeviceIterator "
     "AnonymousMultiDeviceIteratorV3",
     .run = make_owned},
    {"DeleteIterator DeleteMultiDeviceIterator", .run = delete_iterator},
    {"OneShotIterator", .run = one_shot},
    {"MakeIterator", .run = make_iterator},
    {"IteratorGetNext IteratorGetNextSync", .start = get_next},
    {"IteratorGetNextAsOptional", .start = get_next_as_optional},
    {"IteratorToStringHandle MultiDeviceIteratorToStringHandle", .run = to_string},
    {"IteratorFromStringHandle IteratorFromStringHandleV2 MultiDeviceIteratorFromStringHandle",
     .run = from_string},
    {"IteratorGetDevice ExperimentalIteratorGetDevice", .run = get_device},
    {"SerializeIterator", .start = iterator_serialize},
    {"DeserializeIterator", .start = iterator_deserialize},
    {"MultiDeviceIterator", .run = multi_device_iterator},
    {"MultiDeviceIteratorInit", .run = multi_device_iterator_init},
    {"MultiDeviceIteratorGetNextFromShard", .start = get_from_shard},
};
KERNEL_TABLE(data_iterator, rows)
