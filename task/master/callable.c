/* SPDX-License-Identifier: Apache-2.0 */
/* Callables: a client names feeds, fetches and targets once and runs them by handle. */
#include "proto/master.pb-c.h"
#include "task/master/master.h"
#include "task/messages/control.h"

enum { MAX_CALLABLES = 100000 };

static void copy_names(struct name_list *to, char *const *list, size_t n, struct mu_arena *a)
{
	to->list = MU_ARENA_ARRAY(a, const char *, n + 1);
	to->n = to->cap = (unsigned)n;
	for (size_t i = 0; i < n; i++)
		to->list[i] = mu_arena_strdup(a, list[i]);
}

static void copy_list(struct name_list *to, const struct name_list *from, struct mu_arena *a)
{
	copy_names(to, (char *const *)from->list, from->n, a);
}

static void copy_connections(struct run_step_request *names, const Muster__CallableOptions *o,
			     struct mu_arena *a)
{
	size_t n = o->n_tensor_connection;
	char **to = MU_ARENA_ARRAY(a, char *, n + 1), **from = MU_ARENA_ARRAY(a, char *, n + 1);

	for (size_t i = 0; i < n; i++) {
		to[i] = o->tensor_connection[i]->to_tensor;
		from[i] = o->tensor_connection[i]->from_tensor;
	}
	copy_names(&names->connected, to, n, a);
	copy_names(&names->sources, from, n, a);
}

static void callable_free(struct callable *c)
{
	mu_arena_fini(&c->arena);
	free(c);
}

static void copy_options(struct run_step_request *names, const Muster__RunOptions *o)
{
	names->debug = control_bytes(o->debug_options);
	names->timeout_ms = o->timeout_in_ms;
	names->record = step_record_of(o->trace_level, o->output_partition_graphs);
}

int callable_make(struct session *s, struct mu_span request, int64_t *handle, struct mu_err *err)
{
	struct callable *c = MU_NEW(struct callable);
	Muster__MakeCallableRequest *m;
	Muster__CallableOptions *o;
	struct client_graph *graph;
	int rc = 0;

	mu_arena_init(&c->arena);
	m = control_unpack(&c->arena, &muster__make_callable_request__descriptor, request, err);
	o = m ? m->options : NULL;
	if (!m)
		rc = -MU_INVALID_ARGUMENT;
	else if (!o)
		rc = mu_fail(err, MU_INVALID_ARGUMENT, "the request has no CallableOptions");
	else if (o->n_feed > MAX_STEP_NAMES || o->n_fetch > MAX_STEP_NAMES ||
		 o->n_target > MAX_STEP_NAMES || o->n_tensor_connection > MAX_STEP_NAMES)
		rc = mu_fail(err, MU_INVALID_ARGUMENT,
			     "the CallableOptions have more than %d names of a kind",
			     MAX_STEP_NAMES);
	if (!rc) {
		copy_names(&c->names.feeds, o->feed, o->n_feed, &c->arena);
		copy_names(&c->names.fetches, o->fetch, o->n_fetch, &c->arena);
		copy_names(&c->names.targets, o->target, o->n_target, &c->arena);
		copy_connections(&c->names, o, &c->arena);
		if (o->run_options)
			copy_options(&c->names, o->run_options);
		rc = client_graph_get(s, &c->names, &graph, err); /* checks the names */
	}
	if (!rc) {
		client_graph_unref(graph);
		pthread_mutex_lock(&s->lock);
		if (s->callables.count >= MAX_CALLABLES) {
			rc = mu_fail(err, MU_RESOURCE_EXHAUSTED,
				     "the session has %d callables: release some", MAX_CALLABLES);
		} else {
			*handle = ++s->last_callable;
			mu_map_put_n(&s->callables, handle, sizeof(*handle), c);
		}
		pthread_mutex_unlock(&s->lock);
	}
	if (rc)
		callable_free(c);
	return rc;
}

static int fail_unknown_handle(int64_t handle, struct mu_err *err)
{
	return mu_fail(err, MU_INVALID_ARGUMENT, "No such callable handle: %lld",
		       (long long)handle);
}

int callable_release(struct session *s, int64_t handle, struct mu_err *err)
{
	struct callable *c;

	pthread_mutex_lock(&s->lock);
	c = mu_map_del_n(&s->callables, &handle, sizeof(handle));
	pthread_mutex_unlock(&s->lock);
	if (!c)
		return fail_unknown_handle(handle, err);
	callable_free(c);
	return 0;
}

int callable_names(struct session *s, struct run_step_request *r, struct mu_arena *a,
		   struct mu_err *err)
{
	struct callable *c;
	unsigned n_tensors = r->feeds.n;

	pthread_mutex_lock(&s->lock);
	c = mu_map_get_n(&s->callables, &r->callable, sizeof(r->callable));
	if (c) {
		copy_list(&r->feeds, &c->names.feeds, a);
		copy_list(&r->fetches, &c->names.fetches, a);
		copy_list(&r->targets, &c->names.targets, a);
		copy_list(&r->connected, &c->names.connected, a);
		copy_list(&r->sources, &c->names.sources, a);
		r->timeout_ms = c->names.timeout_ms;
		r->record = c->names.record;
		r->debug.len = c->names.debug.len;
		r->debug.data = mu_arena_strndup(a, c->names.debug.data, c->names.debug.len);
	}
	pthread_mutex_unlock(&s->lock);
	if (!c)
		return fail_unknown_handle(r->callable, err);
	if (n_tensors != r->feeds.n)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "the callable has %u feeds, but the request has %u tensors",
			       r->feeds.n, n_tensors);
	return 0;
}

void callables_free(struct session *s)
{
	mu_map_each (&s->callables, c)
		callable_free(c->value);
	mu_map_fini(&s->callables);
}
