/* SPDX-License-Identifier: Apache-2.0 */
/* Synchronous replicas: accumulators, token queues, and the chief's update.
 *
 * All these resources are on the ps tasks and shared by name. So each worker's graph uses the same
 * accumulators, and a new chief finds the state of the previous one. A worker adds its gradients
 * before it takes a token, so a restarted worker needs no token. Each worker has its own queue:
 * from a shared queue a fast worker could take the token of another one and count twice.
 *
 * The membership vector is beside the global step. It is not a variable of the model, because a
 * checkpoint must not restore workers that have left. Its name contains its length. So a worker
 * whose index is beyond the chief's vector fails, instead of waiting forever for a token.
 *
 * If a chief dies during an update, it may have taken gradients without applying them. The next
 * chief cannot find out which ones. So it starts a new epoch, in which all workers repeat the step
 * (see chief_reset). The step number of an accumulator has the epoch in its upper bits. So
 * gradients of earlier epochs are dropped and no gradient counts twice.
 */
#include "client/optim/optimizers.h"
#include "lib/builder/builder.h"

struct sync {
	struct mu_builder *b;
	struct mu_var *step;
	struct optim_grad *grads;
	struct mu_out *accumulators;
	unsigned n;
	struct mu_sync_options o;
	struct mu_out *queues; /* one for each possible worker */
	unsigned capacity;
	struct mu_out members_var, members; /* the membership vector, and its value */
	struct mu_out epoch;                /* a scalar on the same device */
};

/* Rounds the number of workers up to a length of the membership vector; 0: there are too many.
 * Each place has a queue that every update accesses. */
static unsigned capacity_for(unsigned workers)
{
	return workers <= 32 ? 32 : workers <= 256 ? 256 : workers <= 2048 ? 2048 : 0;
}

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
	for (unsigned i = 0; i < s->capacity; i++) {
		const char *name = mu_arena_printf(&s->b->graph->arena, "sync/tokens_%u", i);

		s->queues[i] =
		    mu_op(s->b, "FIFOQueueV2", .name = name,
			  MU_ATTRS(TOKENS("component_types"), MU_A_STR("shared_name", name)));
	}
	mu_pop_device(s->b);
}

static struct mu_out set_membership(struct sync *s, const char *name, int64_t value)
{
	return mu_op(s->b, "ScatterUpdate", .name = name,
		     MU_IN(s->members_var, mu_const_int(s->b, MU_INT32, s->o.self),
			   mu_const_int(s->b, MU_INT32, value)));
}

static struct mu_out shared_variable(struct sync *s, const char *name, enum mu_dtype dtype,
				     struct mu_pshape shape)
{
	return mu_op(s->b, "VariableV2", .name = name,
		     MU_ATTRS(MU_A_TYPE("dtype", dtype), MU_A_SHAPE("shape", &shape),
			      MU_A_STR("shared_name", name)));
}

static void make_members(struct sync *s, struct mu_sync *out)
{
	const char *name = mu_arena_printf(&s->b->graph->arena, "sync/members_%u", s->capacity);
	struct mu_pshape shape = MU_SHAPE(s->capacity);
	struct mu_out assigned[2];

	mu_push_device(s->b, s->step->ref.node->device);
	s->members_var = shared_variable(s, name, MU_INT32, shape);
	s->epoch = shared_variable(s, "sync/epoch", MU_INT64, MU_SCALAR);
	out->members = s->members = mu_identity(s->b, s->members_var);
	out->members_value = mu_placeholder(s->b, "sync/members_value", MU_INT32, shape);
	assigned[0] = mu_op(s->b, "Assign", MU_IN(s->members_var, out->members_value));
	assigned[1] = mu_op(s->b, "Assign", MU_IN(s->epoch, mu_const_int(s->b, MU_INT64, 0)));
	out->set_members = mu_group(s->b, "sync/set_members", assigned, 2);
	out->epoch = mu_identity(s->b, s->epoch);
	out->join = set_membership(s, "sync/join", 1);
	struct mu_out deregister = set_membership(s, "sync/left", 0);
	mu_push_control(s->b, &deregister, 1);
	out->leave = mu_identity(s->b, s->step->ref);
	out->leave_epoch = mu_identity(s->b, s->epoch);
	mu_pop_control(s->b);
	mu_pop_device(s->b);
}

/* Number of gradients per update: at least 1, at most the number of workers. */
static struct mu_out required_gradients(struct sync *s)
{
	struct mu_builder *b = s->b;
	struct mu_out one = mu_const_int(b, MU_INT32, 1), all = mu_sum(b, s->members, NULL, 0);
	struct mu_out n =
	    s->o.aggregate
		? mu_op(b, "Minimum", MU_IN(all, mu_const_int(b, MU_INT32, s->o.aggregate)))
		: mu_sub(b, all, mu_const_int(b, MU_INT32, s->o.backup));

