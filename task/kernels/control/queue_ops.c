/* SPDX-License-Identifier: Apache-2.0 */
/* The ops of queues. Enqueue, dequeue and close are calls that may wait.
 *
 * A call for many elements takes or adds them one by one, so it may ask for more than the queue's
 * capacity. When it fails, the elements that it took return to the front of the queue. A close
 * without cancellation waits for the pending enqueues. */

#include "lib/base/random.h"
#include "lib/ops/shape.h"
#include "task/kernels/control/queue.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/state/handles.h"

/* ---- creation, size ---- */

static int queue_read_spec(const struct mu_node *n, struct queue_spec *s, struct mu_err *err)
{
	const struct mu_attr *types = mu_node_attr(n, "component_types");
	const struct mu_attr *shapes = mu_node_attr(n, "shapes");
	unsigned n_implicit = s->by_priority; /* components that the attributes omit */

	if (!types || types->kind != MU_ATTR_LIST + MU_ATTR_TYPE || types->n + n_implicit < 1)
		return mu_invalid(err, "a queue has at least one component");
	queue_spec_init(s, types->n + n_implicit);
	s->type[0] = MU_INT64;
	for (unsigned i = n_implicit; i < s->n; i++)
		s->type[i] = types->types[i - n_implicit];
	s->has_shapes = shapes && shapes->kind == MU_ATTR_LIST + MU_ATTR_SHAPE && shapes->n;
	if (s->has_shapes && shapes->n != types->n)
		return mu_invalid(err, "%u shapes for %u components", shapes->n, types->n);
	s->shape[0] = (struct mu_pshape){.rank = 0};
	for (unsigned i = n_implicit; i < s->n; i++)
		s->shape[i] =
		    s->has_shapes ? shapes->shapes[i - n_implicit] : (struct mu_pshape){.rank = -1};
	s->capacity = args_attr_int(n, "capacity", -1);
	s->min_after = args_attr_int(n, "min_after_dequeue", 0);
	if (s->min_after < 0 || (s->capacity >= 0 && s->min_after >= s->capacity && s->shuffled))
		return mu_invalid(
		    err, "min_after_dequeue must be >= 0 and below the capacity: %lld, %lld",
		    (long long)s->min_after, (long long)s->capacity);
	s->seed = (uint64_t)args_attr_int(n, "seed", 0);
	s->seed2 = (uint64_t)args_attr_int(n, "seed2", 0);
	if (s->shuffled && !s->seed && !s->seed2)
		s->seed = mu_random_u64();
	return 0;
}

static struct resource *queue_make_resource(void *arg, struct mu_err *err)
{
	return &queue_new(arg)->base;
}

static void put_types(struct mu_buf *b, const struct queue_spec *s, unsigned from)
{
	for (unsigned i = from; i < s->n; i++)
		mu_buf_printf(b, "%s%s", i > from ? ", " : "", mu_dtype_name(s->type[i]));
}

static void put_shapes(struct mu_buf *b, const struct queue_spec *s, unsigned from)
{
	mu_buf_putc(b, '[');
	for (unsigned i = from; s->has_shapes && i < s->n; i++)
		mu_buf_printf(b, "%s%s", i > from ? "," : "", mu_pshape_str(&s->shape[i]));
	mu_buf_putc(b, ']');
}

int queue_check_components_equal(const struct queue_spec *have, const struct queue_spec *want,
				 unsigned from, const char *what, const char *name,
				 struct mu_err *err)
{
	static const struct {
		void (*put)(struct mu_buf *b, const struct queue_spec *s, unsigned from);
		const char *name;
	} parts[] = {{put_types, "types"}, {put_shapes, "shapes"}};

	for (size_t i = 0; i < MU_COUNT(parts); i++) {
		MU_AUTO_BUF a = {0};
		MU_AUTO_BUF b = {0};

		parts[i].put(&a, have, from);
		parts[i].put(&b, want, from);
		if (strcmp(a.data, b.data) != 0)
			return mu_invalid(err,
					  "Shared %s '%s' has component %s %s but requested "
					  "component %s were %s",
					  what, name, parts[i].name, a.data, parts[i].name, b.data);
	}
	return 0;
}

