/* SPDX-License-Identifier: Apache-2.0 */
/* Lowers functional If, Case, While and For to the control flow ops of the executor.
 *
 * If, Case: each input goes through a Switch to every branch.  Nodes without inputs have the pivot
 * of their branch as a control input; the pivot is dead unless the branch is taken.  The outputs of
 * the branches go to a Merge.
 *
 * While: one loop frame with the name of the call.
 *
 *	input ─ Enter ─ Merge ──┬─ cond ─ LoopCond ─┐
 *	                ▲       └────── Switch ◄────┘
 *	                │        body ◄─┘ └─ Exit ─ output
 *	          NextIteration ◄┘
 *
 * For: the same with index, limit and step as additional loop variables, a condition made of nodes
 * instead of a function, and a check that the step leads from the start to the limit.
 */
#include <string.h>

#include "lib/inline/inliner.h"

enum { MAX_DIRECT_CONTROLS = 4 };

struct lowering {
	struct inliner *x;
	const struct mu_node *call;
	enum mu_dtype *types; /* of the loop variables or branch inputs */
	unsigned n;           /* number of these */
	const struct mu_input *in;
	struct mu_node *start; /* (optional) one node with all control inputs of the call */
};

bool call_is_lowered(const struct mu_node *call)
{
	bool lowered;

	return !mu_node_attr_bool(call, "_lower_using_switch_merge", &lowered, NULL) && lowered;
}

static struct mu_node *lower_add_node(const struct lowering *w, const char *tail, unsigned i,
				      const char *op, enum mu_dtype type, const struct mu_input *in,
				      unsigned n_in)
{
	const char *name = mu_arena_printf(&w->x->scratch, "%s/%s_%u", w->call->name, tail, i);
	struct mu_node *n = mu_graph_add_unique(w->x->g, name, op, w->call->device, in, n_in);

	if (type)
		mu_node_set_type(w->x->g, n, "T", type);
	return n;
}

static struct mu_input output_of(struct mu_node *n, int port)
{
	return (struct mu_input){n, port};
}

static const struct mu_func *function_attr(const struct lowering *w, const char *attr)
{
	const struct mu_attr *f = mu_node_attr(w->call, attr);

	if (f && f->kind == MU_ATTR_FUNC)
		return f->func;
	mu_fail(w->x->err, MU_INVALID_ARGUMENT, "%s has no function %s", w->call->op, attr);
	return NULL;
}

/* Adds the call's control inputs to n.  More than MAX_DIRECT_CONTROLS go through one node, because
 * each loop variable needs all of them. */
static void add_call_controls(struct lowering *w, struct mu_node *n)
{
	const struct mu_input *controls = w->call->inputs + w->call->n_inputs;

	if (w->call->n_controls > MAX_DIRECT_CONTROLS && !w->start) {
		w->start = lower_add_node(w, "start", 0, "NoOp", MU_DT_INVALID, NULL, 0);
		mu_node_set_inputs(w->x->g, w->start, NULL, 0, controls, w->call->n_controls);
	}
	if (w->start) {
		mu_node_add_control(w->x->g, n, w->start);
		return;
	}
	for (unsigned k = 0; k < w->call->n_controls; k++)
		mu_node_add_control(w->x->g, n, controls[k].node);
}

static struct mu_input as_bool(const struct lowering *w, struct mu_input in, enum mu_dtype type)
{
	if (mu_dtype_base(type) == MU_BOOL)
		return in;
	return output_of(lower_add_node(w, "to_bool", 0, "ToBool", type, &in, 1), 0);
}

static const char *site_name(const struct lowering *w, const char *tail, unsigned i)
{
	return mu_arena_printf(&w->x->scratch, "%s/%s_%u", w->call->name, tail, i);
}

/* ---- branches ---- */

struct branch_choice {
	struct mu_input selector;
	const char *op; /* Switch, or _SwitchN */
	unsigned n;     /* branches */
	const struct mu_func *const *branches;
};

