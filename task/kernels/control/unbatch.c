/* SPDX-License-Identifier: Apache-2.0 */
/* Unbatch returns to each call its rows of a result that was computed for a batch. UnbatchGrad is
 * the reverse: the call that has the batch gets the gradients of all calls, joined in the order of
 * the batch.
 *
 * The calls come from different steps and share the node's resource. Each has the id that Batch
 * assigned. The last call of a batch has its index, a matrix of [id, first row, end row]; the
 * others have an empty one. */
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/map.h"
#include "lib/base/timer.h"
#include "task/kernels/control/batch.h"
#include "task/kernels/control/wait_queue.h"
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/state/handles.h"

struct piece {
	/* Unbatch: the rows for the call; unset until the batch arrives.  UnbatchGrad: the call's
	 * gradient. */
	struct mu_tensor rows;
	int64_t expires_ms;
};

struct unbatcher {
	struct resource base;
	struct wait_queue calls;
	struct mu_map pieces;   /* id -> struct piece */
	struct mu_timer *timer; /* removes expired pieces; NULL: the resource is closed */
};

struct unbatch_call {
	struct waiter w;
	struct unbatcher *u;
	int64_t id;
	bool joined; /* pieces has, or had, a piece of this call */
};

/* ---- the resource ---- */

static struct piece *find_piece(const struct unbatcher *u, int64_t id)
{
	return mu_map_get_n(&u->pieces, &id, sizeof id);
}

static void add_piece(struct unbatcher *u, int64_t id, const struct mu_tensor *rows,
		      int64_t expires_ms)
{
	struct piece *p = MU_NEW(struct piece);

	*p = (struct piece){rows ? mu_tensor_ref(rows) : (struct mu_tensor){0}, expires_ms};
	mu_map_put_n(&u->pieces, &id, sizeof id, p);
}

static void remove_piece(struct unbatcher *u, int64_t id)
{
	struct piece *p = mu_map_del_n(&u->pieces, &id, sizeof id);

	if (p)
		mu_tensor_unref(&p->rows);
	free(p);
}

static void remove_expired(void *arg)
{
	struct unbatcher *u = arg;
	MU_AUTO_FREE int64_t *expired = MU_NEW_ARRAY(int64_t, u->pieces.count + 1);
	int64_t now = mu_clock_ms();
	size_t n = 0;

	mu_map_each (&u->pieces, s)
		if (((const struct piece *)s->value)->expires_ms <= now)
			memcpy(&expired[n++], s->key, sizeof *expired);
	while (n)
		remove_piece(u, expired[--n]);
}

static void unbatch_timeout(void *arg)
{
	wait_queue_update(&((struct unbatcher *)arg)->calls, remove_expired, arg);
}

static void unbatcher_free(struct resource *r)
{
	struct unbatcher *u = MU_CONTAINER(r, struct unbatcher, base);

	mu_map_each (&u->pieces, s)
		((struct piece *)s->value)->expires_ms = 0;
	remove_expired(u);
	mu_map_fini(&u->pieces);
	mu_timer_free(u->timer);
	wait_queue_fini(&u->calls);
	free(u);
}

static void unbatcher_close(struct resource *r)
{
	struct unbatcher *u = MU_CONTAINER(r, struct unbatcher, base);

	pthread_mutex_lock(&u->calls.lock);
	struct mu_timer *timer = mu_steal(&u->timer);
	pthread_mutex_unlock(&u->calls.lock);
	mu_timer_free(timer);
	wait_queue_close(&u->calls, "ends: its resource was removed");
}

static const struct resource_type unbatcher_type = {
    .name = "Unbatch resource", .free = unbatcher_free, .close = unbatcher_close};
static const struct resource_type gradients_type = {
    .name = "UnbatchGrad resource", .free = unbatcher_free, .close = unbatcher_close};

static struct resource *unbatcher_new(void *type, struct mu_err *err)
{
	struct unbatcher *u = MU_NEW(struct unbatcher);

	resource_init(&u->base, type);
	wait_queue_init(&u->calls);
	mu_map_init(&u->pieces);
	u->timer = mu_timer_new();
	return &u->base;
}

/* ---- Unbatch, with the lock ---- */

