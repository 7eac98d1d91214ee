/* SPDX-License-Identifier: Apache-2.0 */
/* Iterators: resources that draw elements of a dataset, and the ops on them.
 *
 * An iterator has a thread of its own, since functions of the pipeline are waited for and the
 * compute pool may not wait.  Who wants an element waits at the wait queue as a record; the thread
 * draws when somebody waits, and ahead of that as many elements as the dataset's outermost prefetch
 * says. All fields are under the queue's lock, but for the cursor, which is the thread's.
 *
 * A one-shot iterator gets its dataset from a function, which the thread calls first. */
#include <string.h>

#include "lib/tensor/tensor_proto.h"
#include "task/kernels/control/optional.h"
#include "task/kernels/data/iterator.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/variant.h"
#include "task/kernels/state/handles.h"

enum { MAX_AHEAD = 1024, DEFAULT_AHEAD = 16 };

void iterator_ready_free(struct ready *r)
{
	element_drop(r->t, r->n);
	free(r);
}

static void drop_ready(struct iterator *it)
{
	while (it->head) {
		struct ready *r = it->head;
		it->head = r->next;
		iterator_ready_free(r);
	}
	it->tail = &it->head;
	it->n_ready = 0;
}

struct ready *iterator_ready(unsigned n)
{
	return mu_xcalloc(1, sizeof(struct ready) + (n + 1) * sizeof(struct mu_tensor));
}

void iterator_put_ready(struct iterator *it, struct ready *head)
{
	drop_ready(it);
	it->head = head;
	for (; head; head = head->next) {
		it->tail = &head->next;
		it->n_ready++;
	}
}

static void destroy(struct iterator *it)
{
	drop_ready(it);
	if (it->dataset)
		mu_object_unref(&it->dataset->object);
	function_free(it->factory);
	caller_fini(&it->caller);
	pthread_cond_destroy(&it->work);
	wait_queue_fini(&it->waiters);
	free(it);
}

static void iterator_free(struct resource *r)
{
	struct iterator *it = MU_CONTAINER(r, struct iterator, base);
	bool started, own;

	pthread_mutex_lock(&it->waiters.lock);
	started = it->started;
	own = started && pthread_equal(it->thread, pthread_self());
	it->stop = true;
	it->orphan = own; /* the last reference went with what its thread has served */
	pthread_cond_signal(&it->work);
	pthread_mutex_unlock(&it->waiters.lock);
	if (own) {
		pthread_detach(it->thread);
		return;
	}
	caller_stop(&it->caller);
	if (started)
		pthread_join(it->thread, NULL);
	destroy(it);
}

static void iterator_close(struct resource *r)
{
	struct iterator *it = MU_CONTAINER(r, struct iterator, base);

	wait_queue_fail(&it->waiters, WAIT_TAKE, MU_CANCELLED, "ends: its iterator was reset",
			r->name);
	wait_queue_fail(&it->waiters, WAIT_PEEK, MU_CANCELLED, "ends: its iterator was reset",
			r->name);
}

const struct resource_type iterator_type = {
    .name = "iterator", .free = iterator_free, .close = iterator_close};

static struct resource *iterator_create(void *arg, struct mu_err *err)
{
	struct iterator *it = MU_NEW(struct iterator);

	resource_init(&it->base, &iterator_type);
	wait_queue_init(&it->waiters);
	pthread_cond_init(&it->work, NULL);
	caller_init(&it->caller);
	it->tail = &it->head;
	it->factory = arg;
	return &it->base;
}

/* ---- the thread ---- */

/* How far the outermost prefetch goes; below zero it is ours to choose. */
static int64_t ahead_of(const struct dataset *d)
{
	while (d->n_in == 1 &&
	       (!strcmp(d->kind->op, "OptionsDataset") || !strcmp(d->kind->op, "ModelDataset")))
		d = d->in[0];
	if (strcmp(d->kind->op, "PrefetchDataset"))
		return 0;
	int64_t n = dataset_number(d, 0);
	return n < 0 ? DEFAULT_AHEAD : n < MAX_AHEAD ? n : MAX_AHEAD;
}

static int call_factory(struct iterator *it, struct dataset **out, struct mu_err *err)
{
	struct mu_tensor t;
	int rc = function_call(it->factory, &it->caller, NULL, 0, &t, 1, err);

	if (rc)
		return rc;
	struct dataset *d = dataset_in(&t);
	if (!d)
		rc = mu_fail(err, MU_INVALID_ARGUMENT,
			     "The `dataset_factory` function must return a dataset.");
	else
		*out = MU_CONTAINER(mu_object_ref(&d->object), struct dataset, object);
	mu_tensor_unref(&t);
	return rc;
}

