/* SPDX-License-Identifier: Apache-2.0 */
/* Starts and stops the parts of a task.
 *
 * Order of the stop: report not ready, let running steps complete, close the sessions, cancel the
 * remaining steps.  Then the parts end, each before those that it uses: the RPC server (which waits
 * for its calls), the offload threads, the channels to peers, the worker and master, the runtime.
 */
#include <stdio.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/tensor/arena.h"
#include "proto/common.pb-c.h"
#include "task/event_listener.h"
#include "task/health.h"
#include "task/kernels/control/collective.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/messages/control.h"
#include "task/peer/peer_collective.h"
#include "task/peer/peer_stream.h"
#include "task/rpc/tls.h"
#include "task/runtime/python_process.h"
#include "task/server_internal.h"

enum {
	OFFLOAD_THREADS = 1024, /* calls may wait for other tasks, for as long as their limit */
	RPC_GRACE_MS = 500,
	MAX_COMPUTE_THREADS = 1024,
	MAX_CPU_DEVICES = 256,
	LISTENER_CONNECT_MS = 10000,
	LISTENER_REPLY_MS = 60000,
};

static void free_parts(struct task_server *s)
{
	if (s->http)
		mu_http_stop(s->http);
	if (s->offload)
		mu_offload_free(s->offload);
	peers_free(s->peers);
	mu_timer_free(s->timer);
	master_free(s->context.master);
	worker_free(s->context.worker);
	if (!s->rt)
		device_set_free(s->device.gpus);
	runtime_free(s->rt);
	event_listeners_free(s->event_listeners);
	rpc_tls_unref(s->tls);
	pthread_mutex_destroy(&s->lock);
	free(s->progress);
	free(s->target);
	free(s);
}

static void host_of(const char *address, char *host, size_t size)
{
	const char *colon = strrchr(address, ':');

	if (!strncmp(address, "unix:", 5) || !colon)
		snprintf(host, size, "127.0.0.1");
	else if (address[0] == '[' && colon > address && colon[-1] == ']')
		snprintf(host, size, "%.*s", (int)(colon - address - 2), address + 1);
	else
		snprintf(host, size, "%.*s", (int)(colon - address), address);
}

/* ---- start ---- */

static int listen_for_calls(struct task_server *s, const char *const *addresses, unsigned n,
			    struct mu_err *err)
{
	unsigned n_methods = master_n_methods + worker_n_methods + health_n_methods;
	struct rpc_method *methods = MU_NEW_ARRAY(struct rpc_method, n_methods);
	struct rpc_server_options o = {.addresses = addresses,
				       .n_addresses = n,
				       .tls = s->tls,
				       .n_secured = 1,
				       .methods = methods,
				       .n_methods = n_methods,
				       .ctx = &s->context,
				       .offload = s->offload};
	int rc;

	memcpy(methods, master_methods, master_n_methods * sizeof(*methods));
	memcpy(methods + master_n_methods, worker_methods, worker_n_methods * sizeof(*methods));
	memcpy(methods + master_n_methods + worker_n_methods, health_methods,
	       health_n_methods * sizeof(*methods));
	rc = rpc_server_start(&o, &s->rpc, s->ports, err);
	free(methods);
	return rc;
}

/* Returns the target for clients in this process of a server that listens on `address`. */
static char *target_of(const char *address, int port)
{
	char host[256];

	if (!strncmp(address, "unix:", 5))
		return mu_xstrdup(address);
	host_of(address, host, sizeof(host));
	if (!strcmp(host, "0.0.0.0") || !strcmp(host, "::"))
		snprintf(host, sizeof(host), "127.0.0.1");
	return mu_xasprintf(strchr(host, ':') ? "grpc://[%s]:%d" : "grpc://%s:%d", host, port);
}

/* Launchers that start several tasks on one machine set MUSTER_THREADS. */
static unsigned compute_threads(unsigned requested)
{
	const char *env_threads = getenv("MUSTER_THREADS");
	long n = requested || !env_threads ? (long)requested : strtol(env_threads, NULL, 10);

	return n > 0 && n <= MAX_COMPUTE_THREADS ? (unsigned)n : 0;
}