/* Fails if the shared queue differs from the node's attributes. */
static int check_shared(const struct queue *q, const struct queue_spec *want,
			const struct mu_node *n, struct mu_err *err)
{
	const struct queue_spec *have = &q->spec;
	int64_t seed = args_attr_int(n, "seed", 0), seed2 = args_attr_int(n, "seed2", 0);
	const char *name = q->base.name;

	if (strcmp(have->kind, want->kind) != 0)
		return mu_invalid(err, "Expected %s, found %s", have->kind, n->op);
	if (have->capacity != want->capacity)
		return mu_invalid(
		    err, "Shared queue '%s' has capacity %lld but requested capacity was %lld",
		    name, (long long)have->capacity, (long long)want->capacity);
	if (have->min_after != want->min_after)
		return mu_invalid(err,
				  "Shared queue '%s' has min_after_dequeue %lld but requested "
				  "min_after_dequeue was %lld.",
				  name, (long long)have->min_after, (long long)want->min_after);
	if ((seed || seed2) && (have->seed != (uint64_t)seed || have->seed2 != (uint64_t)seed2))
		return mu_invalid(err,
				  "Shared queue '%s' has random seeds (%lld, %lld) but requested "
				  "seeds are (%lld, %lld).",
				  name, (long long)have->seed, (long long)have->seed2,
				  (long long)seed, (long long)seed2);
	return queue_check_components_equal(have, want, 0, "queue", name, err);
}

static int queue_make(struct kernel_call *c, struct queue_spec *s, struct mu_err *err)
{
	struct resource *r;

	int rc = queue_read_spec(c->node, s, err);

	if (!rc)
		rc = handle_make(c, &queue_type, queue_make_resource, s, &r, err);
	if (!rc) {
		rc = check_shared(MU_CONTAINER(r, struct queue, base), s, c->node, err);
		resource_unref(r);
	}
	queue_spec_fini(s);
	return rc;
}

KERNEL_RUN(make_fifo, queue_make(c, &(struct queue_spec){.kind = "FIFOQueue"}, err))
KERNEL_RUN(make_padding_fifo,
	   queue_make(c, &(struct queue_spec){.kind = "PaddingFIFOQueue", .padded = true}, err))
KERNEL_RUN(make_random_shuffle,
	   queue_make(c, &(struct queue_spec){.kind = "RandomShuffleQueue", .shuffled = true}, err))
KERNEL_RUN(make_priority,
	   queue_make(c, &(struct queue_spec){.kind = "PriorityQueue", .by_priority = true}, err))

static int queue_output(struct kernel_call *c, enum mu_dtype t, const void *v, struct mu_err *err)
{
	return kernel_out_value(c, 0, t, v, err);
}

static int size_or_closed(struct kernel_call *c, bool size, struct mu_err *err)
{
	struct resource *r;

	MU_RETURN_IF_ERROR(handle_find(c, 0, &queue_type, &r, err));
	struct queue *q = MU_CONTAINER(r, struct queue, base);
	pthread_mutex_lock(&q->waiters.lock);
	int32_t n = (int32_t)q->count;
	bool closed = q->closed;
	pthread_mutex_unlock(&q->waiters.lock);
	resource_unref(r);
	return size ? queue_output(c, MU_INT32, &n, err) : queue_output(c, MU_BOOL, &closed, err);
}

KERNEL_RUN(queue_size, size_or_closed(c, true, err))
KERNEL_RUN(queue_is_closed, size_or_closed(c, false, err))

/* ---- calls that may wait ---- */

struct transfer {
	struct waiter w;
	struct queue *q;
	int64_t want, n_done; /* elements */
	bool many, up_to;
	struct mu_tensor *items; /* dequeue: the elements taken, n_done * spec.n tensors */
};

static void queue_transfer_free(struct waiter *w)
{
	struct transfer *t = MU_CONTAINER(w, struct transfer, w);

	for (int64_t i = 0; t->items && i < t->n_done * t->q->spec.n; i++)
		mu_tensor_unref(&t->items[i]);
	free(t->items);
	free(t);
}