struct drawn {
	struct iterator *it;
	struct ready *r; /* NULL: the end */
	uint64_t round;
};

static void take_in(void *arg)
{
	struct drawn *d = arg;
	struct iterator *it = d->it;

	if (d->round != it->round) { /* of a dataset that it has no more */
		if (d->r)
			iterator_ready_free(d->r);
		return;
	}
	it->asked = false;
	if (!d->r) {
		it->ended = true;
		return;
	}
	*it->tail = d->r;
	it->tail = &d->r->next;
	it->n_ready++;
}

static struct ready *iterator_draw(struct iterator *it, const struct dataset *d,
				   struct cursor **cursor)
{
	unsigned n = d ? d->n_out : 0;
	struct ready *r = iterator_ready(n);
	int rc = *cursor ? 0 : cursor_open(d, &it->caller, cursor, &r->err);

	if (!rc)
		rc = cursor_next(*cursor, r->t, &r->err);
	if (rc > 0) {
		r->n = n;
		r->err.code = MU_OK;
	}
	if (rc)
		return r;
	free(r);
	return NULL;
}

/* Waits, with the lock, until there is something to draw; false when it is to stop. */
static bool wait_for_work(struct iterator *it)
{
	while (!it->stop && !it->transfers &&
	       (it->ended || !(it->dataset || it->factory) ||
		!(it->asked || (it->dataset && it->n_ready < it->ahead))))
		pthread_cond_wait(&it->work, &it->waiters.lock);
	return !it->stop;
}

static void give_dataset(struct iterator *it, struct dataset *d)
{
	struct dataset *old = it->dataset;

	it->dataset = d;
	it->ahead = ahead_of(d);
	it->ended = false;
	it->round++;
	drop_ready(it);
	if (old)
		mu_object_unref(&old->object);
}

static struct ready *failed(const struct mu_err *err)
{
	struct ready *r = iterator_ready(0);

	r->err = *err;
	return r;
}

/* Waiting callers get the error in place of a dataset. */
static void tell_failed(struct iterator *it, struct drawn *drawn, const struct mu_err *err)
{
	pthread_mutex_lock(&it->waiters.lock);
	struct transfer *t = iterator_next_transfer(it);
	pthread_mutex_unlock(&it->waiters.lock);
	if (t) {
		iterator_refuse(it, t, err);
		return;
	}
	drawn->r = failed(err);
	wait_queue_update(&it->waiters, take_in, drawn);
}

static void *iterator_run(void *arg)
{
	struct iterator *it = arg;
	struct cursor *cursor = NULL;
	uint64_t round = 0;

	pthread_mutex_lock(&it->waiters.lock);
	while (wait_for_work(it)) {
		struct dataset *d = it->dataset, *made = NULL;
		struct drawn drawn = {.it = it, .round = it->round};
		struct transfer *t = d || !it->factory ? iterator_next_transfer(it) : NULL;
		if (d)
			mu_object_ref(&d->object);
		pthread_mutex_unlock(&it->waiters.lock);
		if (round != drawn.round) {
			cursor_close(cursor);
			cursor = NULL;
			round = drawn.round;
		}
		struct mu_err err = {0};
		if (t) {
			iterator_transfer(it, t, d, round, &cursor);
		} else if (d) {
			drawn.r = iterator_draw(it, d, &cursor);
			mu_object_unref(&mu_steal(&d)->object);
			wait_queue_update(&it->waiters, take_in, &drawn);
		} else if (call_factory(it, &made, &err)) {
			tell_failed(it, &drawn, &err);
		}
		if (d)
			mu_object_unref(&d->object);
		pthread_mutex_lock(&it->waiters.lock);
		if (made)
			give_dataset(it, made);
	}
	bool orphan = it->orphan;
	pthread_mutex_unlock(&it->waiters.lock);
	cursor_close(cursor);
	if (orphan)
		destroy(it);
	return NULL;
}

/* ---- getting ---- */

struct getter {
	struct waiter w;
	struct iterator *it;
	bool optional;  /* the end is an optional without a value, not an error */
	uint64_t round; /* that it is to be of; 0: any */
};

static void getter_free(struct waiter *w)
{
	free(MU_CONTAINER(w, struct getter, w));
}

