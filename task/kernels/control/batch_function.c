/* SPDX-License-Identifier: Apache-2.0 */
/* BatchFunction joins calls of several steps to one call of a function. The last of several calls
 * of Batch outputs the rows of all; Unbatch returns to each call its rows (unbatch.c).
 *
 * A call joins the open batch of its queue. Each batch has a thread, because functions may wait.
 * The thread waits until the batch is full or its timeout has expired, and until fewer than
 * num_batch_threads batches run. The rows of a cancelled call remain in the batch. The queue's lock
 * also guards the batches; closing the queue waits for their threads, which use the runtime. */
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/cond.h"
#include "lib/base/random.h"
#include "task/kernels/control/batch.h"
#include "task/kernels/control/wait_queue.h"
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/state/handles.h"
#include "task/runtime/function.h"

enum { MAX_ALLOWED_SIZES = 256, MAX_BATCH_CALLS = 1 << 20 };

struct batcher;
struct batch {
	struct batch *next; /* in the batcher's list `all` */
	struct batcher *b;
	_Atomic unsigned refs; /* of the thread and of each call */
	struct function *f;    /* NULL: the op is Batch */
	struct caller caller;
	unsigned n_calls, n_in, n_captured, n_out;
	struct mu_tensor *in;       /* n_in for each call */
	struct mu_tensor *captured; /* of the first call */
	struct mu_tensor *out;
	int64_t *first; /* the first row of each call, and the end row of the last one */
	int64_t *ids;   /* Batch: one for each call */
	int64_t size;   /* rows with padding, set by the thread */
	int64_t due_ms;
	bool full, done;
	struct mu_err err;
};

struct batcher {
	struct resource base;
	struct wait_queue calls;
	pthread_cond_t work; /* with the queue's lock */
	struct batch *all;   /* the batches that have a thread */
	struct batch *open;
	unsigned n_waiting, n_running, n_threads;
	bool stopped;
};

struct batch_call {
	struct waiter w;
	struct batcher *b;
	struct batch *batch; /* NULL: it has not joined one */
	unsigned index;
};

struct batch_limits {
	int64_t size, n_threads, timeout_us, max_enqueued; /* size: rows of a batch */
	int64_t allowed[MAX_ALLOWED_SIZES];
	int n_allowed;
};

/* ---- the queue ---- */

static void batcher_free(struct resource *r)
{
	struct batcher *b = MU_CONTAINER(r, struct batcher, base);

	pthread_cond_destroy(&b->work);
	wait_queue_fini(&b->calls);
	free(b);
}

static void batcher_close(struct resource *r)
{
	struct batcher *b = MU_CONTAINER(r, struct batcher, base);

	pthread_mutex_lock(&b->calls.lock);
	b->stopped = true;
	for (struct batch *t = b->all; t; t = t->next)
		caller_stop(&t->caller);
	pthread_cond_broadcast(&b->work);
	while (b->n_threads)
		pthread_cond_wait(&b->work, &b->calls.lock);
	pthread_mutex_unlock(&b->calls.lock);
	wait_queue_close(&b->calls, "ends: its queue was removed");
}

static const struct resource_type batcher_type = {
    .name = "batch queue", .free = batcher_free, .close = batcher_close};

static struct resource *batcher_new(void *arg, struct mu_err *err)
{
	struct batcher *b = MU_NEW(struct batcher);

	resource_init(&b->base, &batcher_type);
	wait_queue_init(&b->calls);
	pthread_cond_init(&b->work, NULL);
	return &b->base;
}

static int batcher_find(struct kernel_call *c, struct batcher **out, struct mu_err *err)
{
	const char *queue = args_attr_string(c->node, "batching_queue", "");
	MU_AUTO_BUF container = {0};
	MU_AUTO_BUF name = {0};
	struct resource *r;

	mu_buf_printf(&name, "%s/%s", resource_name(c), queue);
	MU_RETURN_IF_ERROR(resources_find_or_create(c->runtime->resources,
						    handle_container(c, &container), name.data,
						    &batcher_type, batcher_new, NULL, &r, err));
	*out = MU_CONTAINER(r, struct batcher, base);
	return 0;
}