/* Adds rows of the batch for each call in the index. */
static int add_rows(struct unbatch_call *call, int64_t expires_ms, struct mu_err *err)
{
	const struct mu_tensor *data = kernel_in(call->w.c, 0), *index = kernel_in(call->w.c, 1);
	int64_t at = 0, n;

	for (int64_t i = 0; i < index->shape.dim[0]; i++, at += n) {
		const int64_t *row = MU_DATA(int64_t, index) + 3 * i;
		MU_AUTO_TENSOR part = {0};
		if (__builtin_sub_overflow(row[2], row[1], &n) || n < 0 ||
		    n > data->shape.dim[0] - at)
			return mu_invalid(err, "Sum of split sizes must not exceed dim0-size of "
					       "input tensor");
		MU_RETURN_IF_ERROR(batch_copy_rows(data, at, n, &part, err));
		struct piece *p = find_piece(call->u, row[0]);
		if (p && mu_tensor_is_set(&p->rows))
			return mu_fail(err, MU_ALREADY_EXISTS,
				       "Multiple tensors returned for same batch key.");
		if (p)
			p->rows = mu_tensor_ref(&part);
		else
			add_piece(call->u, row[0], &part, expires_ms);
	}
	return 0;
}

static int unbatch_join(struct unbatch_call *call, struct mu_err *err)
{
	int64_t timeout_us = args_attr_int(call->w.c->node, "timeout_micros", 0);
	int64_t timeout_ms = timeout_us / 1000 + (timeout_us % 1000 > 0);
	int64_t expires_ms = mu_clock_ms() + timeout_ms;
	struct unbatcher *u = call->u;
	const struct piece *p = find_piece(u, call->id);
	int rc;

	if (p && mu_tensor_is_set(&p->rows)) /* the batch of this call, if any, is ignored */
		return 0;
	if (p)
		return mu_fail(err, MU_ALREADY_EXISTS,
			       "Multiple session runs with the same batch key.");
	add_piece(u, call->id, NULL, expires_ms);
	if ((rc = add_rows(call, expires_ms, err)))
		remove_piece(u, call->id);
	else if (u->timer)
		mu_timer_add(u->timer, (long)timeout_ms, unbatch_timeout, u);
	call->w.made_progress = true;
	return rc;
}

static bool unbatch_try(struct waiter *w)
{
	struct unbatch_call *call = MU_CONTAINER(w, struct unbatch_call, w);
	enum mu_dtype type = kernel_in(w->c, 0)->dtype;

	if (!call->joined && unbatch_join(call, &w->err))
		return true;
	call->joined = true;
	const struct piece *p = find_piece(call->u, call->id);
	if (p && !mu_tensor_is_set(&p->rows))
		return false;
	if (!p)
		mu_fail(&w->err, MU_DEADLINE_EXCEEDED,
			"Batched data did not arrive within timeout window.");
	else if (p->rows.dtype != type)
		mu_invalid(&w->err, "the rows of the batch are %s, not %s",
			   mu_dtype_name(p->rows.dtype), mu_dtype_name(type));
	else
		kernel_out_take(w->c, 0, mu_tensor_ref(&p->rows));
	remove_piece(call->u, call->id);
	return true;
}

static void unbatch_undo(struct waiter *w)
{
	struct unbatch_call *call = MU_CONTAINER(w, struct unbatch_call, w);

	if (call->joined)
		remove_piece(call->u, call->id);
}

/* ---- UnbatchGrad, with the lock ---- */

static int gradient_join(struct unbatch_call *call, struct mu_err *err)
{
	const struct kernel_call *c = call->w.c;

	if (find_piece(call->u, call->id))
		return mu_invalid(err, "Two runs with the same batch key.");
	add_piece(call->u, call->id, kernel_in(c, 2), INT64_MAX);
	call->joined = call->w.made_progress = true;
	return kernel_in(c, 0)->shape.count && !kernel_in(c, 1)->shape.count
		   ? mu_invalid(err, "batch_index is empty while the tensor isn't.")
		   : 0;
}

/* Outputs the joined gradients of all calls in the index. All of them have arrived. */
static int gradient_output(struct unbatch_call *call, struct mu_err *err)
{
	const struct mu_tensor *index = kernel_in(call->w.c, 1);
	int64_t n = index->shape.dim[0], size = 0;
	MU_AUTO_FREE struct mu_tensor *parts = MU_NEW_ARRAY(struct mu_tensor, (size_t)n);
	struct mu_tensor out;
	int rc = 0;

	for (int64_t i = 0; i < n && !rc; i++) {
		int64_t id = MU_DATA(int64_t, index)[3 * i];
		const struct piece *p = find_piece(call->u, id);
		if (!p)
			rc = mu_fail(err, MU_INTERNAL, "bad bookkeeping of available tensors.");
		else if (p->rows.dtype != kernel_in(call->w.c, 2)->dtype)
			rc = mu_invalid(err, "a gradient is %s", mu_dtype_name(p->rows.dtype));
		else
			parts[i] = mu_tensor_ref(&p->rows);
		size += rc ? 0 : p->rows.shape.dim[0];
		remove_piece(call->u, id);
	}
	if (!rc && !(rc = batch_join_rows(parts, (unsigned)n, 1, size, &out, err)))
		kernel_out_take(call->w.c, 0, out);
	for (int64_t i = 0; i < n; i++)
		mu_tensor_unref(&parts[i]);
	return rc;
}

