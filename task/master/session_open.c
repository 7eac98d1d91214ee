/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a session, with its devices and its worker sessions on the peers, and closes it. */
#include "lib/base/log.h"
#include "proto/master.pb-c.h"
#include "proto/worker.pb-c.h"
#include "task/master/master.h"
#include "task/master/partial.h"
#include "task/master/session_devices.h"
#include "task/messages/control.h"

enum { DELETE_TIMEOUT_MS = 10000 };

/* Creates a worker session on every peer, with the name of the peer's task. */
static int open_workers(struct session *s, Muster__ClusterDef *cluster_def, struct fan_out *g,
			struct mu_err *err)
{
	bool has_renamed_tasks = s->cluster != s->master->peers;

	for (unsigned i = 0; i < g->n; i++) {
		Muster__CreateWorkerSessionRequest m = MUSTER__CREATE_WORKER_SESSION_REQUEST__INIT;
		Muster__ServerDef def = MUSTER__SERVER_DEF__INIT;

		def.job_name = g->entries[i].peer->job;
		def.task_index = g->entries[i].peer->index;
		def.protocol = (char *)"grpc";
		m.session_handle = s->handle;
		m.server_def = &def;
		m.isolate_session_state = s->isolate;
		def.cluster = has_renamed_tasks ? cluster_def : NULL;
		if (!has_renamed_tasks) { /* else two masters may have the same name */
			m.master_task = s->master->rt->task_prefix;
			m.master_incarnation = (int64_t)s->master->rt->incarnation;
			m.master_address = (char *)peers_own_address(s->master->peers);
		}
		mu_buf_clear(&g->entries[i].request);
		control_pack(&g->entries[i].request, &m);
	}
	fan_out_run(g, PEER_CREATE_SESSION, MU_SPAN(""), s->master->connect_timeout_ms, true,
		    "CreateSession");
	return fan_out_error(g, err);
}

static struct mu_span join_spans(struct mu_arena *a, struct mu_span first, struct mu_span second)
{
	char *joined = mu_arena_alloc(a, first.len + second.len + 1);

	if (first.len)
		memcpy(joined, first.data, first.len);
	if (second.len)
		memcpy(joined + first.len, second.data, second.len);
	return (struct mu_span){joined, first.len + second.len};
}

/* Renames the tasks as in ConfigProto.cluster_def.  There this task is the entry whose address is
 * the client's target. */
static int rename_tasks(struct session *s, const Muster__ClusterDef *c, const char *target,
			struct mu_err *err)
{
	const struct peer *own_peer = peers_at(s->master->peers, 0);
	const Muster__JobDef *own_job = NULL;
	MU_AUTO_CLUSTER cluster = {0};
	int rc, own_index = 0;

	if (!strncmp(target, "grpc://", 7))
		target += 7;
	for (size_t j = 0; j < c->n_job; j++)
		for (size_t t = 0; t < c->job[j]->n_tasks; t++) {
			const Muster__JobDef__TaskEntry *task = c->job[j]->tasks[t];

			if (strcmp(task->value, target))
				continue;
			if (own_job)
				return mu_fail(err, MU_INVALID_ARGUMENT,
					       "Found multiple matching tasks that correspond to "
					       "to the master. Master target: %.200s",
					       target);
			own_job = c->job[j];
			own_index = task->key;
		}
	if (!own_job)
		return mu_fail(
		    err, MU_INVALID_ARGUMENT,
		    "The master (current machine) is not included in the provided cluster_def.");
	if (!strcmp(own_job->name, own_peer->job) && own_index == own_peer->index)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "The ClusterSpec names the job and task index to be the same names "
			       "that were provided when the server booted. This is currently not "
			       "allowed. Job: %.64s, task index: %d",
			       own_peer->job, own_peer->index);
	if ((rc = control_cluster(c, &cluster, err)))
		return rc;
	return peers_renamed(s->master->peers, &cluster, own_job->name, own_index, &s->cluster,
			     err);
}