static int read_limits(const struct mu_node *n, struct batch_limits *l, struct mu_err *err)
{
	l->size = args_attr_int(n, "max_batch_size", 0);
	l->n_threads = args_attr_int(n, "num_batch_threads", 0);
	l->timeout_us = args_attr_int(n, "batch_timeout_micros", 0);
	l->max_enqueued = args_attr_int(n, "max_enqueued_batches", 10);
	l->n_allowed = args_attr_ints(n, "allowed_batch_sizes", l->allowed, MAX_ALLOWED_SIZES);
	if (l->n_allowed < 0)
		return mu_invalid(err, "over %d allowed_batch_sizes", MAX_ALLOWED_SIZES);
	for (int i = 1; i < l->n_allowed; i++)
		if (l->allowed[i] <= l->allowed[i - 1])
			return mu_invalid(
			    err, "allowed_batch_sizes entries must be monotonically increasing");
	if (l->n_allowed && l->allowed[l->n_allowed - 1] != l->size)
		return mu_invalid(err,
				  "final entry in allowed_batch_sizes must equal max_batch_size");
	if (l->n_threads < 1)
		return mu_invalid(err, "num_batch_threads must be positive; was %lld",
				  (long long)l->n_threads);
	if (l->size < 1)
		return mu_invalid(err, "input_batch_size_limit must be positive; was %lld",
				  (long long)l->size);
	if (l->timeout_us < 0)
		return mu_invalid(err, "batch_timeout_micros must be non-negative; was %lld",
				  (long long)l->timeout_us);
	return 0;
}

/* ---- batches ---- */

static void batch_release_inputs(struct batch *t)
{
	for (unsigned i = 0; i < t->n_calls * t->n_in; i++)
		mu_tensor_unref(&t->in[i]);
	for (unsigned i = 0; i < t->n_captured; i++)
		mu_tensor_unref(&t->captured[i]);
	if (t->f)
		function_free(mu_steal(&t->f));
}

static void batch_unref(struct batch *t)
{
	if (atomic_fetch_sub(&t->refs, 1) != 1)
		return;
	for (unsigned i = 0; i < t->n_out; i++)
		mu_tensor_unref(&t->out[i]);
	caller_fini(&t->caller);
	free(t->in);
	free(t->captured);
	free(t->out);
	free(t->first);
	free(t->ids);
	free(t);
}

int batch_join_rows(const struct mu_tensor *first, unsigned n, unsigned stride, int64_t size,
		    struct mu_tensor *out, struct mu_err *err)
{
	int64_t dims[MU_MAX_RANK], row, at = 0;
	struct mu_shape shape;

	if (first->shape.rank == 0)
		return mu_invalid(err, "rows are joined of tensors of one dimension or more");
	row = mu_shape_product(&first->shape, 1, first->shape.rank);
	memcpy(dims, first->shape.dim, sizeof first->shape.dim);
	dims[0] = size;
	MU_RETURN_IF_ERROR(mu_shape_set(&shape, first->shape.rank, dims, err));
	for (unsigned i = 1; i < n; i++) {
		const struct mu_tensor *t = &first[i * stride];
		dims[0] = t->shape.dim[0];
		if (t->dtype != first->dtype || t->shape.rank != shape.rank ||
		    memcmp(t->shape.dim, dims, sizeof *dims * (size_t)shape.rank)) {
			MU_AUTO_BUF one = {0};
			mu_buf_puts(&one, mu_shape_str(&first->shape));
			return mu_invalid(
			    err,
			    "Dimensions of inputs should match: shape[0] = %s vs. shape[%u] = %s",
			    one.data, i, mu_shape_str(&t->shape));
		}
	}
	MU_RETURN_IF_ERROR(mu_tensor_new(out, first->dtype, &shape, err));
	for (unsigned i = 0; i < n; i++) {
		const struct mu_tensor *t = &first[i * stride];
		elems_copy(out->dtype, out->data, at, t->data, 0, t->shape.count);
		at += t->shape.count;
	}
	for (; at < shape.count; at += row)
		elems_copy(out->dtype, out->data, at, out->data, 0, row);
	return 0;
}

int batch_copy_rows(const struct mu_tensor *t, int64_t from, int64_t n, struct mu_tensor *out,
		    struct mu_err *err)
{
	int64_t dims[MU_MAX_RANK], row = mu_shape_product(&t->shape, 1, t->shape.rank);
	struct mu_shape shape;

	memcpy(dims, t->shape.dim, sizeof t->shape.dim);
	dims[0] = n;
	MU_RETURN_IF_ERROR(mu_shape_set(&shape, t->shape.rank, dims, err));
	MU_RETURN_IF_ERROR(mu_tensor_new(out, t->dtype, &shape, err));
	elems_copy(t->dtype, out->data, 0, t->data, from * row, n * row);
	return 0;
}