static int iterator_hand_out(struct kernel_call *c, const struct ready *r, bool optional,
			     struct mu_err *err)
{
	const struct mu_attr *types = mu_node_attr(c->node, "output_types");
	unsigned want = types ? types->n : 0;

	if (r->n != want || (!optional && c->n_out != want))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "the iterator gives %u components, %u are expected", r->n, want);
	for (unsigned i = 0; i < r->n; i++) {
		if (r->t[i].dtype != types->types[i])
			return mu_fail(
			    err, MU_INVALID_ARGUMENT, "component %u is a %s, expected %s", i,
			    mu_dtype_name(r->t[i].dtype), mu_dtype_name(types->types[i]));
		if (!optional)
			kernel_out_take(c, i, mu_tensor_ref(&r->t[i]));
	}
	return optional ? optional_out(c, r->t, r->n, err) : 0;
}

static bool get_try(struct waiter *w)
{
	bool optional = MU_CONTAINER(w, struct getter, w)->optional;
	struct iterator *it = MU_CONTAINER(w, struct getter, w)->it;
	uint64_t round = MU_CONTAINER(w, struct getter, w)->round;
	struct ready *r = it->head;

	if (round && round != it->round) {
		mu_fail(&w->err, MU_INVALID_ARGUMENT, "Invalid incarnation id: %llu, not %llu",
			(unsigned long long)round, (unsigned long long)it->round);
		return true;
	}
	if (r) {
		it->head = r->next;
		if (!it->head)
			it->tail = &it->head;
		it->n_ready--;
		if (r->err.code != MU_OK)
			w->err = r->err;
		else
			iterator_hand_out(w->c, r, optional, &w->err);
		iterator_ready_free(r);
		pthread_cond_signal(&it->work);
		return true;
	}
	if (it->ended && optional) {
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
	it->asked = true;
	pthread_cond_signal(&it->work);
	return false;
}

int iterator_start(struct iterator *it, struct mu_err *err)
{
	int rc = 0;

	pthread_mutex_lock(&it->waiters.lock);
	if (!it->started && pthread_create(&it->thread, NULL, iterator_run, it))
		rc = mu_fail(err, MU_RESOURCE_EXHAUSTED, "no thread for an iterator");
	else
		it->started = true;
	pthread_mutex_unlock(&it->waiters.lock);
	return rc;
}

static void start_getting(struct kernel_call *c, bool optional, uint64_t round)
{
	struct mu_err err;
	struct resource *r;

	if (handle_find(c, 0, &iterator_type, &r, &err)) {
		kernel_finish(c, &err);
		return;
	}
	struct iterator *it = MU_CONTAINER(r, struct iterator, base);
	if (iterator_start(it, &err)) {
		resource_unref(r);
		kernel_finish(c, &err);
		return;
	}
	struct getter *g = MU_NEW(struct getter);
	*g = (struct getter){.it = it,
			     .optional = optional,
			     .round = round,
			     .w = {.c = c,
				   .waiters = &it->waiters,
				   .owner = r,
				   .what = "GetNext",
				   .try = get_try,
				   .free = getter_free}};
	wait_queue_add(&g->w, WAIT_TAKE);
}

static void get_next(struct kernel_call *c)
{
	start_getting(c, false, 0);
}

static void get_next_as_optional(struct kernel_call *c)
{
	start_getting(c, true, 0);
}

/* Inputs: the iterator, which of its devices' share, and the round that it is to be of. */
static void get_from_shard(struct kernel_call *c)
{
	struct mu_err err;
	int64_t shard, round;

	if (!args_int(c, 1, &shard, &err) && !args_int(c, 2, &round, &err)) {
		if (shard == 0 && round > 0) {
			start_getting(c, false, (uint64_t)round);
			return;
		}
		mu_fail(&err, MU_INVALID_ARGUMENT, "there is no shard %lld of round %lld",
			(long long)shard, (long long)round);
	}
	kernel_finish(c, &err);
}

/* ---- making ---- */

static int iterator_make(struct kernel_call *c, struct mu_err *err)
{
	struct resource *r;
	int rc = handle_make(c, &iterator_type, iterator_create, NULL, &r, err);

	if (!rc)
		resource_unref(r);
	return rc;
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
	struct resource *r;

	if (!f || f->kind != MU_ATTR_FUNC)
		return mu_fail(err, MU_INVALID_ARGUMENT, "there is no dataset_factory");
	struct one_shot arg = {c, f->func};
	int rc = handle_make(c, &iterator_type, create_one_shot, &arg, &r, err);
	if (!rc)
		resource_unref(r);
	return rc;
}

struct renewal {
	struct iterator *it;
	struct dataset *d;
	uint64_t round; /* what that makes it */
};

static void renew(void *arg)
{
	struct renewal *n = arg;

	give_dataset(n->it, n->d);
	n->round = n->it->round;
	pthread_cond_signal(&n->it->work);
}

static int iterator_begin_round(struct kernel_call *c, uint64_t *round, struct mu_err *err)
{
	struct mu_object *o;
	struct resource *r;
	int rc;

	if ((rc = variant_in(c, 0, &dataset_type, &o, err)) ||
	    (rc = handle_find(c, 1, &iterator_type, &r, err)))
		return rc;
	struct renewal n = {.it = MU_CONTAINER(r, struct iterator, base),
			    .d = MU_CONTAINER(mu_object_ref(o), struct dataset, object)};
	wait_queue_update(&n.it->waiters, renew, &n);
	resource_unref(r);
	*round = n.round;
	return 0;
}

static int make_iterator(struct kernel_call *c, struct mu_err *err)
{
	uint64_t round;

	return iterator_begin_round(c, &round, err);
}

/* ---- an iterator for several devices, by shards: a strategy's, of one device ---- */

static int make_shared(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_attr *devices = mu_node_attr(c->node, "devices");

	if (!devices || devices->n != 1)
		return mu_fail(err, MU_UNIMPLEMENTED,
			       "an iterator is for one device of a task, not for %u",
			       devices ? devices->n : 0);
	return iterator_make(c, err);
}

static int begin_shared(struct kernel_call *c, struct mu_err *err)
{
	struct mu_tensor t;
	uint64_t round;
	int rc = iterator_begin_round(c, &round, err);

	if (!rc && !(rc = mu_tensor_scalar(&t, MU_INT64, &round, err)))
		kernel_out_take(c, 0, t);
	return rc;
}

/* ---- an iterator as a string, for feeding ---- */

static int to_string(struct kernel_call *c, struct mu_err *err)
{
	MU_AUTO_BUF b = {0};
	struct mu_tensor t;
	int rc = args_type(c, 0, MU_RESOURCE, err);

	if (rc)
		return rc;
	mu_tensor_write(&b, kernel_in(c, 0));
	if (!(rc = mu_tensor_string(&t, b.data, b.len, err)))
		kernel_out_take(c, 0, t);
	return rc;
}

static int from_string(struct kernel_call *c, struct mu_err *err)
{
	struct mu_tensor t;
	int rc = args_type(c, 0, MU_STRING, err);

	if (rc)
		return rc;
	const struct mu_string *s = kernel_in(c, 0)->data;
	if (kernel_in(c, 0)->shape.count != 1 ||
	    mu_tensor_parse(&t, (struct mu_span){s->data ? s->data : "", s->len}, NULL))
		return mu_fail(err, MU_INVALID_ARGUMENT, "the string is no iterator's handle");
	if (t.dtype != MU_RESOURCE || t.shape.count != 1) {
		mu_tensor_unref(&t);
		return mu_fail(err, MU_INVALID_ARGUMENT, "the string is no iterator's handle");
	}
	kernel_out_take(c, 0, t);
	return 0;
}

static const struct kernel rows[] = {
    {"Iterator", .run = iterator_make},
    {"IteratorV2", .run = iterator_make},
    {"OneShotIterator", .run = one_shot},
    {"MakeIterator", .run = make_iterator},
    {"IteratorGetNext", .start = get_next},
    {"IteratorGetNextSync", .start = get_next},
    {"IteratorGetNextAsOptional", .start = get_next_as_optional},
    {"IteratorToStringHandle", .run = to_string},
    {"IteratorFromStringHandle", .run = from_string},
    {"IteratorFromStringHandleV2", .run = from_string},
    {"SerializeIterator", .start = iterator_serialize},
    {"DeserializeIterator", .start = iterator_deserialize},
    {"MultiDeviceIterator", .run = make_shared},
    {"MultiDeviceIteratorInit", .run = begin_shared},
    {"MultiDeviceIteratorGetNextFromShard", .start = get_from_shard},
    {"MultiDeviceIteratorToStringHandle", .run = to_string},
    {"MultiDeviceIteratorFromStringHandle", .run = from_string},
};
KERNEL_TABLE(data_iterator, rows)