static struct mu_node *add_switch(const struct lowering *w, const struct branch_choice *c,
				  const char *tail, unsigned i, struct mu_input data,
				  enum mu_dtype type)
{
	struct mu_input in[2] = {data, c->selector};
	/* RefSwitch accepts an uninitialized variable, which only the taken branch reads. */
	bool by_ref =
	    !strcmp(c->op, "Switch") && mu_dtype_is_ref(mu_op_edge_type(data, &w->x->scratch));
	struct mu_node *n = lower_add_node(w, tail, i, by_ref ? "RefSwitch" : c->op, type, in, 2);

	if (strcmp(c->op, "Switch"))
		mu_node_set_int(w->x->g, n, "num_outs", c->n);
	return n;
}

static struct mu_node *add_merge(const struct lowering *w, const char *tail, unsigned i,
				 enum mu_dtype type, const struct mu_input *in, unsigned n)
{
	struct mu_node *m = lower_add_node(w, tail, i, "Merge", type, in, n);

	mu_node_set_int(w->x->g, m, "N", n);
	return m;
}

/* Adds the end node, which runs after the end node of the taken branch. */
static void lower_add_end(const struct lowering *w, const struct branch_choice *c,
			  struct mu_node *const *pivot, const struct expansion *e,
			  enum mu_dtype type, struct expansion *out)
{
	struct mu_input *in = MU_ARENA_ARRAY(&w->x->scratch, struct mu_input, c->n);

	for (unsigned b = 0; b < c->n; b++) {
		struct mu_input p = output_of(pivot[b], 0);
		in[b] = output_of(lower_add_node(w, "branch_done", b, "Identity", type, &p, 1), 0);
		mu_node_add_control(w->x->g, in[b].node, e[b].end);
	}
	struct mu_node *any_done = add_merge(w, "any_branch_done", 0, type, in, c->n);
	out->end = lower_add_node(w, "end", 0, "NoOp", MU_DT_INVALID, NULL, 0);
	mu_node_add_control(w->x->g, out->end, any_done);
}

static int lower_branch(struct lowering *w, const struct branch_choice *c,
			enum mu_dtype selector_type, struct expansion *out)
{
	struct mu_arena *a = &w->x->scratch;
	struct expansion *e = MU_ARENA_ARRAY(a, struct expansion, c->n);
	struct mu_node **pivot = MU_ARENA_ARRAY(a, struct mu_node *, c->n);
	struct mu_node **data = MU_ARENA_ARRAY(a, struct mu_node *, (size_t)w->n + 1);
	struct mu_node *pivot_switch = add_switch(w, c, "pivot", 0, c->selector, selector_type);
	struct mu_input *in = MU_ARENA_ARRAY(a, struct mu_input, (size_t)w->n + c->n);
	enum mu_dtype *types;
	unsigned n_out;
	int rc = mu_op_output_types(w->call, a, &types, &n_out, w->x->err);

	if (rc)
		return rc;
	add_call_controls(w, pivot_switch);
	for (unsigned i = 0; i < w->n; i++)
		data[i] = add_switch(w, c, "switch", i, w->in[i], w->types[i]);
	for (unsigned b = 0; b < c->n; b++) {
		struct mu_input p = output_of(pivot_switch, (int)b);
		pivot[b] = lower_add_node(w, "taken", b, "Identity", selector_type, &p, 1);
		for (unsigned i = 0; i < w->n; i++)
			in[i] = output_of(data[i], (int)b);
		struct call_site s = {.call = w->call,
				      .name = site_name(w, "branch", b),
				      .f = c->branches[b],
				      .in = in,
				      .n_in = w->n,
				      .control = pivot[b],
				      .only_outputs = call_is_lowered(w->call)};
		if ((rc = inline_body(w->x, &s, &e[b])))
			return rc;
		if (e[b].n_outs != n_out)
			return mu_fail(w->x->err, MU_INVALID_ARGUMENT,
				       "branch %s has %u outputs, %s needs %u",
				       c->branches[b]->name, e[b].n_outs, w->call->op, n_out);
	}
	out->n_outs = n_out;
	out->outs = MU_ARENA_ARRAY(a, struct mu_input, (size_t)n_out + 1);
	for (unsigned i = 0; i < n_out; i++) {
		for (unsigned b = 0; b < c->n; b++)
			in[b] = e[b].outs[i];
		out->outs[i] = output_of(add_merge(w, "merge", i, types[i], in, c->n), 0);
	}
	lower_add_end(w, c, pivot, e, selector_type, out);
	return 0;
}