/* TensorFlow's PaddingFIFOQueue inherits all calls but DequeueMany, with their error texts. */
static const char *inherited_kind(const struct queue *q)
{
	return q->spec.padded ? "FIFOQueue" : q->spec.kind;
}

/* ---- enqueue ---- */

/* Copies row `at` of a tensor. */
static int copy_row(const struct mu_tensor *in, int64_t at, struct mu_tensor *out,
		    struct mu_err *err)
{
	struct mu_shape s;
	int rc = mu_shape_set(&s, in->shape.rank - 1, in->shape.dim + 1, err);

	if (!rc && !(rc = mu_tensor_new(out, in->dtype, &s, err)))
		elems_copy(in->dtype, out->data, 0, in->data, at * s.count, s.count);
	return rc;
}

static int queue_push_one(struct transfer *t, struct mu_err *err)
{
	MU_AUTO_FREE struct mu_tensor *element = MU_NEW_ARRAY(struct mu_tensor, t->q->spec.n);
	int rc = 0;

	for (unsigned k = 0; k < t->q->spec.n && !rc; k++) {
		const struct mu_tensor *in = kernel_in(t->w.c, k + 1);
		if (t->many)
			rc = copy_row(in, t->n_done, &element[k], err);
		else
			element[k] = mu_tensor_ref(in);
	}
	if (!rc)
		queue_push(t->q, element);
	for (unsigned k = 0; rc && k < t->q->spec.n; k++)
		mu_tensor_unref(&element[k]);
	return rc;
}

enum { MAX_ELEMENTS = 1 << 22 }; /* of a queue without a capacity; elements may have no bytes */

static bool enqueue_try(struct waiter *w)
{
	struct transfer *t = MU_CONTAINER(w, struct transfer, w);

	if (t->q->closed) {
		mu_fail(&w->err, MU_CANCELLED, "%s '%s' is closed.", inherited_kind(t->q),
			w->owner->name);
		return true;
	}
	for (; t->n_done < t->want && queue_free_slots(t->q) > 0;
	     t->n_done++, w->made_progress = true) {
		if (kernel_check_cancelled(w->c, &w->err))
			return true;
		if (t->q->spec.capacity < 0 && t->q->count >= MAX_ELEMENTS) {
			mu_fail(&w->err, MU_RESOURCE_EXHAUSTED,
				"the queue '%s' has %d elements; give it a capacity",
				w->owner->name, MAX_ELEMENTS);
			return true;
		}
		if (queue_push_one(t, &w->err))
			return true;
	}
	return t->n_done == t->want;
}

static int check_component(const struct queue_spec *s, unsigned k, const struct mu_tensor *in,
			   bool many, int64_t rows, struct mu_err *err)
{
	struct mu_pshape want = s->shape[k];

	if (in->dtype != s->type[k])
		return mu_invalid(err, "Type mismatch in tuple component %u. Expected %s, got %s",
				  k, mu_dtype_name(s->type[k]), mu_dtype_name(in->dtype));
	if (many && want.rank >= 0) {
		struct mu_pshape n = {.rank = 1, .dim = {rows}};
		want = mu_pshape_join(&n, &want);
	}
	if (!mu_shape_matches(&in->shape, &want))
		return mu_invalid(err, "Shape mismatch in tuple component %u. Expected %s, got %s",
				  k, mu_pshape_str(&want), mu_shape_str(&in->shape));
	if (many && (in->shape.rank < 1 || in->shape.dim[0] != rows))
		return mu_invalid(err,
				  "All input tensors must have the same size in the 0th dimension. "
				  "Component %u has %s, and should have %lld",
				  k, mu_shape_str(&in->shape), (long long)rows);
	return 0;
}

