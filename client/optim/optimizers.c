/* SPDX-License-Identifier: Apache-2.0 */
/* Optimizers: one Apply op for each variable, on the task of the variable. So a gradient crosses
 * the network once, and slot variables never do. If the graph gathers rows of a variable, only
 * these rows are updated. Adam is an exception: it updates every row in every step. */
#include "client/optim/optimizers.h"

#include "lib/builder/builder.h"

static const char *const optimizer_names[] = {"sgd",     "momentum", "adagrad", "adam",
					      "rmsprop", "adadelta", "ftrl"};
/* The slot variables of each kind, named as TensorFlow names them. */
static const char *const slot_names[][2] = {[MU_MOMENTUM] = {"Momentum"},
					    [MU_ADAGRAD] = {"Adagrad"},
					    [MU_ADAM] = {"Adam", "Adam_1"},
					    [MU_RMSPROP] = {"RMSProp", "RMSProp_1"},
					    [MU_ADADELTA] = {"Adadelta", "Adadelta_1"},
					    [MU_FTRL] = {"Ftrl", "Ftrl_1"}};

int mu_optimizer_named(const char *name, double rate, struct mu_optimizer *out, struct mu_err *err)
{
	for (unsigned i = 0; i < MU_COUNT(optimizer_names); i++)
		if (strcmp(optimizer_names[i], name) == 0) {
			*out = (struct mu_optimizer){.kind = (int)i, .rate = rate};
			return 0;
		}
	if (strcmp(name, "nesterov") == 0) {
		*out = (struct mu_optimizer){.kind = MU_MOMENTUM, .rate = rate, .nesterov = true};
		return 0;
	}
	return mu_fail(err, MU_INVALID_ARGUMENT,
		       "unknown optimizer '%s': expected sgd, momentum, nesterov, adagrad, adam, "
		       "rmsprop, adadelta or ftrl",
		       name);
}

static double default_if_zero(double v, double default_value)
{
	return v != 0 ? v : default_value;
}

static struct mu_var *slot_variable(struct mu_builder *b, const struct mu_var *v, const char *name,
				    double initial)
{
	const char *full = mu_arena_printf(&b->graph->arena, "%s/%s", v->name, name);

	return mu_variable(b, full, v->dtype, v->shape,
			   (struct mu_init){.kind = MU_INIT_VALUE, .value = initial}, false);
}

/* Adds an update op. For a gradient of rows the op is the Sparse… variant, with the row indices as
 * an input behind the gradient. */
static struct mu_out add_update_op(struct mu_builder *b, const struct optim_grad *g,
				   struct mu_op_args args)
{
	struct mu_out in[16];
	unsigned n = 0;

	if (!g->rows.node)
		return mu_op_add(b, &args);
	for (unsigned i = 0; i < args.n_in && n + 1 < MU_COUNT(in); i++) {
		in[n++] = args.in[i];
		if (args.in[i].node == g->grad.node)
			in[n++] = g->rows;
	}
	args.op = mu_arena_printf(&b->graph->arena, "Sparse%s", args.op);
	args.in = in;
	args.n_in = n;
	return mu_op_add(b, &args);
}
#define UPDATE(b, g, op_name, ...)                                                                 \
	add_update_op((b), (g), (struct mu_op_args){.op = op_name, __VA_ARGS__})

/* State of Adam that all variables share. */
struct adam {
	struct mu_var *beta1_power, *beta2_power;
};

/* The powers have the type of the first variable. */
static struct mu_out read_as(struct mu_builder *b, struct mu_var *power, enum mu_dtype type)
{
	return power->dtype == type ? mu_read(power) : mu_cast(b, mu_read(power), type);
}

static struct mu_out apply_adam(struct mu_builder *b, const struct mu_optimizer *o,
				struct mu_var *v, struct mu_out g, struct mu_out rate,
				const struct adam *adam)
{
	struct mu_var *m = slot_variable(b, v, slot_names[MU_ADAM][0], 0);
	struct mu_var *w = slot_variable(b, v, slot_names[MU_ADAM][1], 0);

	if (!m || !w)
		return MU_NO_OUT;
	return mu_op(b, "ApplyAdam",
		     MU_IN(v->ref, m->ref, w->ref, read_as(b, adam->beta1_power, v->dtype),
			   read_as(b, adam->beta2_power, v->dtype), rate,
			   builder_number(b, v->dtype, default_if_zero(o->beta1, 0.9)),
			   builder_number(b, v->dtype, default_if_zero(o->beta2, 0.999)),
			   builder_number(b, v->dtype, default_if_zero(o->eps, 1e-8)), g));
}