int lower_branches(struct inliner *x, const struct mu_node *call, struct expansion *out)
{
	struct lowering w = {.x = x, .call = call, .n = call->n_inputs - 1, .in = call->inputs + 1};
	const struct mu_attr *list = mu_node_attr(call, "branches");
	unsigned count;
	int rc = mu_op_input_types(call, &x->scratch, &w.types, &count, x->err);

	if (rc)
		return rc;
	enum mu_dtype selector_type = w.types++[0];
	if (strstr(call->op, "If")) {
		const struct mu_func *branches[] = {function_attr(&w, "else_branch"),
						    function_attr(&w, "then_branch")};
		if (!branches[0] || !branches[1])
			return -MU_INVALID_ARGUMENT;
		struct branch_choice c = {as_bool(&w, call->inputs[0], selector_type), "Switch", 2,
					  branches};
		return lower_branch(&w, &c, MU_BOOL, out);
	}
	if (!list || list->kind != MU_ATTR_LIST + MU_ATTR_FUNC || !list->n)
		return mu_fail(x->err, MU_INVALID_ARGUMENT, "%s has no branches", call->op);
	const struct mu_func **branches =
	    MU_ARENA_ARRAY(&x->scratch, const struct mu_func *, list->n);
	for (unsigned i = 0; i < list->n; i++)
		branches[i] = &list->funcs[i];
	struct branch_choice c = {call->inputs[0], "_SwitchN", list->n, branches};
	return lower_branch(&w, &c, selector_type, out);
}

/* ---- loops ---- */

/* The first loop variables of For. */
enum { INDEX, LIMIT, STEP, COUNTED };

struct lowered_loop {
	struct mu_node **merge, **switches; /* by loop variable */
	struct mu_node *cond;
	bool counted;
};

static void add_enters(struct lowering *w, struct lowered_loop *l)
{
	const struct mu_attr *parallel = mu_node_attr(w->call, "parallel_iterations");

	for (unsigned i = 0; i < w->n; i++) {
		struct mu_node *enter =
		    lower_add_node(w, "enter", i, "Enter", w->types[i], &w->in[i], 1);
		mu_node_set_string(w->x->g, enter, "frame_name", w->call->name);
		if (parallel && parallel->kind == MU_ATTR_INT)
			mu_node_set_attr(w->x->g, enter, "parallel_iterations", parallel);
		add_call_controls(w, enter);
		struct mu_input merge_in[2] = {output_of(enter, 0), output_of(enter, 0)};
		l->merge[i] = add_merge(w, "merge", i, w->types[i], merge_in, 2);
	}
}

/* Adds LoopCond: the loop continues while the condition is true. */
static void add_loop_cond(const struct lowering *w, struct lowered_loop *l,
			  struct mu_input condition)
{
	l->cond = lower_add_node(w, "loop_cond", 0, "LoopCond", MU_DT_INVALID, &condition, 1);
}

static int add_cond(const struct lowering *w, struct lowered_loop *l, const struct mu_func *f)
{
	struct mu_input *in = MU_ARENA_ARRAY(&w->x->scratch, struct mu_input, w->n);
	struct expansion e = {0};
	enum mu_dtype *types;
	unsigned count;
	int rc;

	for (unsigned i = 0; i < w->n; i++)
		in[i] = output_of(l->merge[i], 0);
	struct call_site s = {.call = w->call,
			      .name = site_name(w, "cond", 0),
			      .f = f,
			      .in = in,
			      .n_in = w->n,
			      .control = l->merge[0],
			      .only_outputs = call_is_lowered(w->call)};
	if ((rc = inline_body(w->x, &s, &e)))
		return rc;
	if (e.n_outs != 1)
		return mu_fail(w->x->err, MU_INVALID_ARGUMENT,
			       "Expected a single scalar return value from the condition %s, got "
			       "%u tensors.",
			       f->name, e.n_outs);
	rc = mu_op_output_types(e.outs[0].node, &w->x->scratch, &types, &count, w->x->err);
	if (rc)
		return rc;
	if ((unsigned)e.outs[0].port >= count)
		return mu_fail(w->x->err, MU_INVALID_ARGUMENT,
			       "the output of the condition %s does not exist", f->name);
	add_loop_cond(w, l, as_bool(w, e.outs[0], types[e.outs[0].port]));
	mu_node_add_control(w->x->g, l->cond, e.end);
	return 0;
}