static int parse_config(struct session *s, const Muster__CreateSessionRequest *req,
			Muster__ConfigProto **out, struct mu_err *err)
{
	Muster__ConfigProto *c;

	/* the concatenation of two protobuf messages is their merge */
	s->config = join_spans(&s->arena, s->master->session_config, control_bytes(req->config));
	c = control_unpack(&s->arena, &muster__config_proto__descriptor, s->config, err);
	if (!c)
		return -MU_INVALID_ARGUMENT;
	s->timeout_ms = c->operation_timeout_in_ms;
	s->isolate = c->isolate_session_state;
	if (c->cluster_def && c->cluster_def->n_job > 0) {
		s->isolate |= !c->experimental ||
			      !c->experimental->share_session_state_in_clusterspec_propagation;
		if (rename_tasks(s, c->cluster_def, req->target, err))
			return -(int)err->code;
	}
	if (c->graph_options) {
		s->cost_every = c->graph_options->build_cost_model;
		s->cost_after = c->graph_options->build_cost_model_after;
		s->devices.bfloat16_edges = c->graph_options->enable_bfloat16_sendrecv;
	}
	s->log_placement = c->log_device_placement;
	s->devices.soft_placement = c->allow_soft_placement;
	*out = c;
	return 0;
}

static int session_set_up(struct session *s, const Muster__CreateSessionRequest *req,
			  struct fan_out *g, struct mu_err *err)
{
	Muster__ConfigProto *config = NULL;
	int rc = parse_config(s, req, &config, err);

	if (!rc)
		rc = mu_graph_parse(s->graph, control_bytes(req->graph_def), err);
	if (!rc)
		rc = graph_check_new(s->graph, 0, false, err);
	if (!rc)
		rc = master_add_filtered_peers(s->cluster, config->device_filters,
					       config->n_device_filters, g, err);
	if (rc)
		return rc;
	fan_out_run(g, PEER_GET_STATUS, MU_SPAN(""), s->master->connect_timeout_ms, true,
		    "CreateSession");
	rc = fan_out_error(g, err);
	if (!rc)
		rc = session_devices(s, g, err);
	if (!rc)
		rc = open_workers(s, config->cluster_def, g, err);
	return rc;
}

static void delete_workers(struct session *s)
{
	Muster__DeleteWorkerSessionRequest m = MUSTER__DELETE_WORKER_SESSION_REQUEST__INIT;
	MU_AUTO_BUF request = {0};
	struct fan_out g;

	m.session_handle = s->handle;
	control_pack(&request, &m);
	fan_out_init(&g);
	for (unsigned i = 0; i < s->n_peers; i++)
		fan_out_add(&g, s->peers[i]);
	fan_out_run(&g, PEER_DELETE_SESSION, mu_buf_span(&request), DELETE_TIMEOUT_MS, false,
		    "CloseSession");
	fan_out_fini(&g); /* ignores errors: a peer that has ended has no session to delete */
}

int session_create(struct master *m, struct mu_span request, struct fan_out *g,
		   struct session **out, struct mu_err *err)
{
	struct session *s = session_new(m);
	Muster__CreateSessionRequest *req =
	    control_unpack(&s->arena, &muster__create_session_request__descriptor, request, err);
	int rc = req ? session_set_up(s, req, g, err) : -MU_INVALID_ARGUMENT;

	if (rc || (rc = master_add(m, s, err))) {
		delete_workers(s); /* some tasks may have opened it */
		session_unref(s);
		return rc;
	}
	mu_info("master", "session %s: %u nodes, %u of %u tasks%s", s->handle, s->graph->n_nodes,
		s->n_peers, peers_count(s->cluster), s->isolate ? ", isolated state" : "");
	*out = s;
	return 0;
}

void session_close(struct session *s, const struct mu_err *why)
{
	struct run_step **steps;
	unsigned n;

	pthread_mutex_lock(&s->lock);
	if (s->closed) {
		pthread_mutex_unlock(&s->lock);
		return;
	}
	s->closed = true;
	steps = run_steps_of(s, &n);
	if (s->registering)
		fan_out_cancel(s->registering);
	pthread_mutex_unlock(&s->lock);
	for (unsigned i = 0; i < n; i++) {
		run_step_close(steps[i], why);
		run_step_unref(steps[i]);
	}
	free(steps);
	partials_drop(s);
	pthread_mutex_lock(&s->lock);
	while (s->running)
		pthread_cond_wait(&s->idle, &s->lock);
	pthread_mutex_unlock(&s->lock);
	delete_workers(s);
	mu_info("master", "session %s: closed", s->handle);
}