/* Optimizers with two slots for each variable and no shared state. */
static struct mu_out apply_two_slots(struct mu_builder *b, const struct mu_optimizer *o,
				     const struct optim_grad *g, struct mu_out rate)
{
	static const double initial[] = {[MU_RMSPROP] = 1, [MU_FTRL] = 0.1, [MU_ADADELTA] = 0};
	const char *const *name = slot_names[o->kind];
	struct mu_var *v = g->var;
	struct mu_var *s = slot_variable(b, v, name[0], initial[o->kind]),
		      *w = slot_variable(b, v, name[1], 0);

	if (!s || !w)
		return MU_NO_OUT;
	if (o->kind == MU_RMSPROP)
		return UPDATE(b, g, "ApplyRMSProp",
			      MU_IN(v->ref, s->ref, w->ref, rate,
				    builder_number(b, v->dtype, default_if_zero(o->rho, 0.9)),
				    builder_number(b, v->dtype, o->momentum),
				    builder_number(b, v->dtype, default_if_zero(o->eps, 1e-10)),
				    g->grad));
	if (o->kind == MU_ADADELTA)
		return UPDATE(b, g, "ApplyAdadelta",
			      MU_IN(v->ref, s->ref, w->ref, rate,
				    builder_number(b, v->dtype, default_if_zero(o->rho, 0.95)),
				    builder_number(b, v->dtype, default_if_zero(o->eps, 1e-8)),
				    g->grad));
	return UPDATE(b, g, "ApplyFtrl",
		      MU_IN(v->ref, s->ref, w->ref, g->grad, rate,
			    builder_number(b, v->dtype, o->l1), builder_number(b, v->dtype, 0),
			    builder_number(b, v->dtype, -0.5)));
}

static struct mu_out apply_sgd(struct mu_builder *b, const struct optim_grad *g, struct mu_out rate)
{
	if (!g->rows.node)
		return mu_op(b, "ApplyGradientDescent", MU_IN(g->var->ref, rate, g->grad));
	return mu_op(b, "ScatterSub", MU_IN(g->var->ref, g->rows, mu_mul(b, g->grad, rate)));
}

static struct mu_out apply_update(struct mu_builder *b, const struct mu_optimizer *o,
				  const struct optim_grad *g, struct mu_out scheduled,
				  const struct adam *adam)
{
	struct mu_var *v = g->var;
	struct mu_out rate = !scheduled.node        ? builder_number(b, v->dtype, o->rate)
			     : v->dtype == MU_FLOAT ? scheduled
						    : mu_cast(b, scheduled, v->dtype);
	struct mu_var *s;

	switch (o->kind) {
	case MU_SGD:
		return apply_sgd(b, g, rate);
	case MU_MOMENTUM:
		s = slot_variable(b, v, slot_names[MU_MOMENTUM][0], 0);
		if (!s)
			return MU_NO_OUT;
		return UPDATE(b, g, "ApplyMomentum",
			      MU_IN(v->ref, s->ref, rate, g->grad,
				    builder_number(b, v->dtype, default_if_zero(o->momentum, 0.9))),
			      MU_ATTRS(MU_A_BOOL("use_nesterov", o->nesterov)));
	case MU_ADAGRAD:
		s = slot_variable(b, v, slot_names[MU_ADAGRAD][0],
				  default_if_zero(o->initial_accumulator, 0.1));
		if (!s)
			return MU_NO_OUT;
		return UPDATE(b, g, "ApplyAdagrad", MU_IN(v->ref, s->ref, rate, g->grad));
	case MU_ADAM:
		return apply_adam(b, o, v, g->grad, rate, adam);
	case MU_RMSPROP:
	case MU_ADADELTA:
	case MU_FTRL:
		return apply_two_slots(b, o, g, rate);
	}
	return MU_NO_OUT;
}

static void create_adam_powers(struct mu_builder *b, const struct mu_optimizer *o,
			       const struct mu_var *v, struct adam *a)
{
	struct mu_init b1 = {.kind = MU_INIT_VALUE, .value = default_if_zero(o->beta1, 0.9)};
	struct mu_init b2 = {.kind = MU_INIT_VALUE, .value = default_if_zero(o->beta2, 0.999)};

	mu_push_device(b, v->ref.node->device);
	a->beta1_power = mu_variable(b, "beta1_power", v->dtype, MU_SCALAR, b1, false);
	a->beta2_power = mu_variable(b, "beta2_power", v->dtype, MU_SCALAR, b2, false);
	mu_pop_device(b);
}