/* Adds the body.  The body of For has the index as an argument, but not limit and step. */
static int add_body(const struct lowering *w, struct lowered_loop *l, const struct mu_func *f)
{
	struct mu_input *in = MU_ARENA_ARRAY(&w->x->scratch, struct mu_input, w->n);
	struct expansion e = {0};
	unsigned n_counters = l->counted ? COUNTED : 0, n_hidden = l->counted ? COUNTED - 1 : 0;
	int rc;

	for (unsigned i = 0; i < w->n; i++) {
		struct mu_input switch_in[2] = {output_of(l->merge[i], 0), output_of(l->cond, 0)},
				live;
		l->switches[i] =
		    lower_add_node(w, "switch", i, "Switch", w->types[i], switch_in, 2);
		live = output_of(l->switches[i], 1);
		in[i] = output_of(
		    lower_add_node(w, "iteration", i, "Identity", w->types[i], &live, 1), 0);
	}
	struct mu_input next_counters[COUNTED] = {0}; /* next values of index, limit and step */
	if (l->counted) {
		struct mu_input add_in[2] = {in[INDEX], in[STEP]};
		next_counters[INDEX] =
		    output_of(lower_add_node(w, "index", 0, "AddV2", MU_INT32, add_in, 2), 0);
		next_counters[LIMIT] = in[LIMIT];
		next_counters[STEP] = in[STEP];
		in[n_hidden] = in[INDEX]; /* the index is the body's first argument */
	}
	struct call_site s = {.call = w->call,
			      .name = site_name(w, "body", 0),
			      .f = f,
			      .in = in + n_hidden,
			      .n_in = w->n - n_hidden,
			      .control = in[0].node,
			      .only_outputs = call_is_lowered(w->call)};
	if ((rc = inline_body(w->x, &s, &e)))
		return rc;
	if (e.n_outs != w->n - n_counters)
		return mu_fail(w->x->err, MU_INVALID_ARGUMENT,
			       "the body %s has %u outputs, but the loop has %u variables", f->name,
			       e.n_outs, w->n - n_counters);
	for (unsigned i = 0; i < w->n; i++) {
		const struct mu_input *from =
		    i < n_counters ? &next_counters[i] : &e.outs[i - n_counters];
		struct mu_node *next =
		    lower_add_node(w, "next", i, "NextIteration", w->types[i], from, 1);
		mu_node_add_control(w->x->g, next, e.end);
		l->merge[i]->inputs[1] = output_of(next, 0);
	}
	return 0;
}

/* Adds an Exit for each loop variable.  The outputs are all variables but the first `skip`. */
static void add_exits(const struct lowering *w, const struct lowered_loop *l, unsigned skip,
		      struct expansion *out)
{
	out->n_outs = w->n - skip;
	out->outs = MU_ARENA_ARRAY(&w->x->scratch, struct mu_input, (size_t)out->n_outs + 1);
	out->end = lower_add_node(w, "end", 0, "NoOp", MU_DT_INVALID, NULL, 0);
	for (unsigned i = 0; i < w->n; i++) {
		struct mu_input done = output_of(l->switches[i], 0);
		struct mu_node *exit = lower_add_node(w, "exit", i, "Exit", w->types[i], &done, 1);
		mu_node_add_control(w->x->g, out->end, exit);
		if (i >= skip)
			out->outs[i - skip] = output_of(exit, 0);
	}
}

static void lower_reserve(const struct lowering *w, struct lowered_loop *l)
{
	l->merge = MU_ARENA_ARRAY(&w->x->scratch, struct mu_node *, w->n);
	l->switches = MU_ARENA_ARRAY(&w->x->scratch, struct mu_node *, w->n);
}