	return mu_op(b, "Maximum", MU_IN(n, one));
}

static struct mu_out dequeue(struct sync *s, const char *name)
{
	return mu_op(s->b, "QueueDequeueV2", .name = name, MU_IN(s->queues[s->o.self]),
		     MU_ATTRS(TOKENS("component_types")));
}

/* Reads a variable after `after` has run. */
static struct mu_out read_after(struct sync *s, struct mu_out variable, struct mu_out after)
{
	mu_push_control(s->b, &after, 1);
	struct mu_out value = mu_identity(s->b, variable);
	mu_pop_control(s->b);
	return value;
}

/* Adds the gradients, then takes a token. */
static void worker_step(struct sync *s, struct mu_sync *out)
{
	struct mu_out *applied = MU_NEW_ARRAY(struct mu_out, s->n + 1), all_applied;

	for (unsigned i = 0; i < s->n; i++) {
		mu_push_device(s->b, s->grads[i].var->ref.node->device);
		applied[i] = mu_op(s->b, "AccumulatorApplyGradient",
				   MU_IN(s->accumulators[i], out->local_step, s->grads[i].grad));
		mu_pop_device(s->b);
	}
	mu_push_device(s->b, s->step->ref.node->device);
	out->add_gradients = all_applied = mu_group(s->b, "sync/given", applied, s->n);
	mu_push_control(s->b, &all_applied, 1);
	out->train = dequeue(s, "train");
	mu_pop_control(s->b);
	out->latest = read_after(s, s->step->ref, out->train);
	out->token = dequeue(s, "sync/token");
	out->token_latest = read_after(s, s->step->ref, out->token);
	mu_pop_device(s->b);
	free(applied);
}

/* Puts a token into the queue of each member. */
static struct mu_out enqueue(struct sync *s, const char *name, struct mu_out members,
			     struct mu_out token)
{
	struct mu_out *enqueues = MU_NEW_ARRAY(struct mu_out, s->capacity + 1), all;
	struct mu_out memberships =
	    mu_op(s->b, "Split", MU_IN(mu_const_int(s->b, MU_INT32, 0), members),
		  MU_ATTRS(MU_A_INT("num_split", s->capacity)));

	for (unsigned i = 0; i < s->capacity; i++)
		enqueues[i] =
		    mu_op(s->b, "QueueEnqueueManyV2",
			  MU_IN(s->queues[i],
				mu_op(s->b, "Fill", MU_IN(mu_port(memberships, (int)i), token))),
			  MU_ATTRS(TOKENS("Tcomponents")));
	all = mu_group(s->b, name, enqueues, s->capacity);
	free(enqueues);
	return all;
}

static struct mu_out chief_update(struct sync *s, const struct mu_optimizer *o)
{
	struct optim_grad *mean_grads = MU_NEW_ARRAY(struct optim_grad, s->n + 1);
	struct mu_out next, members, tokens, out, required;

	mu_push_device(s->b, s->step->ref.node->device);
	required = required_gradients(s);
	mu_pop_device(s->b);
	for (unsigned i = 0; i < s->n; i++) {
		mean_grads[i].var = s->grads[i].var;
		mu_push_device(s->b, mean_grads[i].var->ref.node->device);
		mean_grads[i].grad =
		    mu_op(s->b, "AccumulatorTakeGradient", MU_IN(s->accumulators[i], required),
			  MU_ATTRS(MU_A_TYPE("dtype", mean_grads[i].var->dtype)));
		mu_pop_device(s->b);
	}
	next = optim_apply(s->b, o, mean_grads, s->n, s->step);
	mu_push_device(s->b, s->step->ref.node->device);
	/* Read the members again after the step. A worker that joined meanwhile may have
	 * contributed to this update and waits for its token. A worker that joins later reads the
	 * new step and adds gradients for it. */
	members = read_after(s, s->members_var, next);
	tokens = enqueue(s, "sync/enqueue", members, next);
	mu_push_control(s->b, &tokens, 1);
	out = mu_op(s->b, "Identity", .name = "sync/update", MU_IN(next));
	mu_pop_control(s->b);
	mu_pop_device(s->b);
	free(mean_grads);
	return out;
}

/* Empties an accumulator and sets its step. First adds zeros with a step that is not dropped, so
 * that the accumulator has a gradient to take. */
static struct mu_out empty_accumulator(struct sync *s, unsigned i, struct mu_out step_number)
{
	struct mu_builder *b = s->b;
	struct mu_var *v = s->grads[i].var;
	struct mu_out done;

