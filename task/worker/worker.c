/* SPDX-License-Identifier: Apache-2.0 */
/* Worker sessions and registered graphs.  A graph belongs to a session and is freed with it.  A
 * running step holds a reference to its executor. */
#include "task/worker/worker.h"

#include <stdio.h>

#include "lib/base/log.h"
#include "lib/base/request_ids.h"
#include "proto/worker.pb-c.h"
#include "task/device/gpu.h"
#include "task/graph/optimize.h"
#include "task/messages/control.h"
#include "task/worker/debug_nodes.h"

struct worker_session {
	char *handle;
	char *container;             /* "": shares the resources of the other sessions */
	char *master;                /* the task that opened it; "": unknown */
	int64_t incarnation;         /* incarnation of that task when it opened the session */
	struct peers *renamed_peers; /* the tasks with their names in the session; or NULL */
};
struct registered_graph {
	char *handle, *session;
	struct executor *executor;
};

struct worker *worker_new(struct runtime *rt, struct peers *peers, struct mu_offload *offload)
{
	struct worker *w = MU_NEW(struct worker);

	w->rt = rt;
	w->peers = peers;
	w->offload = offload;
	w->run_ids = mu_request_ids_new();
	w->recv_ids = mu_request_ids_new();
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->idle, NULL);
	mu_map_init(&w->sessions);
	mu_map_init(&w->graphs);
	mu_map_init(&w->steps);
	return w;
}

static void free_session(struct worker_session *s)
{
	free(s->handle);
	free(s->container);
	free(s->master);
	free(s);
}

static void free_graph(struct registered_graph *g)
{
	executor_unref(g->executor);
	free(g->handle);
	free(g->session);
	free(g);
}

void worker_free(struct worker *w)
{
	if (!w)
		return;
	mu_map_each (&w->graphs, g)
		free_graph(g->value);
	mu_map_each (&w->sessions, s)
		free_session(s->value);
	mu_map_fini(&w->graphs);
	mu_map_fini(&w->sessions);
	mu_map_fini(&w->steps);
	mu_request_ids_free(w->run_ids);
	mu_request_ids_free(w->recv_ids);
	pthread_mutex_destroy(&w->lock);
	pthread_cond_destroy(&w->idle);
	free(w);
}

struct local_worker worker_as_local(struct worker *w)
{
	static const struct local_worker_ops ops = {.control = worker_control,
						    .register_graph = worker_register,
						    .run = worker_run,
						    .cancel_step = worker_cancel_step,
						    .drop_step = worker_drop_step};

	return (struct local_worker){&ops, w, w->rt};
}

void worker_count(struct worker *w, struct worker_counts *out)
{
	pthread_mutex_lock(&w->lock);
	*out = (struct worker_counts){(unsigned)w->sessions.count, (unsigned)w->graphs.count,
				      w->n_running, w->n_steps};
	pthread_mutex_unlock(&w->lock);
}

static int fail_no_session(const char *handle, struct mu_err *err)
{
	return mu_fail(err, MU_ABORTED,
		       "Session handle is not found: %.64s. Possibly this worker just restarted.",
		       handle);
}

static void clear_kernel_state(struct worker *w, const char *session)
{
	MU_AUTO_FREE char *container = resources_of_kernels(session);

	resources_clear(w->rt->resources, container);
}

static void worker_delete_session(struct worker *w, const char *handle)
{
	struct registered_graph **to_free = NULL;
	struct worker_session *s;
	unsigned n = 0;

	pthread_mutex_lock(&w->lock);
	s = mu_map_del(&w->sessions, handle);
	mu_map_each (&w->graphs, g) {
		struct registered_graph *r = g->value;

		if (!strcmp(r->session, handle)) {
			to_free = mu_xrealloc(to_free, (n + 1) * sizeof(struct registered_graph *));
			to_free[n++] = r;
		}
	}
	for (unsigned i = 0; i < n; i++)
		mu_map_del(&w->graphs, to_free[i]->handle);
	pthread_mutex_unlock(&w->lock);
	for (unsigned i = 0; i < n; i++)
		free_graph(to_free[i]);
	free(to_free);
	clear_kernel_state(w, handle);
	if (!s)
		return; /* not an error, as in TensorFlow */
	if (*s->container)
		resources_clear(w->rt->resources, s->container);
	free_session(s);
}