/* Advances beta^t after the updates of all variables. Returns both assignments. */
static void advance_adam(struct mu_builder *b, const struct mu_optimizer *o, const struct adam *a,
			 const struct mu_out *applied, unsigned n, struct mu_out out[2])
{
	struct mu_var *power[2] = {a->beta1_power, a->beta2_power};
	double beta[2] = {default_if_zero(o->beta1, 0.9), default_if_zero(o->beta2, 0.999)};

	mu_push_control(b, applied, n);
	for (int i = 0; i < 2; i++) {
		if (!power[i])
			continue;
		mu_push_device(b, power[i]->ref.node->device);
		out[i] = mu_assign(
		    b, power[i],
		    mu_mul(b, mu_read(power[i]), builder_number(b, power[i]->dtype, beta[i])));
		mu_pop_device(b);
	}
	mu_pop_control(b);
}

/* Groups the updates; with a step, increments it after them. */
static struct mu_out add_train_op(struct mu_builder *b, const struct mu_out *updates, unsigned n,
				  struct mu_var *step)
{
	struct mu_out update, next;

	if (builder_failed(b))
		return MU_NO_OUT;
	if (!step)
		return mu_group(b, "train/update", updates, n);
	/* The group is on the device of the step: on the worker it would cost a round trip. */
	mu_push_device(b, step->ref.node->device);
	update = mu_group(b, "train/update", updates, n);
	mu_pop_device(b);
	mu_push_control(b, &update, 1);
	mu_push_device(b, step->ref.node->device);
	next = mu_op(b, "AssignAdd", .name = "train",
		     MU_IN(step->ref, mu_const_int(b, step->dtype, 1)));
	mu_pop_device(b);
	mu_pop_control(b);
	return next;
}

unsigned optim_gradients(struct mu_builder *b, struct mu_out loss, struct optim_grad *out)
{
	unsigned n = mu_var_count(b), k = 0, n_grads = 0;
	struct mu_out *xs = MU_NEW_ARRAY(struct mu_out, n + 1),
		      *gs = MU_NEW_ARRAY(struct mu_out, n + 1);

	for (unsigned i = 0; i < n; i++)
		if (mu_var_at(b, i)->trainable) {
			out[k].var = mu_var_at(b, i);
			xs[k] = out[k].var->read;
			k++;
		}
	if (!k)
		mu_builder_fail(b, MU_FAILED_PRECONDITION,
				"nothing to minimize: the graph has no trainable variable");
	mu_gradients(b, loss, xs, k, gs);
	for (unsigned i = 0; i < k; i++)
		if (gs[i].node)
			out[n_grads++] = (struct optim_grad){.var = out[i].var, .grad = gs[i]};
	if (!n_grads)
		mu_builder_fail(b, MU_FAILED_PRECONDITION,
				"nothing to minimize: the loss depends on no trainable variable");
	free(xs);
	free(gs);
	return builder_failed(b) ? 0 : n_grads;
}

struct mu_out optim_apply(struct mu_builder *b, const struct mu_optimizer *o,
			  const struct optim_grad *grads, unsigned n, struct mu_var *step)
{
	struct mu_out *updates = MU_NEW_ARRAY(struct mu_out, n + 3), op;
	struct mu_out rate = optim_rate(b, o, step);
	struct optim_readers *readers = builder_failed(b) ? NULL : optim_readers_new(b, grads, n);
	struct adam adam = {0};
	unsigned applied = 0;

	if (o->kind == MU_ADAM && n)
		create_adam_powers(b, o, grads[0].var, &adam);
	for (unsigned i = 0; i < n && !builder_failed(b); i++) {
		unsigned k = optim_readers_of(readers, b, grads[i].var);

		mu_push_device(b, grads[i].var->ref.node->device);
		updates[applied] = apply_update(b, o, &grads[i], rate, &adam);
		/* Only the update waits for the readers, not the initialisers of its slots. */
		for (unsigned j = 0; j < k && updates[applied].node; j++)
			mu_node_add_control(b->graph, updates[applied].node, readers->ops[j].node);
		applied++;
		mu_pop_device(b);
	}
	if (readers)
		optim_readers_free(readers);
	if (o->kind == MU_ADAM && !builder_failed(b)) {
		advance_adam(b, o, &adam, updates, applied, updates + applied);
		applied += 2;
	}
	op = add_train_op(b, updates, applied, step);
	free(updates);
	return op;
}

struct mu_out mu_minimize(struct mu_builder *b, const struct mu_optimizer *o, struct mu_out loss,
			  struct mu_var *step)
{
	struct optim_grad *grads = MU_NEW_ARRAY(struct optim_grad, mu_var_count(b) + 1);
	unsigned n = optim_gradients(b, loss, grads);
	struct mu_out op;

	/* L2 regularisation needs all rows of a variable. */
	if (o->kind != MU_ADAM && !(o->l2 > 0))
		optim_find_rows(b, grads, n);
	optim_regularize(b, o, grads, n);
	op = n ? optim_apply(b, o, grads, n, step) : MU_NO_OUT;
	free(grads);
	return op;
}