int lower_while(struct inliner *x, const struct mu_node *call, struct expansion *out)
{
	struct lowering w = {.x = x, .call = call, .in = call->inputs};
	const struct mu_func *cond = function_attr(&w, "cond"), *body = function_attr(&w, "body");
	struct lowered_loop l = {0};
	int rc = mu_op_input_types(call, &x->scratch, &w.types, &w.n, x->err);

	if (rc)
		return rc;
	if (!cond || !body)
		return -MU_INVALID_ARGUMENT;
	if (!w.n)
		return mu_fail(x->err, MU_INVALID_ARGUMENT, "%s has no loop variables",
			       w.call->name);
	lower_reserve(&w, &l);
	add_enters(&w, &l);
	if ((rc = add_cond(&w, &l, cond)) || (rc = add_body(&w, &l, body)))
		return rc;
	add_exits(&w, &l, 0, out);
	return 0;
}

/* ---- counted loops ---- */

/* Adds the test (limit - at) * sign(step) > 0: the limit is not reached and the step leads to it.
 * It works for negative steps too. */
static struct mu_input add_not_reached_test(const struct lowering *w, const char *tail,
					    struct mu_input at, struct mu_input limit,
					    struct mu_input step)
{
	const char *name = mu_arena_printf(&w->x->scratch, "%s_left", tail);
	struct mu_input sub_in[2] = {limit, at}, mul_in[2], greater_in[2];

	mul_in[0] = output_of(lower_add_node(w, name, 0, "Sub", MU_INT32, sub_in, 2), 0);
	mul_in[1] = output_of(lower_add_node(w, name, 1, "Sign", MU_INT32, &step, 1), 0);
	greater_in[0] = output_of(lower_add_node(w, name, 2, "Mul", MU_INT32, mul_in, 2), 0);
	greater_in[1] =
	    output_of(lower_add_node(w, name, 3, "ZerosLike", MU_INT32, &greater_in[0], 1), 0);
	return output_of(lower_add_node(w, tail, 0, "Greater", MU_INT32, greater_in, 2), 0);
}

/* Adds a check that fails the step if the loop would never end. */
static struct mu_node *add_check(struct lowering *w)
{
	struct mu_input equal_in[2] = {w->in[INDEX], w->in[LIMIT]}, or_in[2],
			assert_in[1 + COUNTED];
	enum mu_dtype types[COUNTED] = {MU_INT32, MU_INT32, MU_INT32};
	struct mu_attr list = {.kind = MU_ATTR_LIST + MU_ATTR_TYPE, .n = COUNTED, .types = types};

	or_in[0] = output_of(lower_add_node(w, "is_empty", 0, "Equal", MU_INT32, equal_in, 2), 0);
	or_in[1] =
	    add_not_reached_test(w, "has_iterations", w->in[INDEX], w->in[LIMIT], w->in[STEP]);
	assert_in[0] =
	    output_of(lower_add_node(w, "ends", 0, "LogicalOr", MU_DT_INVALID, or_in, 2), 0);
	memcpy(assert_in + 1, w->in, COUNTED * sizeof *assert_in);
	struct mu_node *check =
	    lower_add_node(w, "check", 0, "Assert", MU_DT_INVALID, assert_in, 1 + COUNTED);
	mu_node_set_attr(w->x->g, check, "T", &list);
	add_call_controls(w, check);
	return check;
}

int lower_for(struct inliner *x, const struct mu_node *call, struct expansion *out)
{
	struct lowering w = {.x = x, .call = call, .in = call->inputs};
	const struct mu_func *body = function_attr(&w, "body");
	struct lowered_loop l = {.counted = true};
	int rc = mu_op_input_types(call, &x->scratch, &w.types, &w.n, x->err);

	if (rc)
		return rc;
	if (!body)
		return -MU_INVALID_ARGUMENT;
	lower_reserve(&w, &l);
	struct mu_node *check = add_check(&w);
	add_enters(&w, &l);
	for (unsigned i = 0; i < w.n; i++)
		mu_node_add_control(x->g, l.merge[i]->inputs[0].node, check);
	add_loop_cond(&w, &l,
		      add_not_reached_test(&w, "continues", output_of(l.merge[INDEX], 0),
					   output_of(l.merge[LIMIT], 0),
					   output_of(l.merge[STEP], 0)));
	if ((rc = add_body(&w, &l, body)))
		return rc;
	add_exits(&w, &l, COUNTED, out);
	return 0;
}