/* Aborts the running steps of a session whose master has restarted. */
static void abort_steps(struct worker *w, const char *session, const struct mu_err *why)
{
	int64_t *ids;
	unsigned n = 0;

	pthread_mutex_lock(&w->lock);
	ids = MU_NEW_ARRAY(int64_t, w->steps.count + 1);
	mu_map_each (&w->graphs, g) {
		const struct registered_graph *rg = g->value;

		if (strcmp(rg->session, session) != 0)
			continue;
		mu_map_each (&w->steps, s) {
			const struct running_step *r = s->value;

			if (r->executor == rg->executor)
				ids[n++] = r->step_id;
		}
	}
	pthread_mutex_unlock(&w->lock);
	for (unsigned i = 0; i < n; i++)
		worker_cancel_step(w, ids[i], why);
	free(ids);
}

/* Closes the sessions of an earlier incarnation of this master.  Their steps could dequeue elements
 * that the new incarnation waits for.  After the loss of a machine its connections may remain open
 * for minutes. */
static void close_stale_sessions(struct worker *w, const char *master, int64_t incarnation)
{
	char **handles;
	struct mu_err why;
	unsigned n = 0;

	if (!*master || !incarnation)
		return;
	mu_fail(&why, MU_ABORTED, "the master of this step, %.200s, has restarted", master);
	pthread_mutex_lock(&w->lock);
	handles = MU_NEW_ARRAY(char *, w->sessions.count + 1);
	mu_map_each (&w->sessions, at) {
		const struct worker_session *s = at->value;

		if (!strcmp(s->master, master) && s->incarnation != incarnation)
			handles[n++] = mu_xstrdup(s->handle);
	}
	pthread_mutex_unlock(&w->lock);
	for (unsigned i = 0; i < n; i++) {
		mu_info("worker", "closing session %.64s: %s", handles[i], why.msg);
		abort_steps(w, handles[i], &why);
		worker_delete_session(w, handles[i]);
		free(handles[i]);
	}
	free(handles);
}

/* If the server_def has a cluster, sets *out to the tasks with their names in it. */
static int rename_tasks(struct worker *w, const Muster__ServerDef *def, struct peers **out,
			struct mu_err *err)
{
	MU_AUTO_CLUSTER cluster = {0};
	int rc;

	if (!def->cluster || !def->cluster->n_job)
		return 0;
	if ((rc = control_cluster(def->cluster, &cluster, err)))
		return rc;
	return peers_renamed(w->peers, &cluster, def->job_name, def->task_index, out, err);
}

static int worker_create_session(struct worker *w, const Muster__CreateWorkerSessionRequest *m,
				 struct mu_err *err)
{
	struct worker_session *s, *old;
	struct peers *renamed_peers = NULL;

	if (!*m->session_handle)
		return mu_fail(err, MU_INVALID_ARGUMENT, "the request has no session handle");
	if (m->server_def && rename_tasks(w, m->server_def, &renamed_peers, err))
		return mu_wrap(err, "CreateWorkerSession");
	if (*m->master_address && peers_add_task(w->peers, m->master_task, m->master_address, err))
		return mu_wrap(err, "CreateWorkerSession");
	s = MU_NEW(struct worker_session);
	s->handle = mu_xstrdup(m->session_handle);
	s->container = mu_xstrdup(m->isolate_session_state ? m->session_handle : "");
	s->master = mu_xstrdup(m->master_task);
	s->incarnation = m->master_incarnation;
	s->renamed_peers = renamed_peers;
	close_stale_sessions(w, s->master, s->incarnation);
	pthread_mutex_lock(&w->lock);
	old = mu_map_put(&w->sessions, s->handle, s);
	pthread_mutex_unlock(&w->lock);
	if (old)
		free_session(old);
	return 0;
}

int worker_register(struct worker *w, const char *session, bool session_called,
		    struct mu_span config, struct mu_span debug, struct mu_graph *g, char **handle,
		    struct mu_err *err)
{
	MU_AUTO_FREE char *container = NULL;
	struct worker_session *s;
	struct registered_graph *r;
	struct executor *e;
	int rc;