static int check_output(const struct mu_tensor *t, int64_t size, struct mu_err *err)
{
	if (t->shape.rank == 0)
		return mu_fail(err, MU_FAILED_PRECONDITION,
			       "Batched output tensor has 0 dimensions");
	if (t->shape.dim[0] != size)
		return mu_fail(err, MU_FAILED_PRECONDITION,
			       "Batched output tensor's 0th dimension does not equal the sum of "
			       "the 0th dimension sizes of the input tensors");
	return 0;
}

static int batch_execute(struct batch *t, struct mu_err *err)
{
	unsigned n = t->n_in + t->n_captured;
	struct mu_tensor *in = MU_NEW_ARRAY(struct mu_tensor, n + 1);
	int rc = 0;

	for (unsigned k = 0; k < t->n_in && !rc; k++)
		rc = batch_join_rows(&t->in[k], t->n_calls, t->n_in, t->size, &in[k], err);
	for (unsigned k = 0; k < t->n_captured; k++)
		in[t->n_in + k] = mu_tensor_ref(&t->captured[k]);
	if (!rc && t->f)
		rc = function_call(t->f, &t->caller, in, n, t->out, t->n_out, err);
	for (unsigned k = 0; k < t->n_out && !rc && !t->f; k++)
		t->out[k] = mu_tensor_ref(&in[k]);
	for (unsigned k = 0; k < t->n_out && !rc && t->f; k++)
		rc = check_output(&t->out[k], t->size, err);
	for (unsigned k = 0; k < n; k++)
		mu_tensor_unref(&in[k]);
	free(in);
	return rc;
}

static int64_t padded_size(const struct batch_limits *l, int64_t rows)
{
	for (int i = 0; i < l->n_allowed; i++)
		if (rows && l->allowed[i] >= rows)
			return l->allowed[i];
	return rows;
}

struct batch_start {
	struct batch *t;
	struct batch_limits limits;
};

/* Waits until the batch may run, then closes it and sets its size. */
static void batch_begin(struct batch *t, const struct batch_limits *l)
{
	struct batcher *b = t->b;

	pthread_mutex_lock(&b->calls.lock);
	for (;;) {
		bool due = t->full || mu_clock_ms() >= t->due_ms;
		if (b->stopped || (due && b->n_running < l->n_threads))
			break;
		mu_cond_wait_until(&b->work, &b->calls.lock, due ? INT64_MAX : t->due_ms);
	}
	if (b->open == t)
		b->open = NULL;
	b->n_waiting--;
	b->n_running++;
	t->size = padded_size(l, t->first[t->n_calls]);
	pthread_mutex_unlock(&b->calls.lock);
}

/* Removes the batch from the batcher.  The thread does not use the runtime after this. */
static void batch_end(struct batch *t)
{
	struct batcher *b = t->b;

	batch_release_inputs(t);
	pthread_mutex_lock(&b->calls.lock);
	for (struct batch **p = &b->all; *p; p = &(*p)->next)
		if (*p == t) {
			*p = t->next;
			break;
		}
	b->n_running--;
	b->n_threads--;
	pthread_cond_broadcast(&b->work);
	pthread_mutex_unlock(&b->calls.lock);
}

static void batch_set_done(void *arg)
{
	((struct batch *)arg)->done = true;
}

static void batch_run(void *arg)
{
	struct batch_start *s = arg;
	struct batch *t = s->t;
	struct batcher *b = t->b;

	batch_begin(t, &s->limits);
	free(s);
	batch_execute(t, &t->err);
	batch_end(t);
	wait_queue_update(&b->calls, batch_set_done, t);
	batch_unref(t);
	resource_unref(&b->base);
}

/* ---- calls ---- */

static const struct mu_attr *input_types(const struct mu_node *n)
{
	const struct mu_attr *types = mu_node_attr(n, "Tin");

	return types ? types : mu_node_attr(n, "T"); /* of Batch */
}

/* Opens a batch and starts its thread.  Called with the lock. */
static int batch_open(struct batcher *b, struct kernel_call *c, const struct batch_limits *l,
		      struct mu_err *err)
{
	const struct mu_attr *f = mu_node_attr(c->node, "f"), *in = input_types(c->node);
	struct batch_start *s = MU_NEW(struct batch_start);
	struct batch *t = MU_NEW(struct batch);