static int queue_check_components(const struct kernel_call *c, const struct queue_spec *s,
				  bool many, int64_t *rows, struct mu_err *err)
{
	if (c->n_in != s->n + 1)
		return mu_invalid(err, "the queue has %u components, the call brings %u", s->n,
				  c->n_in - 1);
	*rows = many && kernel_in(c, 1)->shape.rank ? kernel_in(c, 1)->shape.dim[0] : 1;
	for (unsigned k = 0; k < s->n; k++)
		MU_RETURN_IF_ERROR(check_component(s, k, kernel_in(c, k + 1), many, *rows, err));
	return 0;
}

/* ---- dequeue ---- */

static void return_taken_elements(struct waiter *w)
{
	struct transfer *t = MU_CONTAINER(w, struct transfer, w);

	while (t->n_done > 0)
		queue_return_element(t->q, &t->items[--t->n_done * t->q->spec.n]);
}

static bool fail_insufficient(struct transfer *t)
{
	int64_t missing = t->want - t->n_done;

	mu_fail(&t->w.err, MU_OUT_OF_RANGE,
		"%s '%s' is closed and has insufficient elements (requested %lld, current size "
		"%lld)",
		t->many ? t->q->spec.kind : inherited_kind(t->q), t->w.owner->name,
		(long long)missing, (long long)t->q->count);
	return_taken_elements(&t->w);
	return true;
}

/* Computes the largest size of each dimension of component k. */
static int queue_padded_shape(const struct transfer *t, unsigned k, struct mu_shape *out,
			      struct mu_err *err)
{
	unsigned n = t->q->spec.n;
	struct mu_shape s = t->items[k].shape;
	int64_t dims[MU_MAX_RANK];

	for (int d = 0; d < s.rank; d++)
		dims[d] = s.dim[d];
	for (int64_t i = 1; i < t->n_done; i++) {
		const struct mu_shape *e = &t->items[i * n + k].shape;
		if (e->rank != s.rank || (!t->q->spec.padded && !mu_shape_eq(e, &s)))
			return mu_invalid(err,
					  "component %u has elements of shapes %s and %s, which "
					  "cannot be taken together",
					  k, mu_shape_str(&s), mu_shape_str(e));
		for (int d = 0; d < s.rank; d++)
			dims[d] = e->dim[d] > dims[d] ? e->dim[d] : dims[d];
	}
	return mu_shape_set(out, s.rank, dims, err);
}

static int stack_component(struct transfer *t, unsigned k, struct mu_err *err)
{
	const struct queue_spec *s = &t->q->spec;
	struct mu_shape element = mu_shape_scalar(), shape = mu_shape_vec(t->n_done);
	struct mu_tensor *out;

	if (t->n_done)
		MU_RETURN_IF_ERROR(queue_padded_shape(t, k, &element, err));
	for (int d = 0; !t->n_done && d < s->shape[k].rank; d++) /* an unknown size is 0 */
		MU_RETURN_IF_ERROR(
		    mu_shape_push(&element, s->shape[k].dim[d] > 0 ? s->shape[k].dim[d] : 0, err));
	MU_RETURN_IF_ERROR(mu_shape_append(&shape, element.rank, element.dim, err));
	MU_RETURN_IF_ERROR(kernel_out(t->w.c, k, s->type[k], &shape, &out, err));
	if (s->padded)
		elems_zero(s->type[k], out->data, 0, shape.count);
	for (int64_t i = 0; i < t->n_done; i++) {
		const struct mu_tensor *e = &t->items[i * s->n + k];
		struct view v;
		view_of(&v, &element);
		v.offset = i * element.count;
		for (int d = 0; d < element.rank; d++)
			v.dim[d] = e->shape.dim[d];
		view_write(s->type[k], out->data, &v, e->data);
	}
	return 0;
}

static void output_elements(struct transfer *t)
{
	const struct queue_spec *s = &t->q->spec;

	for (unsigned k = 0; k < s->n; k++) {
		if (!t->many)
			kernel_out_take(t->w.c, k, mu_tensor_ref(&t->items[k]));
		else if (stack_component(t, k, &t->w.err))
			return;
	}
}