static int read_gpu_options(const Muster__GPUOptions *from, struct gpu_options *out,
			    struct mu_err *err)
{
	out->fraction = from->per_process_gpu_memory_fraction;
	out->growth = from->allow_growth;
	if (!(out->fraction >= 0 && out->fraction <= 1))
		return mu_invalid(err,
				  "per_process_gpu_memory_fraction is %g; it is between 0 and 1",
				  out->fraction);
	if ((size_t)snprintf(out->visible, sizeof(out->visible), "%s", from->visible_device_list) >=
	    sizeof(out->visible))
		return mu_invalid(err, "'visible_device_list' is longer than %zu bytes",
				  sizeof(out->visible) - 1);
	return 0;
}

/* Reads the number of CPU devices and the options of GPUs from a ConfigProto.  If it excludes
 * GPUs, selects CPU kernels. */
static int read_devices(struct mu_span config, unsigned *n_cpus, struct gpu_options *gpu,
			const char **kernels, struct mu_err *err)
{
	MU_AUTO_ARENA a = {0};
	const Muster__ConfigProto *c =
	    control_unpack(&a, &muster__config_proto__descriptor, config, err);

	if (!c)
		return -MU_INVALID_ARGUMENT;
	for (size_t i = 0; i < c->n_device_count; i++) {
		const Muster__ConfigProto__DeviceCountEntry *e = c->device_count[i];

		if (!strcmp(e->key, "GPU")) {
			gpu->max_gpus = (unsigned)e->value;
			if (e->value <= 0 && strncmp(*kernels, "cpu", 3) != 0)
				*kernels = "cpu";
		}
		if (strcmp(e->key, "CPU"))
			continue;
		if (e->value < 1 || e->value > MAX_CPU_DEVICES)
			return mu_invalid(err,
					  "device_count: a task has 1 to %d CPU devices, not %d",
					  MAX_CPU_DEVICES, e->value);
		*n_cpus = (unsigned)e->value;
	}
	return c->gpu_options ? read_gpu_options(c->gpu_options, gpu, err) : 0;
}

static int make_parts(struct task_server *s, const struct task_server_options *o,
		      struct mu_err *err)
{
	struct collective_hooks collective;
	struct rendezvous_remote remote;
	struct gpu_options gpu = {0};
	unsigned n_cpus = 1;
	const char *kernels = o->kernels && *o->kernels ? o->kernels : "auto";
	int rc = read_devices(o->session_config, &n_cpus, &gpu, &kernels, err);

	if (!rc)
		rc = device_open(kernels, &gpu, &s->device, err);
	if (rc == -MU_FAILED_PRECONDITION && o->unsupported)
		*o->unsupported = true;
	if (!rc && o->tls && *o->tls)
		rc = rpc_tls_open(o->tls, &s->tls, err);
	if (rc)
		return rc;
	s->peers = peers_new(o->cluster, o->job, o->index, s->tls);
	remote = peers_remote(s->peers);
	rc = runtime_new(o->job, o->index, compute_threads(o->threads), &task_kernels, &remote,
			 &s->rt, err);
	if (rc)
		return rc;
	s->rt->devices = s->device.gpus;
	s->rt->n_cpus = n_cpus;
	if (o->python_socket)
		s->rt->python_process = python_process_new(o->python_socket);
	s->offload = mu_offload_new(OFFLOAD_THREADS);
	s->timer = mu_timer_new();
	collective = peers_collective_hooks(s->peers);
	collective.combine = collective_combine;
	s->rt->collectives = collectives_new(s->rt->pool, s->timer, &collective);
	s->event_listeners =
	    event_listeners_new(LISTENER_CONNECT_MS, LISTENER_REPLY_MS, &s->rt->debug_streams);
	s->rt->debug_streams.offload = s->offload;
	s->context.worker = worker_new(s->rt, s->peers, s->offload);
	s->context.master =
	    master_new(s->rt, s->peers, s->offload, s->timer, o->connect_timeout_ms);
	s->context.master->session_config = o->session_config;
	struct local_worker local = worker_as_local(s->context.worker);
	peers_set_worker(s->peers, &local);
	return 0;
}