	*s = (struct batch_start){t, *l};
	*t = (struct batch){.b = b,
			    .n_in = in->n,
			    .n_captured = c->n_in - in->n,
			    .n_out = f ? c->n_out : in->n,
			    .due_ms =
				mu_clock_ms() + l->timeout_us / 1000 + (l->timeout_us % 1000 > 0)};
	atomic_init(&t->refs, 1);
	caller_init(&t->caller);
	t->captured = MU_NEW_ARRAY(struct mu_tensor, t->n_captured + 1);
	t->out = MU_NEW_ARRAY(struct mu_tensor, t->n_out + 1);
	t->first = MU_NEW_ARRAY(int64_t, 1);
	for (unsigned k = 0; k < t->n_captured; k++)
		t->captured[k] = mu_tensor_ref(kernel_in(c, t->n_in + k));
	int rc = f ? function_new(c->runtime, c->step, f->func, &t->f, err) : 0;
	if (!rc && f && function_outputs(t->f) != t->n_out)
		rc = mu_invalid(err, "the function has %u outputs, not %u", function_outputs(t->f),
				t->n_out);
	resource_ref(&b->base);
	if (!rc)
		rc = runtime_start_thread(c->runtime, batch_run, s, err);
	if (rc) {
		free(s);
		batch_release_inputs(t);
		batch_unref(t);
		resource_unref(&b->base); /* the call has a reference */
		return rc;
	}
	t->next = b->all;
	b->all = b->open = t;
	b->n_waiting++;
	b->n_threads++;
	return 0;
}

static void batch_fill(struct batcher *b)
{
	b->open->full = true;
	b->open = NULL;
	pthread_cond_broadcast(&b->work);
}

/* Nodes that share a queue must have the same inputs and outputs. */
static int check_compatible(const struct batch *t, const struct kernel_call *c, struct mu_err *err)
{
	bool is_function = mu_node_attr(c->node, "f") != NULL;
	unsigned n = input_types(c->node)->n;
	bool is_compatible = n == t->n_in && is_function == (t->f != NULL) &&
			     (is_function ? c->n_out : n) == t->n_out;

	for (unsigned k = 0; k < n && is_compatible; k++)
		is_compatible = kernel_in(c, k)->dtype == t->in[k].dtype;
	return is_compatible
		   ? 0
		   : mu_invalid(err, "inputs or outputs are not those of the other calls of this "
				     "batching queue, in number or type");
}

/* Adds the call to the open batch, or to a new one.  Called with the lock. */
static int batch_join(struct batch_call *call, struct mu_err *err)
{
	struct kernel_call *c = call->w.c;
	int64_t rows = kernel_in(c, 0)->shape.dim[0];
	struct batcher *b = call->b;
	struct batch_limits l;

	MU_RETURN_IF_ERROR(read_limits(c->node, &l, err));
	if (b->stopped)
		return mu_fail(err, MU_CANCELLED, "the queue of batches was removed");
	if (b->open && (b->open->first[b->open->n_calls] + rows > l.size ||
			b->open->n_calls == MAX_BATCH_CALLS))
		batch_fill(b);
	if (!b->open && b->n_waiting && b->n_waiting >= l.max_enqueued)
		return mu_fail(err, MU_UNAVAILABLE,
			       "The batch scheduling queue to which this task was submitted is "
			       "full; currently %u batches enqueued and max_enqueued_batches is "
			       "%lld",
			       b->n_waiting, (long long)l.max_enqueued);
	MU_RETURN_IF_ERROR(b->open ? check_compatible(b->open, c, err) : batch_open(b, c, &l, err));
	struct batch *t = b->open;
	call->batch = t;
	call->index = t->n_calls++;
	atomic_fetch_add(&t->refs, 1);
	t->in = mu_xrealloc(t->in, (size_t)t->n_calls * t->n_in * sizeof *t->in);
	t->first = mu_xrealloc(t->first, (t->n_calls + 1) * sizeof *t->first);
	for (unsigned k = 0; k < t->n_in; k++)
		t->in[call->index * t->n_in + k] = mu_tensor_ref(kernel_in(c, k));
	t->first[t->n_calls] = t->first[call->index] + rows;
	t->ids = mu_xrealloc(t->ids, t->n_calls * sizeof *t->ids);
	t->ids[call->index] = (int64_t)mu_random_u64();
	if (t->first[t->n_calls] >= l.size)
		batch_fill(b);
	return 0;
}