	mu_push_device(b, v->ref.node->device);
	done = mu_op(b, "AccumulatorSetGlobalStep", MU_IN(s->accumulators[i], step_number));
	mu_push_control(b, &done, 1);
	done = mu_op(b, "AccumulatorApplyGradient",
		     MU_IN(s->accumulators[i], mu_const_int(b, MU_INT64, INT64_MAX),
			   mu_op(b, "ZerosLike", MU_IN(mu_read(v)))));
	mu_pop_control(b);
	mu_push_control(b, &done, 1);
	done = mu_op(b, "AccumulatorTakeGradient",
		     MU_IN(s->accumulators[i], mu_const_int(b, MU_INT32, 1)),
		     MU_ATTRS(MU_A_TYPE("dtype", v->dtype)));
	mu_pop_control(b);
	mu_push_control(b, &done, 1); /* taking the gradient incremented its step */
	done = mu_op(b, "AccumulatorSetGlobalStep", MU_IN(s->accumulators[i], step_number));
	mu_pop_control(b);
	mu_pop_device(b);
	return done;
}

/* Starts the next epoch: empties the accumulators, so that no gradient of the last epoch counts,
 * then stores the epoch. Then sends a token to the current members. A worker that joins later reads
 * the epoch. */
static struct mu_out chief_reset(struct sync *s)
{
	struct mu_builder *b = s->b;
	struct mu_out *emptied = MU_NEW_ARRAY(struct mu_out, s->n + 1), epoch, step_number, all,
		      epoch_assigned;
	const char *device = s->step->ref.node->device;

	mu_push_device(b, device);
	epoch = mu_add(b, mu_identity(b, s->epoch), mu_const_int(b, MU_INT64, 1));
	step_number =
	    mu_add(b, mu_read(s->step), mu_mul(b, epoch, mu_const_int(b, MU_INT64, MU_SYNC_EPOCH)));
	mu_pop_device(b);
	for (unsigned i = 0; i < s->n; i++)
		emptied[i] = empty_accumulator(s, i, step_number);
	mu_push_device(b, device);
	all = mu_group(b, "sync/emptied", emptied, s->n);
	mu_push_control(b, &all, 1);
	epoch_assigned = mu_op(b, "Assign", MU_IN(s->epoch, epoch));
	mu_pop_control(b);
	all = enqueue(s, "sync/again", read_after(s, s->members_var, epoch_assigned),
		      mu_sub(b, mu_const_int(b, MU_INT64, MU_SYNC_AGAIN), epoch));
	mu_pop_device(b);
	free(emptied);
	return all;
}

/* Fails the builder if the options are invalid. */
static bool options_are_valid(struct mu_builder *b, const struct mu_sync_options *o,
			      const struct mu_var *step)
{
	if (step && o->backup < o->workers && o->self < capacity_for(o->workers))
		return true;
	mu_builder_fail(
	    b, MU_INVALID_ARGUMENT,
	    "worker %u of %u workers, %u of them backup, are invalid synchronous replicas: use "
	    "fewer backup workers than workers, and pass a global step",
	    o->self, o->workers, o->backup);
	return false;
}

void mu_minimize_sync(struct mu_builder *b, const struct mu_optimizer *o, struct mu_out loss,
		      struct mu_var *step, const struct mu_sync_options *sync, struct mu_sync *out)
{
	struct sync s = {.b = b, .step = step, .o = *sync, .capacity = capacity_for(sync->workers)};

	*out =
	    (struct mu_sync){.train = MU_NO_OUT, .capacity = s.capacity, .workers = sync->workers};
	if (!options_are_valid(b, sync, step))
		return;
	s.grads = MU_NEW_ARRAY(struct optim_grad, mu_var_count(b) + 1);
	/* Full gradients, also for gathered tables: a sparse accumulator divides each row by the
	 * number of workers that contributed to it. That is not the average of the gradients. */
	s.n = optim_gradients(b, loss, s.grads);
	optim_regularize(b, o, s.grads, s.n);
	s.accumulators = MU_NEW_ARRAY(struct mu_out, s.n + 1);
	s.queues = MU_NEW_ARRAY(struct mu_out, s.capacity);
	if (s.n) {
		make_accumulators(&s);
		make_queues(&s);
		make_members(&s, out);
		out->local_step = mu_placeholder(b, "sync/local_step", MU_INT64, MU_SCALAR);
		worker_step(&s, out);
		out->update = chief_update(&s, o);
		out->reset = chief_reset(&s);
		mu_push_device(b, step->ref.node->device);
		out->end_workers =
		    enqueue(&s, "sync/over", s.members, mu_const_int(b, MU_INT64, MU_SYNC_OVER));
		mu_pop_device(b);
	}
	free(s.queues);
	free(s.accumulators);
	free(s.grads);
}