	pthread_mutex_lock(&w->lock);
	s = mu_map_get(&w->sessions, session);
	if (s)
		container = mu_xstrdup(s->container);
	pthread_mutex_unlock(&w->lock);
	if (!s && session_called) {
		mu_graph_free(g);
		return fail_no_session(session, err);
	}
	if (debug.len && (rc = debug_nodes_add(g, debug, w->rt, err))) {
		mu_graph_free(g);
		return rc;
	}
	if (control_optimizer_enabled(config))
		graph_optimize(g, w->rt);
	rc = executor_new(w->rt, g, container ? container : "", &e, err);
	if (rc)
		return rc;
	executor_set_session(e, session);
	r = MU_NEW(struct registered_graph);
	r->executor = e;
	r->session = mu_xstrdup(session);
	pthread_mutex_lock(&w->lock);
	if (s && !mu_map_get(&w->sessions, session)) { /* deleted meanwhile */
		pthread_mutex_unlock(&w->lock);
		free_graph(r);
		return fail_no_session(session, err);
	}
	r->handle = mu_xasprintf("%016llx", (unsigned long long)++w->last_graph);
	mu_map_put(&w->graphs, r->handle, r);
	*handle = mu_xstrdup(r->handle);
	pthread_mutex_unlock(&w->lock);
	return 0;
}

/* Returns a reference to the executor of the registered graph.  Sets *renamed_peers to that of the
 * session. */
static struct executor *find_executor(struct worker *w, const struct peer_run *run,
				      bool session_called, struct peers **renamed_peers,
				      struct mu_err *err)
{
	const struct worker_session *s;
	struct executor *e = NULL;
	struct registered_graph *r;

	pthread_mutex_lock(&w->lock);
	r = mu_map_get(&w->graphs, run->graph);
	s = mu_map_get(&w->sessions, run->session);
	*renamed_peers = s ? s->renamed_peers : NULL;
	if (session_called && !s) {
		fail_no_session(run->session, err);
	} else if (!r) {
		mu_fail(err, MU_ABORTED,
			"Graph handle is not found: %.64s. Possibly, this worker just restarted.",
			run->graph);
	} else if (w->stopping) {
		mu_fail(err, MU_UNAVAILABLE, "%s is shutting down", w->rt->task_prefix);
	} else {
		e = r->executor;
		executor_ref(e);
	}
	pthread_mutex_unlock(&w->lock);
	return e;
}

void worker_run(struct worker *w, const struct peer_run *run, bool session_called, peer_done done,
		void *arg)
{
	struct executor *e = NULL;
	struct peers *renamed_peers;
	struct mu_err err;

	if (mu_request_ids_add(w->run_ids, run->request_id))
		e = find_executor(w, run, session_called, &renamed_peers, &err);
	else
		mu_fail(&err, MU_ABORTED,
			"The same RunGraph (Worker) request was received twice. request_id: %lld",
			(long long)run->request_id);
	if (e)
		worker_start_step(w, e, renamed_peers, run, done, arg);
	else
		done(arg, &err, MU_SPAN(""));
}

/* Returns true if the worker has neither the session nor a graph of it.  (A master need not open a
 * session before it registers graphs.)  Called with the lock held. */
static bool session_has_ended(struct worker *w, const char *session)
{
	bool has_ended = !mu_map_get(&w->sessions, session);

	mu_map_each (&w->graphs, g)
		has_ended &= strcmp(((struct registered_graph *)g->value)->session, session) != 0;
	return has_ended;
}

static int deregister(struct worker *w, const char *handle, struct mu_err *err)
{
	struct registered_graph *r;
	bool has_ended = false;

	pthread_mutex_lock(&w->lock);
	r = mu_map_del(&w->graphs, handle);
	if (r)
		has_ended = session_has_ended(w, r->session);
	pthread_mutex_unlock(&w->lock);
	if (!r)
		return mu_fail(err, MU_ABORTED, "Graph handle is not found: %.64s", handle);
	if (has_ended)
		clear_kernel_state(w, r->session);
	free_graph(r);
	return 0;
}

static Muster__DeviceAttributes *worker_add_device(struct worker *w, struct mu_arena *a,
						   const char *type, unsigned i)
{
	Muster__DeviceAttributes *d = mu_arena_alloc(a, sizeof *d);

	muster__device_attributes__init(d);
	d->name = mu_arena_printf(a, "%s/device:%s:%u", w->rt->task_prefix, type, i);
	d->device_type = (char *)type;
	d->incarnation = w->rt->incarnation; /* the task's incarnation, as in rendezvous keys */
	d->xla_global_id = -1;               /* TensorFlow's value for "none" */
	return d;
}