/* Outputs the call's rows of each output of the function. */
static int output_rows(const struct batch_call *call, struct mu_err *err)
{
	const struct mu_attr *types = mu_node_attr(call->w.c->node, "Tout");
	const struct batch *t = call->batch;
	int64_t from = t->first[call->index], n = t->first[call->index + 1] - from;
	struct mu_tensor part;

	for (unsigned k = 0; k < t->n_out; k++) {
		if (t->out[k].dtype != types->types[k])
			return mu_invalid(err, "the function's output %u is %s, not %s", k,
					  mu_dtype_name(t->out[k].dtype),
					  mu_dtype_name(types->types[k]));
		MU_RETURN_IF_ERROR(batch_copy_rows(&t->out[k], from, n, &part, err));
		kernel_out_take(call->w.c, k, part);
	}
	return 0;
}

/* The last call of a Batch gets all rows, the other calls get none. */
static int output_all_rows(const struct batch_call *call, struct mu_err *err)
{
	const struct batch *t = call->batch;
	struct kernel_call *c = call->w.c;
	int64_t n = call->index + 1 == t->n_calls ? t->n_calls : 0;
	struct mu_tensor *index, rows;

	for (unsigned k = 0; k < t->n_out; k++) {
		if (n)
			rows = mu_tensor_ref(&t->out[k]);
		else
			MU_RETURN_IF_ERROR(batch_copy_rows(kernel_in(c, k), 0, 0, &rows, err));
		kernel_out_take(c, k, rows);
	}
	MU_RETURN_IF_ERROR(
	    kernel_out_dims(c, t->n_out, MU_INT64, 2, (int64_t[]){n, 3}, &index, err));
	for (int64_t i = 0; i < n; i++)
		memcpy(MU_DATA(int64_t, index) + 3 * i,
		       (int64_t[]){t->ids[i], t->first[i], t->first[i + 1]}, 3 * sizeof(int64_t));
	return kernel_out_value(c, t->n_out + 1, MU_INT64, &t->ids[call->index], err);
}

static bool batch_call_try(struct waiter *w)
{
	struct batch_call *call = MU_CONTAINER(w, struct batch_call, w);

	if (!call->batch && batch_join(call, &w->err))
		return true;
	if (!call->batch->done)
		return false;
	w->err = call->batch->err;
	if (w->err.code == MU_OK)
		(mu_node_attr(w->c->node, "f") ? output_rows : output_all_rows)(call, &w->err);
	return true;
}

static void batch_call_free(struct waiter *w)
{
	struct batch_call *call = MU_CONTAINER(w, struct batch_call, w);

	if (call->batch)
		batch_unref(call->batch);
	free(call);
}

static int check_inputs(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_attr *types = input_types(c->node);
	struct batch_limits l;

	MU_RETURN_IF_ERROR(read_limits(c->node, &l, err));
	for (unsigned i = 0; i < types->n; i++) {
		const struct mu_shape *s = &kernel_in(c, i)->shape;
		if (s->rank == 0)
			return mu_invalid(err,
					  "Batching input tensors must have at least one "
					  "dimension. Below are the input tensors: number %u "
					  "has shape []",
					  i);
		if (s->dim[0] != kernel_in(c, 0)->shape.dim[0])
			return mu_invalid(err, "Batching input tensors supplied in a given op "
					       "invocation must have equal 0th-dimension size");
		if (s->dim[0] > l.size)
			return mu_invalid(
			    err, "Task size %lld is larger than maximum input batch size %lld",
			    (long long)s->dim[0], (long long)l.size);
	}
	return 0;
}

static void batch_function(struct kernel_call *c)
{
	struct mu_err err;
	struct batcher *b;

	if (check_inputs(c, &err) || batcher_find(c, &b, &err)) {
		kernel_finish(c, &err);
		return;
	}
	struct batch_call *call = MU_NEW(struct batch_call);
	*call = (struct batch_call){.b = b,
				    .w = {.c = c,
					  .waiters = &b->calls,
					  .owner = &b->base,
					  .what = c->node->op,
					  .try = batch_call_try,
					  .free = batch_call_free}};
	wait_queue_add(&call->w, WAIT_PEEK);
}

static const struct kernel rows[] = {
    {"BatchFunction Batch", KERNEL_NO_FOLD, .start = batch_function},
};
KERNEL_TABLE(control_batch_function, rows)