static bool gradient_try(struct waiter *w)
{
	struct unbatch_call *call = MU_CONTAINER(w, struct unbatch_call, w);
	const struct mu_tensor *index = kernel_in(w->c, 1);
	struct mu_tensor none;

	if (!call->joined && gradient_join(call, &w->err))
		return true;
	if (!kernel_in(w->c, 0)->shape.count) {
		if (!batch_copy_rows(kernel_in(w->c, 2), 0, 0, &none, &w->err))
			kernel_out_take(w->c, 0, none);
		return true;
	}
	for (int64_t i = 0; i < index->shape.dim[0]; i++)
		if (!find_piece(call->u, MU_DATA(int64_t, index)[3 * i]))
			return false;
	gradient_output(call, &w->err);
	return true;
}

/* ---- calls ---- */

static void unbatch_call_free(struct waiter *w)
{
	free(MU_CONTAINER(w, struct unbatch_call, w));
}

static int check_unbatch(const struct kernel_call *c, bool is_grad, struct mu_err *err)
{
	const struct mu_shape *data = &kernel_in(c, is_grad ? 2 : 0)->shape;
	const struct mu_shape *index = &kernel_in(c, 1)->shape;
	const struct mu_shape *id = &kernel_in(c, is_grad ? 3 : 2)->shape;

	if (data->rank == 0)
		return mu_invalid(err, "the tensor must have at least one dimension");
	MU_RETURN_IF_ERROR(args_rank(c, 1, 2, err));
	if (!is_grad && index->dim[0] > data->dim[0])
		return mu_invalid(err,
				  "Wrong shape for index tensor. Expected 0th dimension size to be "
				  "no greater than %lld; Got: %lld.",
				  (long long)data->dim[0], (long long)index->dim[0]);
	if (index->dim[1] != 3)
		return mu_invalid(err,
				  "Wrong shape for index tensor. Expected 1st dimension size to be "
				  "3 ; Got: %lld.",
				  (long long)index->dim[1]);
	return id->rank
		   ? mu_invalid(err, "Input id should be scalar; Got: shape %s.", mu_shape_str(id))
		   : 0;
}

static void unbatch_start(struct kernel_call *c, bool is_grad)
{
	const struct resource_type *type = is_grad ? &gradients_type : &unbatcher_type;
	MU_AUTO_BUF container = {0};
	struct resource *r;
	struct mu_err err;

	if (check_unbatch(c, is_grad, &err) ||
	    resources_find_or_create(c->runtime->resources, handle_container(c, &container),
				     resource_name(c), type, unbatcher_new, (void *)type, &r,
				     &err)) {
		kernel_finish(c, &err);
		return;
	}
	struct unbatch_call *call = MU_NEW(struct unbatch_call);
	*call = (struct unbatch_call){.u = MU_CONTAINER(r, struct unbatcher, base),
				      .id = *MU_DATA(int64_t, kernel_in(c, is_grad ? 3 : 2)),
				      .w = {.c = c,
					    .owner = r,
					    .what = c->node->op,
					    .try = is_grad ? gradient_try : unbatch_try,
					    .undo = is_grad ? NULL : unbatch_undo,
					    .free = unbatch_call_free}};
	call->w.waiters = &call->u->calls;
	wait_queue_add(&call->w, WAIT_PEEK);
}

static void unbatch(struct kernel_call *c)
{
	unbatch_start(c, false);
}

static void unbatch_grad(struct kernel_call *c)
{
	unbatch_start(c, true);
}

static const struct kernel rows[] = {
    {"Unbatch", KERNEL_NO_FOLD, .start = unbatch},
    {"UnbatchGrad", KERNEL_NO_FOLD, .start = unbatch_grad},
};
KERNEL_TABLE(control_unbatch, rows)
