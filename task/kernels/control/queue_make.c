/* SPDX-License-Identifier: Apache-2.0 */
/* Making queues, and what does not wait: closing, size. */
#include <sys/random.h>

#include "task/kernels/control/queue.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/state/handles.h"

static int read_spec(const struct mu_node *n, struct queue_spec *s, struct mu_err *err)
{
	const struct mu_attr *types = mu_node_attr(n, "component_types");
	const struct mu_attr *shapes = mu_node_attr(n, "shapes");

	unsigned own = s->by_priority; /* components that the attributes do not tell */

	if (!types || types->kind != MU_ATTR_LIST + MU_ATTR_TYPE || types->n + own < 1 ||
	    types->n + own > QUEUE_MAX_COMPONENTS)
		return mu_fail(err, MU_INVALID_ARGUMENT, "a queue has 1 to %d components",
			       QUEUE_MAX_COMPONENTS);
	s->n = types->n + own;
	s->type[0] = MU_INT64;
	for (unsigned i = own; i < s->n; i++)
		s->type[i] = types->types[i - own];
	s->shaped = shapes && shapes->kind == MU_ATTR_LIST + MU_ATTR_SHAPE && shapes->n;
	if (s->shaped && shapes->n != types->n)
		return mu_fail(err, MU_INVALID_ARGUMENT, "%u shapes for %u components", shapes->n,
			       types->n);
	s->shape[0] = (struct mu_pshape){.rank = 0};
	for (unsigned i = own; i < s->n; i++)
		s->shape[i] = s->shaped ? shapes->shapes[i - own] : (struct mu_pshape){.rank = -1};
	s->capacity = args_attr_int(n, "capacity", -1);
	s->min_after = args_attr_int(n, "min_after_dequeue", 0);
	if (s->min_after < 0 || (s->capacity >= 0 && s->min_after >= s->capacity && s->shuffled))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "min_after_dequeue must be >= 0 and below the capacity: %lld, %lld",
			       (long long)s->min_after, (long long)s->capacity);
	s->seed = (uint64_t)args_attr_int(n, "seed", 0);
	s->seed2 = (uint64_t)args_attr_int(n, "seed2", 0);
	if (s->shuffled && !s->seed && !s->seed2 &&
	    getrandom(&s->seed, sizeof s->seed, 0) != sizeof s->seed)
		return mu_fail(err, MU_INTERNAL, "no random seed from the system");
	return 0;
}

static struct resource *make(void *arg, struct mu_err *err)
{
	return &queue_new(arg)->base;
}

static int queue_make(struct kernel_call *c, struct queue_spec *s, struct mu_err *err)
{
	struct resource *r;
	int rc;

	if ((rc = read_spec(c->node, s, err)) ||
	    (rc = handle_make(c, &queue_type, make, s, &r, err)))
		return rc;
	const struct queue_spec *have = &MU_CONTAINER(r, struct queue, base)->spec;
	if (have->n != s->n || memcmp(have->type, s->type, s->n * sizeof s->type[0]) != 0)
		rc = mu_fail(err, MU_INVALID_ARGUMENT,
			     "Shared queue '%s' has other component types than those asked for",
			     r->name);
	else if (have->capacity != s->capacity)
		rc = mu_fail(err, MU_INVALID_ARGUMENT,
			     "Shared queue '%s' has capacity %lld but requested capacity was %lld",
			     r->name, (long long)have->capacity, (long long)s->capacity);
	resource_unref(r);
	return rc;
}

static int fifo(struct kernel_call *c, struct mu_err *err)
{
	return queue_make(c, &(struct queue_spec){.kind = "FIFOQueue"}, err);
}

static int padding_fifo(struct kernel_call *c, struct mu_err *err)
{
	return queue_make(c, &(struct queue_spec){.kind = "PaddingFIFOQueue", .padded = true}, err);
}

static int random_shuffle(struct kernel_call *c, struct mu_err *err)
{
	return queue_make(c, &(struct queue_spec){.kind = "RandomShuffleQueue", .shuffled = true},
			  err);
}

static int priority(struct kernel_call *c, struct mu_err *err)
{
	return queue_make(c, &(struct queue_spec){.kind = "PriorityQueue", .by_priority = true},
			  err);
}

static int give(struct kernel_call *c, enum mu_dtype t, const void *v, struct mu_err *err)
{
	struct mu_tensor out;
	int rc = mu_tensor_scalar(&out, t, v, err);

	if (!rc)
		kernel_out_take(c, 0, out);
	return rc;
}

static int size_or_closed(struct kernel_call *c, bool size, struct mu_err *err)
{
	struct resource *r;
	int rc = handle_find(c, 0, &queue_type, &r, err);

	if (rc)
		return rc;
	struct queue *q = MU_CONTAINER(r, struct queue, base);
	pthread_mutex_lock(&q->gate.lock);
	int32_t n = (int32_t)q->count;
	bool closed = q->closed;
	pthread_mutex_unlock(&q->gate.lock);
	resource_unref(r);
	return size ? give(c, MU_INT32, &n, err) : give(c, MU_BOOL, &closed, err);
}

static int queue_size(struct kernel_call *c, struct mu_err *err)
{
	return size_or_closed(c, true, err);
}

static int queue_is_closed(struct kernel_call *c, struct mu_err *err)
{
	return size_or_closed(c, false, err);
}

/* Rows for both generations of an op: by reference and by handle. */
#define BOTH(name, fn)                                                                             \
	{name, .run = fn},                                                                         \
	{                                                                                          \
		name "V2", .run = fn                                                               \
	}
static const struct kernel rows[] = {
    BOTH("FIFOQueue", fifo),
    BOTH("PaddingFIFOQueue", padding_fifo),
    BOTH("RandomShuffleQueue", random_shuffle),
    BOTH("PriorityQueue", priority),
    BOTH("QueueSize", queue_size),
    BOTH("QueueIsClosed", queue_is_closed),
};
KERNEL_TABLE(queue_make, rows)
