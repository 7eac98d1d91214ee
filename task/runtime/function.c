/* SPDX-License-Identifier: Apache-2.0 */
#include "task/runtime/function.h"

#include <string.h>

#include "lib/inline/inline.h"

struct function {
	struct runtime *rt;
	struct executor *executor;
	unsigned n_in, n_out;
};

/* Compiles a function body.  Takes the body, also on failure. */
static int compile_body(struct runtime *rt, const struct step *s, struct mu_graph *body,
			const char *name, struct function **out, struct mu_err *err)
{
	struct function *fn;
	int rc;

	for (unsigned i = 0; i < body->n_nodes; i++) {
		struct mu_node *n = body->nodes[i];
		n->must_run =
		    n->def && n->def->flags & MU_OP_STATEFUL && !mu_graph_is_call(body, n);
	}
	if ((rc = mu_graph_inline(body, err))) {
		mu_graph_free(body);
		return rc;
	}
	fn = MU_NEW(struct function);
	fn->rt = rt;
	for (unsigned i = 0; i < body->n_nodes; i++) {
		fn->n_in += !strcmp(body->nodes[i]->op, "_Arg");
		fn->n_out += !strcmp(body->nodes[i]->op, "_Retval");
	}
	if ((rc = executor_new(rt, body, step_container(s), &fn->executor, err))) {
		free(fn);
		return mu_wrap(err, "function %s", name);
	}
	*out = fn;
	return 0;
}

int function_new(struct runtime *rt, const struct step *s, const struct mu_func *f,
		 struct function **out, struct mu_err *err)
{
	struct mu_library *library = s ? step_library(s) : NULL;
	const struct mu_function *def = mu_library_find(library, f->name);
	struct mu_graph *body;
	int rc;

	if (!def)
		return mu_fail(err, MU_NOT_FOUND, "function %.80s is not in the graph's library",
			       f->name);
	if ((rc = mu_library_instantiate(library, def, f->attrs, f->n_attrs, false, &body, err)))
		return rc;
	return compile_body(rt, s, body, f->name, out, err);
}

int function_from_graph(struct runtime *rt, const struct step *s, struct mu_span graph_def,
			struct function **out, struct mu_err *err)
{
	struct mu_graph *body = mu_graph_new();
	int rc = mu_graph_parse(body, graph_def, err);

	if (rc) {
		mu_graph_free(body);
		return rc;
	}
	return compile_body(rt, s, body, "of a GraphDef", out, err);
}

void function_share_state(struct function *f, const struct step *s, const char *name)
{
	if (s && step_call_frame(s))
		step_share_session(s, f->executor, name);
}

void function_free(struct function *f)
{
	if (!f)
		return;
	executor_unref(f->executor);
	free(f);
}

unsigned function_outputs(const struct function *f)
{
	return f->n_out;
}

/* ---- callers ---- */

void caller_init(struct caller *c)
{
	pthread_mutex_init(&c->lock, NULL);
	atomic_init(&c->stopped, false);
	c->step = NULL;
}

void caller_fini(struct caller *c)
{
	pthread_mutex_destroy(&c->lock);
}

static const struct mu_err stopped_error = {MU_CANCELLED, "the caller of the function has stopped"};

void caller_stop(struct caller *c)
{
	pthread_mutex_lock(&c->lock);
	atomic_store(&c->stopped, true);
	struct step *s = c->step ? step_ref(c->step) : NULL;
	pthread_mutex_unlock(&c->lock);
	if (s)
		step_cancel(s, &stopped_error);
	step_unref(s);
}

/* Sets the step that the caller waits for; NULL: none.  Cancels the step if caller_stop was called
 * before. */
static void caller_set_step(struct caller *c, struct step *s)
{
	pthread_mutex_lock(&c->lock);
	c->step = s;
	bool is_stopped = s && caller_stopped(c);
	pthread_mutex_unlock(&c->lock);
	if (is_stopped)
		step_cancel(s, &stopped_error);
}

/* ---- calls ---- */

struct call_wait {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool done, failed;
	struct mu_err err;
};

static void call_done(void *arg, const struct mu_err *err)
{
	struct call_wait *w = arg;

	pthread_mutex_lock(&w->lock);
	w->done = true;
	w->failed = err != NULL;
	if (err)
		w->err = *err;
	pthread_cond_signal(&w->cond);
	pthread_mutex_unlock(&w->lock);
}

int function_call(struct function *f, struct caller *caller, const struct mu_tensor *in,
		  unsigned n_in, struct mu_tensor *out, unsigned n_out, struct mu_err *err)
{
	static _Atomic int64_t calls;
	struct call_wait w = {.lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};
	struct call_frame frame = {in, out, n_in, n_out};
	int rc = 0;

	if (n_in != f->n_in)
		return mu_invalid(err,
				  "Function takes %u argument(s) but %u argument(s) were passed",
				  f->n_in, n_in);
	if (n_out != f->n_out)
		return mu_invalid(err, "a function with %u results was called for %u", f->n_out,
				  n_out);
	memset(out, 0, n_out * sizeof *out);
	/* masters do not use negative step ids */
	int64_t id = INT64_MIN + atomic_fetch_add(&calls, 1);
	struct rendezvous *r = rendezvous_new(f->rt->steps, id);
	struct step *s = executor_start(f->executor, r, NULL, &frame, call_done, &w);
	caller_set_step(caller, s);
	pthread_mutex_lock(&w.lock);
	while (!w.done)
		pthread_cond_wait(&w.cond, &w.lock);
	pthread_mutex_unlock(&w.lock);
	caller_set_step(caller, NULL);
	step_unref(s);
	rendezvous_unref(r);
	for (unsigned i = 0; i < n_out && !w.failed; i++)
		if (!mu_tensor_is_set(&out[i])) {
			mu_fail(&w.err, MU_INTERNAL, "output %u of a function has no value", i);
			w.failed = true;
		}
	if (w.failed) {
		for (unsigned i = 0; i < n_out; i++)
			mu_tensor_unref(&out[i]);
		*err = w.err;
		rc = -(int)w.err.code;
	}
	pthread_mutex_destroy(&w.lock);
	pthread_cond_destroy(&w.cond);
	return rc;
}