static bool dequeue_try(struct waiter *w)
{
	struct transfer *t = MU_CONTAINER(w, struct transfer, w);
	struct queue *q = t->q;

	if (q->closed && q->count < t->want - t->n_done) {
		if (!t->up_to || q->count + t->n_done == 0)
			return fail_insufficient(t);
		t->want = t->n_done + q->count;
	}
	int64_t n = queue_available(q), n_missing = t->want - t->n_done;
	n = n < n_missing ? n : n_missing;
	if (q->spec.by_priority && n < n_missing)
		n = 0; /* a later element may have a higher priority */
	if (n > 0) {
		size_t element_bytes = q->spec.n * sizeof *t->items;
		t->items = mu_xrealloc(t->items, (size_t)(t->n_done + n) * element_bytes);
		w->made_progress = true;
		for (; n > 0; n--, t->n_done++)
			queue_pop(q, &t->items[t->n_done * q->spec.n]);
	}
	if (t->n_done < t->want)
		return false;
	output_elements(t);
	return true;
}

/* ---- close ---- */

static bool close_try(struct waiter *w)
{
	struct transfer *t = MU_CONTAINER(w, struct transfer, w);

	if (t->q->closed)
		mu_fail(&w->err, MU_CANCELLED, "Queue '%s' is already closed.", w->owner->name);
	t->q->closed = true;
	return true;
}

static void mark_closed(void *arg)
{
	((struct queue *)arg)->closed = true;
}

/* ---- start ---- */

static int check_call(const struct kernel_call *c, struct queue *q, struct transfer *t,
		      bool is_enqueue, struct mu_err *err)
{
	int64_t n = 1;

	if (is_enqueue)
		return queue_check_components(c, &q->spec, t->many, &t->want, err);
	if (c->n_out != q->spec.n)
		return mu_invalid(err, "the queue has %u components, the call takes %u", q->spec.n,
				  c->n_out);
	for (unsigned i = 0; i < c->n_out; i++) {
		enum mu_dtype want = mu_node_attr(c->node, "component_types")->types[i];

		if (want != q->spec.type[i])
			return mu_invalid(err,
					  "Signature mismatch, have: %s expected: %s for component "
					  "%u of the queue",
					  mu_dtype_name(q->spec.type[i]), mu_dtype_name(want), i);
	}
	if (t->many) {
		MU_RETURN_IF_ERROR(args_int(c, 1, &n, err));
		if (!q->spec.has_shapes)
			return mu_invalid(err,
					  "%s's DequeueMany and DequeueUpTo require the components "
					  "to have specified shapes.",
					  q->spec.kind);
	}
	if (n < 0 || n > INT32_MAX)
		return mu_invalid(err, "%s must request a positive number of elements",
				  c->node->op);
	t->want = n;
	return 0;
}

/* A transfer of no elements ends at once, also on a full or closed queue. */
static void transfer_start(struct transfer *t, int wait_kind)
{
	struct kernel_call *c = t->w.c;

	if (t->want || t->w.try == close_try) {
		wait_queue_add(&t->w, wait_kind);
		return;
	}
	if (wait_kind == WAIT_TAKE)
		output_elements(t);
	struct mu_err err = t->w.err;
	resource_unref(t->w.owner);
	queue_transfer_free(&t->w);
	kernel_finish(c, err.code ? &err : NULL);
}

static void queue_start(struct kernel_call *c, const struct transfer *kind, int wait_kind)
{
	struct mu_err err;
	struct resource *r;

	if (handle_find(c, 0, &queue_type, &r, &err)) {
		kernel_finish(c, &err);
		return;
	}
	struct queue *q = MU_CONTAINER(r, struct queue, base);
	struct transfer *t = MU_NEW(struct transfer);
	*t = *kind;
	t->q = q;
	t->w.c = c;
	t->w.waiters = &q->waiters;
	t->w.owner = r;
	t->w.free = queue_transfer_free;
	if (t->w.try != close_try && check_call(c, q, t, wait_kind == WAIT_PUT, &err)) {
		free(t);
		resource_unref(r);
		kernel_finish(c, &err);
		return;
	}
	transfer_start(t, wait_kind);
}

