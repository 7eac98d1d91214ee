// SPDX-License-Identifier: Apache-2.0
/* Synchronous replicas: accumulators, token queues, and the chief's update.
 *
 * All of it is on the ps tasks and shared by name, so that each worker's graph finds the same
 * accumulators and whoever is chief finds what was left there.  A worker gives its gradients before
 * it asks for a token: one that starts again therefore needs none to take part.  Each worker has a
 * queue of its own; with one for all a fast worker could take the token of another and count twice.
 */
#include "client/builder.h"
#include "client/optim/optimizers.h"

struct sync {
	struct mu_builder *b;
	struct mu_var *step;
	struct optim_grad *grads;
	struct mu_out *accumulators;
	unsigned n;
	int32_t aggregate;
	struct mu_out *queues; /* one for each worker */
	unsigned workers, self;
};

static enum mu_dtype token_types[] = {MU_INT64};
#define TOKENS(key) MU_A_TYPES(key, token_types, 1)

static void make_accumulators(struct sync *s)
{
	for (unsigned i = 0; i < s->n; i++) {
		struct mu_var *v = s->grads[i].var;
		const char *name = mu_arena_printf(&s->b->graph->arena, "%s/accumulator", v->name);

		mu_push_device(s->b, v->ref.node->device);
		s->accumulators[i] =
		    mu_op(s->b, "ConditionalAccumulator", .name = name,
			  MU_ATTRS(MU_A_TYPE("dtype", v->dtype), MU_A_SHAPE("shape", &v->shape),
				   MU_A_STR("shared_name", name)));
		mu_pop_device(s->b);
	}
}

static void make_queues(struct sync *s)
{
	mu_push_device(s->b, s->step->ref.node->device);
	for (unsigned i = 0; i < s->workers; i++) {
		const char *name = mu_arena_printf(&s->b->graph->arena, "sync/tokens_%u", i);

		s->queues[i] =
		    mu_op(s->b, "FIFOQueueV2", .name = name,
			  MU_ATTRS(TOKENS("component_types"), MU_A_STR("shared_name", name)));
	}
	mu_pop_device(s->b);
}

static struct mu_out dequeue(struct sync *s, const char *name)
{
	return mu_op(s->b, "QueueDequeueV2", .name = name, MU_IN(s->queues[s->self]),
		     MU_ATTRS(TOKENS("component_types")));
}

/* The global step, read after this has happened. */
static struct mu_out step_after(struct sync *s, struct mu_out after)
{
	mu_push_control(s->b, &after, 1);
	struct mu_out step = mu_identity(s->b, s->step->ref);
	mu_pop_control(s->b);
	return step;
}

/* Gradients in, then a token out. */
static void worker_step(struct sync *s, struct mu_sync *out)
{
	struct mu_out *given = MU_NEW_ARRAY(struct mu_out, s->n + 1), all;

	for (unsigned i = 0; i < s->n; i++) {
		mu_push_device(s->b, s->grads[i].var->ref.node->device);
		given[i] = mu_op(s->b, "AccumulatorApplyGradient",
				 MU_IN(s->accumulators[i], out->local_step, s->grads[i].grad));
		mu_pop_device(s->b);
	}
	mu_push_device(s->b, s->step->ref.node->device);
	all = mu_group(s->b, "sync/given", given, s->n);
	mu_push_control(s->b, &all, 1);
	out->train = dequeue(s, "train");
	mu_pop_control(s->b);
	out->latest = step_after(s, out->train);
	out->token = dequeue(s, "sync/token");
	out->token_latest = step_after(s, out->token);
	mu_pop_device(s->b);
	free(given);
}

/* A token for each worker, saying this step. */
static struct mu_out enqueue(struct sync *s, const char *name, struct mu_out step)
{
	struct mu_out *put = MU_NEW_ARRAY(struct mu_out, s->workers + 1), all;

	for (unsigned i = 0; i < s->workers; i++)
		put[i] = mu_op(s->b, "QueueEnqueueV2", MU_IN(s->queues[i], step),
			       MU_ATTRS(TOKENS("Tcomponents")));
	all = mu_group(s->b, name, put, s->workers);
	free(put);
	return all;
}

static struct mu_out chief_update(struct sync *s, const struct mu_optimizer *o)
{
	struct optim_grad *taken = MU_NEW_ARRAY(struct optim_grad, s->n + 1);
	struct mu_out next, tokens, out;

	for (unsigned i = 0; i < s->n; i++) {
		taken[i].var = s->grads[i].var;
		mu_push_device(s->b, taken[i].var->ref.node->device);
		taken[i].grad =
		    mu_op(s->b, "AccumulatorTakeGradient",
			  MU_IN(s->accumulators[i], mu_const_int(s->b, MU_INT32, s->aggregate)),
			  MU_ATTRS(MU_A_TYPE("dtype", taken[i].var->dtype)));
		mu_pop_device(s->b);
	}
	next = optim_apply(s->b, o, taken, s->n, s->step);
	mu_push_device(s->b, s->step->ref.node->device);
	tokens = enqueue(s, "sync/enqueue", next);
	mu_push_control(s->b, &tokens, 1);
	out = mu_op(s->b, "Identity", .name = "sync/update", MU_IN(next));
	mu_pop_control(s->b);
	mu_pop_device(s->b);
	free(taken);
	return out;
}

static struct mu_out chief_reset(struct sync *s)
{
	struct mu_out *set = MU_NEW_ARRAY(struct mu_out, s->n + 1), all;

	for (unsigned i = 0; i < s->n; i++) {
		mu_push_device(s->b, s->grads[i].var->ref.node->device);
		set[i] = mu_op(s->b, "AccumulatorSetGlobalStep",
			       MU_IN(s->accumulators[i], mu_read(s->step)));
		mu_pop_device(s->b);
	}
	mu_push_device(s->b, s->step->ref.node->device);
	all = mu_group(s->b, "sync/reset", set, s->n);
	mu_pop_device(s->b);
	free(set);
	return all;
}

void mu_minimize_sync(struct mu_builder *b, const struct mu_optimizer *o, struct mu_out loss,
		      struct mu_var *step, unsigned aggregate, unsigned workers, unsigned self,
		      struct mu_sync *out)
{
	struct sync s = {.b = b,
			 .step = step,
			 .aggregate = (int32_t)aggregate,
			 .workers = workers,
			 .self = self};

	*out = (struct mu_sync){.train = MU_NO_OUT};
	if (!step || !aggregate || aggregate > workers || self >= workers) {
		mu_builder_fail(b, MU_INVALID_ARGUMENT,
				"gradients of %u of %u workers cannot make a step: aggregate "
				"between 1 and the number of workers, and count the steps",
				aggregate, workers);
		return;
	}
	s.grads = MU_NEW_ARRAY(struct optim_grad, mu_var_count(b) + 1);
	s.n = optim_gradients(b, o, loss, s.grads);
	s.accumulators = MU_NEW_ARRAY(struct mu_out, s.n + 1);
	s.queues = MU_NEW_ARRAY(struct mu_out, workers);
	if (s.n) {
		make_accumulators(&s);
		make_queues(&s);
		out->local_step = mu_placeholder(b, "sync/local_step", MU_INT64, MU_SCALAR);
		worker_step(&s, out);
		out->update = chief_update(&s, o);
		out->reset = chief_reset(&s);
		mu_push_device(b, step->ref.node->device);
		out->tokens = enqueue(&s, "sync/tokens", mu_read(step));
		mu_pop_device(b);
	}
	free(s.queues);
	free(s.accumulators);
	free(s.grads);
}