/* Starts the tensor streams, of the kind in the options or else in MUSTER_PEER. */
static int start_streams(struct task_server *s, const struct task_server_options *o,
			 const char *address, struct mu_err *err)
{
	const char *kind = o->peer ? o->peer : getenv("MUSTER_PEER");
	char host[256];

	if (kind && !strcmp(kind, "grpc"))
		return 0;
	host_of(address, host, sizeof(host));
	return peers_start_streams(
	    s->peers,
	    &(struct streams_options){.host = strncmp(address, "unix:", 5) ? host : NULL,
				      .port = o->stream_port,
				      .only_tcp = kind && !strcmp(kind, "tcp"),
				      .tls = s->tls},
	    err);
}

int task_server_start(const struct task_server_options *o, struct task_server **out,
		      struct mu_err *err)
{
	const char *cluster_address = mu_cluster_address(o->cluster, o->job, o->index, err);
	const char *addresses[2] = {o->bind ? o->bind : cluster_address, o->local};
	struct task_server *s;
	char host[256];
	struct mu_err why;
	int rc;

	if (!cluster_address)
		return err ? -(int)err->code : -MU_NOT_FOUND;
	s = MU_NEW(struct task_server);
	pthread_mutex_init(&s->lock, NULL);
	s->started_ms = s->rate_ms = mu_clock_ms();
	s->epoch = o->epoch;
	if (o->token_digest)
		snprintf(s->token_digest, sizeof(s->token_digest), "%s", o->token_digest);
	s->finish = o->finish;
	s->finish_arg = o->finish_arg;
	if (arena_start(&why))
		mu_info("task",
			"no shared memory between tasks on this host, tensors are copied: %s",
			why.msg);
	rc = make_parts(s, o, err);
	if (!rc)
		rc = start_streams(s, o, addresses[0], err);
	if (!rc)
		rc = listen_for_calls(s, addresses, o->local ? 2 : 1, err);
	if (!rc && o->http_port >= 0) {
		host_of(addresses[0], host, sizeof(host));
		rc = mu_http_start(host, o->http_port, server_http_handle, s, &s->http,
				   &s->http_port, err);
	}
	if (rc) {
		if (s->peers)
			peers_stop_streams(s->peers);
		rpc_server_stop(s->rpc, 0);
		free_parts(s);
		return rc;
	}
	s->target = target_of(addresses[0], s->ports[0]);
	s->ready = true;
	master_set_session_idle_limit(s->context.master, o->session_idle_ms);
	mu_info("task", "%s serves on %s%s, kernels %s, %lld ms after its start",
		s->rt->task_prefix, s->target, s->tls ? " with mutual TLS" : "", s->device.chosen,
		(long long)(mu_clock_ms() - s->started_ms));
	*out = s;
	return 0;
}

void task_server_stop(struct task_server *s, long grace_ms)
{
	static const struct timespec tick = {0, 5000000};
	int64_t end = mu_clock_ms() + grace_ms;
	struct worker_counts w;

	if (!s)
		return;
	s->ready = false;
	master_reject_new_steps(s->context.master);
	worker_reject_new_steps(s->context.worker);
	for (worker_count(s->context.worker, &w); w.running && mu_clock_ms() < end;
	     worker_count(s->context.worker, &w))
		nanosleep(&tick, NULL);
	event_listeners_stop(s->event_listeners);
	master_stop(s->context.master);
	worker_stop(s->context.worker);
	peers_stop_streams(s->peers);
	rpc_server_stop(s->rpc, RPC_GRACE_MS);
	free_parts(s);
}

int task_server_call(void *server, const char *method, const struct rpc_message *request,
		     long timeout_ms, struct mu_buf *reply, struct mu_err *err)
{
	struct task_server *s = server;

	return rpc_local_call(s->rpc, method, request, timeout_ms, reply, err);
}

int task_server_local_port(const struct task_server *s)
{
	return s->ports[1];
}

int task_server_http_port(const struct task_server *s)
{
	return s->http_port;
}

const char *task_server_target(const struct task_server *s)
{
	return s->target;
}

void task_server_set_progress(struct task_server *s, const char *json)
{
	pthread_mutex_lock(&s->lock);
	free(s->progress);
	s->progress = json ? mu_xstrdup(json) : NULL;
	pthread_mutex_unlock(&s->lock);
}
