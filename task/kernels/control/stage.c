/* SPDX-License-Identifier: Apache-2.0 */
/* Staging areas: tuples of tensors that one part of a step stores for another part or for the next
 * step. Their name alone identifies them; the first op that uses a name creates the area. */
#include "task/kernels/control/wait_queue.h"
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/state/variables.h"

struct tuple {
	struct tuple *next;
	size_t bytes;
	unsigned n;
	struct mu_tensor t[];
};

struct area {
	struct resource base;
	struct wait_queue waiters;
	int64_t capacity, limit; /* tuples and bytes; 0: unlimited */
	struct tuple *first, **last;
	int64_t count;
	size_t bytes;
};

static struct tuple *tuple_new(unsigned n)
{
	struct tuple *t = mu_xcalloc(1, sizeof *t + n * sizeof t->t[0]);

	t->n = n;
	return t;
}

static void tuple_free(struct tuple *t)
{
	for (unsigned i = 0; t && i < t->n; i++)
		mu_tensor_unref(&t->t[i]);
	free(t);
}

static struct tuple *stage_pop(struct area *a)
{
	struct tuple *t = a->first;

	a->first = t->next;
	if (!a->first)
		a->last = &a->first;
	a->count--;
	a->bytes -= t->bytes;
	return t;
}

static void stage_clear(void *arg)
{
	struct area *a = arg;

	while (a->first)
		tuple_free(stage_pop(a));
}

static void area_free(struct resource *r)
{
	struct area *a = MU_CONTAINER(r, struct area, base);

	stage_clear(a);
	wait_queue_fini(&a->waiters);
	free(a);
}

static size_t area_bytes(struct resource *r)
{
	struct area *a = MU_CONTAINER(r, struct area, base);

	pthread_mutex_lock(&a->waiters.lock);
	size_t bytes = a->bytes;
	pthread_mutex_unlock(&a->waiters.lock);
	return bytes;
}

static void area_close(struct resource *r)
{
	struct area *a = MU_CONTAINER(r, struct area, base);

	wait_queue_close(&a->waiters, "ends: its staging area was reset");
}

static const struct resource_type area_type = {
    .name = "staging area", .free = area_free, .bytes = area_bytes, .close = area_close};

static struct resource *area_new(void *arg, struct mu_err *err)
{
	const struct mu_node *n = arg;
	struct area *a = MU_NEW(struct area);

	resource_init(&a->base, &area_type);
	wait_queue_init(&a->waiters);
	a->capacity = args_attr_int(n, "capacity", 0);
	a->limit = args_attr_int(n, "memory_limit", 0);
	a->last = &a->first;
	return &a->base;
}

/* Finds or creates the node's area; *out is a new reference. */
static int stage_area_of(struct kernel_call *c, struct area **out, struct mu_err *err)
{
	MU_AUTO_BUF buf = {0};
	struct resource *r;

	MU_RETURN_IF_ERROR(resources_find_or_create(
	    c->runtime->resources, resource_container(c, &buf), resource_name(c), &area_type,
	    area_new, (void *)c->node, &r, err));
	*out = MU_CONTAINER(r, struct area, base);
	return 0;
}

/* ---- calls that wait ---- */

struct transfer {
	struct waiter w;
	struct area *area;
	struct tuple *tuple;
	int64_t index; /* StagePeek: of the tuple */
};

static void transfer_free(struct waiter *w)
{
	struct transfer *t = MU_CONTAINER(w, struct transfer, w);

	tuple_free(t->tuple);
	free(t);
}

static bool put_try(struct waiter *w)
{
	struct transfer *t = MU_CONTAINER(w, struct transfer, w);
	struct area *a = t->area;
	size_t bytes = t->tuple->bytes;

	if (a->limit > 0 && bytes > (size_t)a->limit) {
		mu_fail(&w->err, MU_RESOURCE_EXHAUSTED,
			"Attempted to insert tensors with combined size of '%zu' bytes into "
			"Staging Area with a memory limit of '%lld'.",
			bytes, (long long)a->limit);
		return true;
	}
	if ((a->capacity > 0 && a->count >= a->capacity) ||
	    (a->limit > 0 && a->bytes + bytes > (size_t)a->limit))
		return false;
	*a->last = t->tuple;
	a->last = &t->tuple->next;
	a->count++;
	a->bytes += bytes;
	t->tuple = NULL;
	return true;
}

