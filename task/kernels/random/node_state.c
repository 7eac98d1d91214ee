/* SPDX-License-Identifier: Apache-2.0 */
#include "task/kernels/random/node_state.h"

#include <stdatomic.h>

#include "lib/base/random.h"
#include "task/kernels/engine/args.h"
#include "task/runtime/runtime.h"

void node_state_fini(struct node_state *s)
{
	struct resource *r = atomic_load(&s->resource);

	if (r)
		resource_unref(r);
}

int node_state_prepare(const struct mu_node *n, struct runtime *rt, void **state,
		       struct mu_err *err)
{
	*state = MU_NEW(struct node_state);
	return 0;
}

void node_state_release(void *state)
{
	node_state_fini(state);
	free(state);
}

int node_state_find(struct node_state *s, struct kernel_call *c, const char *suffix,
		    const struct resource_type *type,
		    struct resource *(*create)(void *node, struct mu_err *err),
		    struct resource **out, struct mu_err *err)
{
	struct resource *expected = NULL, *created;
	int rc = 0;

	if ((*out = atomic_load(&s->resource)))
		return 0;
	if (c->step) {
		MU_AUTO_FREE char *name = mu_xasprintf("%s%s", c->node->name, suffix);
		rc = resources_find_or_create(c->runtime->resources, step_session(c->step), name,
					      type, create, (void *)c->node, &created, err);
	} else if (!(created = create((void *)c->node, err))) {
		rc = -(int)err->code;
	}
	if (rc)
		return rc;
	*out = created;
	if (!atomic_compare_exchange_strong(&s->resource, &expected, created)) {
		resource_unref(created); /* another run of the node was first */
		*out = expected;
	}
	return 0;
}

/* ---- random numbers ---- */

struct generator {
	struct resource base;
	pthread_mutex_t lock;
	struct philox philox;
};

static void generator_free(struct resource *r)
{
	struct generator *g = MU_CONTAINER(r, struct generator, base);

	pthread_mutex_destroy(&g->lock);
	free(g);
}

static const struct resource_type generator_type = {"random generator", .free = generator_free};

static struct resource *generator_new(void *arg, struct mu_err *err)
{
	const struct mu_node *n = arg;
	uint64_t seeds[2] = {(uint64_t)args_attr_int(n, "seed", 0),
			     (uint64_t)args_attr_int(n, "seed2", 0)};

	if (!seeds[0] && !seeds[1])
		seeds[0] = mu_random_u64();
	struct generator *g = MU_NEW(struct generator);
	resource_init(&g->base, &generator_type);
	pthread_mutex_init(&g->lock, NULL);
	g->philox = philox_seeded(seeds[0], seeds[1]);
	return &g->base;
}

int node_draws(struct node_state *s, struct kernel_call *c, uint64_t groups, struct philox *out,
	       struct mu_err *err)
{
	struct resource *r;

	MU_RETURN_IF_ERROR(node_state_find(s, c, "", &generator_type, generator_new, &r, err));
	struct generator *g = MU_CONTAINER(r, struct generator, base);
	pthread_mutex_lock(&g->lock);
	*out = g->philox;
	philox_skip(&g->philox, groups);
	pthread_mutex_unlock(&g->lock);
	return 0;
}

/* The generator mixes the seeds once, so that a change of either seed changes all numbers. */
int stateless_draws(const struct kernel_call *c, unsigned i, struct philox *out, struct mu_err *err)
{
	int64_t seeds[2];
	uint32_t x[4];
	int n;

	MU_RETURN_IF_ERROR(args_ints(c, i, seeds, 2, &n, err));
	uint64_t a = (uint64_t)seeds[0], b = (uint64_t)seeds[1];
	struct philox base = {
	    .counter = {(uint32_t)a, (uint32_t)(a >> 32), (uint32_t)b, (uint32_t)(b >> 32)},
	    .key = {0x3ec8f720, 0x02461e29}};
	philox_next(&base, x);
	*out = (struct philox){.counter = {0, 0, x[2], x[3]}, .key = {x[0], x[1]}};
	return 0;
}