static void queue_enqueue(struct kernel_call *c)
{
	queue_start(c, &(struct transfer){.w = {.what = "Enqueue", .try = enqueue_try}}, WAIT_PUT);
}

static void enqueue_many(struct kernel_call *c)
{
	queue_start(c,
		    &(struct transfer){.w = {.what = "Enqueue", .try = enqueue_try}, .many = true},
		    WAIT_PUT);
}

#define DEQUEUE                                                                                    \
	.w = {                                                                                     \
	    .what = "Dequeue",                                                                     \
	    .try = dequeue_try,                                                                    \
	    .undo = return_taken_elements,                                                         \
	}

int queue_take_many(struct kernel_call *c, struct queue *q, int64_t n, bool up_to,
		    struct mu_err *err)
{
	if (n < 0 || n > INT32_MAX)
		return mu_invalid(err, "%s must request a positive number of elements",
				  c->node->op);
	struct transfer *t = MU_NEW(struct transfer);
	*t = (struct transfer){DEQUEUE, .q = q, .want = n, .many = true, .up_to = up_to};
	resource_ref(&q->base);
	t->w.c = c;
	t->w.waiters = &q->waiters;
	t->w.owner = &q->base;
	t->w.free = queue_transfer_free;
	transfer_start(t, WAIT_TAKE);
	return 0;
}

static void queue_dequeue(struct kernel_call *c)
{
	queue_start(c, &(struct transfer){DEQUEUE}, WAIT_TAKE);
}

static void dequeue_many(struct kernel_call *c)
{
	queue_start(c, &(struct transfer){DEQUEUE, .many = true}, WAIT_TAKE);
}

static void dequeue_up_to(struct kernel_call *c)
{
	queue_start(c, &(struct transfer){DEQUEUE, .many = true, .up_to = true}, WAIT_TAKE);
}

static void close_queue(struct kernel_call *c)
{
	struct mu_err err;
	struct resource *r;

	if (!args_attr_bool(c->node, "cancel_pending_enqueues", false)) {
		queue_start(c, &(struct transfer){.w = {.what = "Close", .try = close_try}},
			    WAIT_PUT);
		return;
	}
	if (handle_find(c, 0, &queue_type, &r, &err)) {
		kernel_finish(c, &err);
		return;
	}
	struct queue *q = MU_CONTAINER(r, struct queue, base);
	wait_queue_fail(&q->waiters, WAIT_PUT, MU_CANCELLED, "was cancelled: the queue was closed");
	wait_queue_update(&q->waiters, mark_closed, q);
	resource_unref(r);
	kernel_finish(c, NULL);
}

/* FakeQueue: outputs a reference to the queue of a handle, for the queue ops of old graphs. */
static int name_queue(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_handle *h;

	MU_RETURN_IF_ERROR(resource_handle_in(c, 0, &h, err));
	return handle_output(c, h->container ? h->container : "", h->name, &queue_type, err);
}

static const struct kernel rows[] = {
    {"FIFOQueue FIFOQueueV2", .run = make_fifo},
    {"PaddingFIFOQueue PaddingFIFOQueueV2", .run = make_padding_fifo},
    {"RandomShuffleQueue RandomShuffleQueueV2", .run = make_random_shuffle},
    {"PriorityQueue PriorityQueueV2", .run = make_priority},
    {"FakeQueue", .run = name_queue},
    {"QueueSize QueueSizeV2", .run = queue_size},
    {"QueueIsClosed QueueIsClosedV2", .run = queue_is_closed},
    {"QueueEnqueue QueueEnqueueV2", .start = queue_enqueue},
    {"QueueEnqueueMany QueueEnqueueManyV2", .start = enqueue_many},
    {"QueueDequeue QueueDequeueV2", .start = queue_dequeue},
    {"QueueDequeueMany QueueDequeueManyV2", .start = dequeue_many},
    {"QueueDequeueUpTo QueueDequeueUpToV2", .start = dequeue_up_to},
    {"QueueClose QueueCloseV2", .start = close_queue},
};
KERNEL_TABLE(control_queue_ops, rows)