/* The outputs share the tuple's tensors. */
static int output_tuple(struct kernel_call *c, const struct tuple *t, struct mu_err *err)
{
	const struct mu_attr *types = mu_node_attr(c->node, "dtypes");

	if (t->n != c->n_out || !types || types->kind != MU_ATTR_LIST + MU_ATTR_TYPE ||
	    types->n != t->n)
		return mu_invalid(err, "Mismatch stage/unstage: %u vs. %u", t->n, c->n_out);
	for (unsigned i = 0; i < t->n; i++)
		if (t->t[i].dtype != types->types[i])
			return mu_invalid(
			    err, "component %u was staged as %s and is asked for as %s", i,
			    mu_dtype_name(t->t[i].dtype), mu_dtype_name(types->types[i]));
	for (unsigned i = 0; i < t->n; i++)
		kernel_out_take(c, i, mu_tensor_ref(&t->t[i]));
	return 0;
}

static bool take_try(struct waiter *w)
{
	struct transfer *t = MU_CONTAINER(w, struct transfer, w);

	if (!t->area->count)
		return false;
	struct tuple *first = stage_pop(t->area);
	output_tuple(w->c, first, &w->err);
	tuple_free(first);
	return true;
}

static bool peek_try(struct waiter *w)
{
	struct transfer *t = MU_CONTAINER(w, struct transfer, w);
	const struct tuple *at = t->area->first;

	if (t->index >= t->area->count)
		return false;
	for (int64_t i = 0; i < t->index; i++)
		at = at->next;
	output_tuple(w->c, at, &w->err);
	return true;
}

/* Takes kind->tuple. */
static void stage_start(struct kernel_call *c, const struct transfer *kind, int wait_kind)
{
	struct mu_err err;
	struct area *a;

	if (stage_area_of(c, &a, &err)) {
		tuple_free(kind->tuple);
		kernel_finish(c, &err);
		return;
	}
	struct transfer *t = MU_NEW(struct transfer);
	*t = *kind;
	t->area = a;
	t->w.c = c;
	t->w.waiters = &a->waiters;
	t->w.owner = &a->base;
	t->w.free = transfer_free;
	wait_queue_add(&t->w, wait_kind);
}

static void stage(struct kernel_call *c)
{
	struct tuple *t = tuple_new(c->n_in);

	for (unsigned i = 0; i < c->n_in; i++) {
		t->t[i] = mu_tensor_ref(kernel_in(c, i));
		t->bytes += mu_tensor_bytes(&t->t[i]);
	}
	stage_start(c, &(struct transfer){.w = {.what = "Stage", .try = put_try}, .tuple = t},
		    WAIT_PUT);
}

static void unstage(struct kernel_call *c)
{
	stage_start(c, &(struct transfer){.w = {.what = "Unstage", .try = take_try}}, WAIT_TAKE);
}

static void peek(struct kernel_call *c)
{
	struct transfer t = {.w = {.what = "StagePeek", .try = peek_try}};
	struct mu_err err;

	if (args_rank(c, 0, 0, &err) || args_int(c, 0, &t.index, &err)) {
		kernel_finish(c, &err);
		return;
	}
	if (t.index < 0) {
		mu_invalid(&err, "index must not be negative: %lld", (long long)t.index);
		kernel_finish(c, &err);
		return;
	}
	stage_start(c, &t, WAIT_PEEK);
}

/* ---- calls that do not wait ---- */

static int stage_size(struct kernel_call *c, struct mu_err *err)
{
	struct area *a;

	MU_RETURN_IF_ERROR(stage_area_of(c, &a, err));
	pthread_mutex_lock(&a->waiters.lock);
	int32_t n = (int32_t)a->count;
	pthread_mutex_unlock(&a->waiters.lock);
	resource_unref(&a->base);
	return kernel_out_value(c, 0, MU_INT32, &n, err);
}

static int clear_all(struct kernel_call *c, struct mu_err *err)
{
	struct area *a;

	MU_RETURN_IF_ERROR(stage_area_of(c, &a, err));
	wait_queue_update(&a->waiters, stage_clear, a);
	resource_unref(&a->base);
	return 0;
}

static const struct kernel rows[] = {
    {"Stage", .start = stage},        {"Unstage", .start = unstage},
    {"StagePeek", .start = peek},     {"StageSize", .run = stage_size},
    {"StageClear", .run = clear_all},
};
KERNEL_TABLE(control_stage, rows)
