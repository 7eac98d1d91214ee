/* SPDX-License-Identifier: Apache-2.0 */
/* The server: its methods, its start and its stop.  Calls come from the network (listen.c) or from
 * this process (local.c); handlers treat both in the same way.
 *
 * The server counts its unfinished calls and is freed only when none is left. */
#include "task/rpc/server.h"

#include "lib/base/clock.h"
#include "lib/base/cond.h"
#include "lib/base/log.h"
#include "task/rpc/call.h"
#include "task/rpc/listen.h"

enum { STOP_AFTER_CANCEL_MS = 10000 };

const struct rpc_method *rpc_find_method(const struct rpc_server *s, const char *path)
{
	return mu_map_get(&s->by_path, path);
}

/* ---- start and stop ---- */

static void free_server(struct rpc_server *s)
{
	if (s->listener)
		listener_free(s->listener);
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->changed);
	mu_map_fini(&s->by_path);
	free(s->methods);
	free(s);
}

static struct rpc_server *new_server(const struct rpc_server_options *o)
{
	struct rpc_server *s = MU_NEW(struct rpc_server);

	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->changed, NULL);
	mu_map_init(&s->by_path);
	s->ctx = o->ctx;
	s->offload = o->offload;
	s->methods = MU_NEW_ARRAY(struct rpc_method, o->n_methods + 1);
	s->n_methods = o->n_methods;
	for (unsigned i = 0; i < o->n_methods; i++) {
		s->methods[i] = o->methods[i];
		mu_map_put(&s->by_path, s->methods[i].path, &s->methods[i]);
	}
	return s;
}

int rpc_server_start(const struct rpc_server_options *o, struct rpc_server **out, int *ports,
		     struct mu_err *err)
{
	struct rpc_server *s = new_server(o);
	struct rpc_server_options own_options = *o;
	int *bound_ports = MU_NEW_ARRAY(int, o->n_addresses + 1), rc;

	own_options.methods = s->methods;
	rc = listener_start(s, &own_options, &s->listener, bound_ports, err);
	if (rc) {
		free_server(s);
	} else {
		memcpy(ports, bound_ports, o->n_addresses * sizeof(int));
		*out = s;
	}
	free(bound_ports);
	return rc;
}

/* Waits until no call and no connection is left, at most ms. */
static bool wait_idle(struct rpc_server *s, long ms)
{
	int64_t until = mu_clock_ms() + ms, left_ms;
	int rc = 0;
	bool is_idle;

	pthread_mutex_lock(&s->lock);
	while (s->calls && !rc)
		rc = mu_cond_wait_until(&s->changed, &s->lock, until);
	is_idle = s->calls == 0;
	pthread_mutex_unlock(&s->lock);
	left_ms = until - mu_clock_ms();
	return is_idle && listener_wait_closed(s->listener, left_ms > 0 ? left_ms : 0);
}

void rpc_server_stop(struct rpc_server *s, long grace_ms)
{
	bool is_idle;

	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->stopping = true;
	pthread_mutex_unlock(&s->lock);
	listener_close(s->listener);
	is_idle = wait_idle(s, grace_ms);
	if (!is_idle) {
		listener_cancel_all(s->listener);
		is_idle = wait_idle(s, STOP_AFTER_CANCEL_MS);
	}
	if (!is_idle) { /* a handler still has a call, so the server cannot be freed */
		mu_error("rpc",
			 "%u calls got no reply from their handlers; the server is not freed",
			 s->calls);
		return;
	}
	free_server(s);
}