/* Appends the CPU devices and the usable GPUs to list. */
static unsigned list_devices(struct worker *w, struct mu_arena *a, Muster__DeviceLocality *locality,
			     Muster__DeviceAttributes **list)
{
	unsigned n = 0;

	for (unsigned i = 0; i < w->rt->n_cpus; i++) {
		Muster__DeviceAttributes *d = list[n++] = worker_add_device(w, a, "CPU", i);

		d->memory_limit = 256 << 20; /* as TensorFlow reports for a CPU */
		d->locality = locality;
	}
	for (unsigned i = 0; i < device_count(w->rt->devices); i++) {
		struct gpu *g = gpu_at(w->rt->devices, i);
		Muster__DeviceAttributes *d;
		struct gpu_info f;
		if (!gpu_is_usable(g))
			continue;
		gpu_get_info(g, &f);
		d = list[n++] = worker_add_device(w, a, "GPU", i);
		d->memory_limit = (int64_t)f.limit;
		d->locality = locality;
		d->physical_device_desc = mu_arena_printf(
		    a, "device: %u, name: %s, pci bus id: %s, compute capability: %d.%d", i, f.name,
		    f.bus, f.major, f.minor);
	}
	return n;
}

static void worker_get_status(struct worker *w, struct mu_buf *reply)
{
	Muster__GetStatusResponse m = MUSTER__GET_STATUS_RESPONSE__INIT;
	Muster__DeviceLocality locality = MUSTER__DEVICE_LOCALITY__INIT;
	Muster__DeviceAttributes **list;
	MU_AUTO_ARENA a = {0};

	list = MU_ARENA_ARRAY(&a, Muster__DeviceAttributes *,
			      w->rt->n_cpus + device_count(w->rt->devices));
	m.n_device_attributes = list_devices(w, &a, &locality, list);
	m.device_attributes = list;
	control_pack(reply, &m);
	peers_offer(w->peers, reply);
}

/* Handles the control messages that have no reply. */
static int handle_control(struct worker *w, enum peer_method m, struct mu_span request,
			  struct mu_arena *a, struct mu_err *err)
{
	static const ProtobufCMessageDescriptor *const types[] = {
	    [PEER_CREATE_SESSION] = &muster__create_worker_session_request__descriptor,
	    [PEER_DELETE_SESSION] = &muster__delete_worker_session_request__descriptor,
	    [PEER_DEREGISTER_GRAPH] = &muster__deregister_graph_request__descriptor,
	    [PEER_CLEANUP_GRAPH] = &muster__cleanup_graph_request__descriptor,
	    [PEER_CLEANUP_ALL] = &muster__cleanup_all_request__descriptor,
	};
	Muster__CleanupAllRequest *cleanup_all;
	void *message;

	if ((size_t)m >= MU_COUNT(types) || !types[m])
		return mu_fail(err, MU_UNIMPLEMENTED, "the worker has no control message %d", m);
	cleanup_all = message = control_unpack(a, types[m], request, err);
	if (!message)
		return -MU_INVALID_ARGUMENT;
	switch (m) {
	case PEER_CREATE_SESSION:
		return worker_create_session(w, message, err);
	case PEER_DELETE_SESSION:
		worker_delete_session(
		    w, ((Muster__DeleteWorkerSessionRequest *)message)->session_handle);
		return 0;
	case PEER_DEREGISTER_GRAPH:
		return deregister(w, ((Muster__DeregisterGraphRequest *)message)->graph_handle,
				  err);
	case PEER_CLEANUP_GRAPH:
		worker_cleanup_step(w, ((Muster__CleanupGraphRequest *)message)->step_id);
		return 0;
	default: /* PEER_CLEANUP_ALL */
		if (cleanup_all->n_container == 0)
			resources_clear(w->rt->resources, "");
		for (size_t i = 0; i < cleanup_all->n_container; i++)
			if (*cleanup_all->container[i]) /* as in TensorFlow, "" is ignored */
				resources_clear(w->rt->resources, cleanup_all->container[i]);
		return 0;
	}
}

int worker_control(struct worker *w, enum peer_method m, struct mu_span request,
		   struct mu_buf *reply, struct mu_err *err)
{
	MU_AUTO_ARENA a = {0};

	if (m == PEER_GET_STATUS) {
		worker_get_status(w, reply);
		return 0;
	}
	return handle_control(w, m, request, &a, err);
}
