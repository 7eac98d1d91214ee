/* SPDX-License-Identifier: Apache-2.0 */
#include "task/master/master.h"

#include "lib/base/clock.h"
#include "lib/graph/device_name.h"

struct master *master_new(struct runtime *rt, struct peers *peers, struct mu_offload *offload,
			  struct mu_timer *timer, long connect_timeout_ms)
{
	struct master *m = MU_NEW(struct master);

	m->rt = rt;
	m->peers = peers;
	m->offload = offload;
	m->timer = timer;
	m->ids = mu_request_ids_new();
	m->connect_timeout_ms = connect_timeout_ms;
	pthread_mutex_init(&m->lock, NULL);
	pthread_cond_init(&m->sweep_ended, NULL);
	mu_map_init(&m->sessions);
	return m;
}

void master_reject_new_steps(struct master *m)
{
	pthread_mutex_lock(&m->lock);
	m->stopping = true;
	pthread_mutex_unlock(&m->lock);
}

void master_free(struct master *m)
{
	if (!m)
		return;
	mu_map_fini(&m->sessions);
	mu_request_ids_free(m->ids);
	pthread_mutex_destroy(&m->lock);
	pthread_cond_destroy(&m->sweep_ended);
	free(m);
}

unsigned master_sessions(struct master *m)
{
	unsigned n;

	pthread_mutex_lock(&m->lock);
	n = (unsigned)m->sessions.count;
	pthread_mutex_unlock(&m->lock);
	return n;
}

void master_add_waiting(struct master *m, struct fan_out *f)
{
	pthread_mutex_lock(&m->lock);
	f->next = m->waiting;
	f->link = &m->waiting;
	if (f->next)
		f->next->link = &f->next;
	m->waiting = f;
	pthread_mutex_unlock(&m->lock);
}

void master_remove_waiting(struct master *m, struct fan_out *f)
{
	pthread_mutex_lock(&m->lock);
	*f->link = f->next;
	if (f->next)
		f->next->link = f->link;
	pthread_mutex_unlock(&m->lock);
}

void master_describe_waits(struct master *m, uint32_t client_id, struct mu_buf *out)
{
	pthread_mutex_lock(&m->lock);
	for (struct fan_out *f = m->waiting; f && !out->len; f = f->next)
		if (f->client_id == client_id)
			fan_out_describe_pending(f, out);
	pthread_mutex_unlock(&m->lock);
}

struct session *master_session(struct master *m, const char *handle, struct mu_err *err)
{
	struct session *s;

	pthread_mutex_lock(&m->lock);
	s = mu_map_get(&m->sessions, handle);
	if (s)
		session_ref(s);
	pthread_mutex_unlock(&m->lock);
	if (s)
		atomic_store_explicit(&s->used_ms, mu_clock_ms(), memory_order_relaxed);
	else
		mu_fail(err, MU_ABORTED,
			"Session %.64s is not found. Possibly, this master has restarted.", handle);
	return s;
}

int master_add(struct master *m, struct session *s, struct mu_err *err)
{
	int rc = 0;

	s->created_ms = mu_clock_ms();
	s->used_ms = s->created_ms;
	pthread_mutex_lock(&m->lock);
	if (m->stopping)
		rc = mu_fail(err, MU_UNAVAILABLE, "%s is shutting down", m->rt->task_prefix);
	else
		mu_map_put(&m->sessions, s->handle, session_ref(s));
	pthread_mutex_unlock(&m->lock);
	return rc;
}

struct session *master_remove(struct master *m, const char *handle)
{
	struct session *s;

	pthread_mutex_lock(&m->lock);
	s = mu_map_del(&m->sessions, handle);
	pthread_mutex_unlock(&m->lock);
	return s;
}

int master_add_filtered_peers(struct peers *cluster, char **filters, size_t n_filters,
			      struct fan_out *g, struct mu_err *err)
{
	for (unsigned i = 0; i < peers_count(cluster); i++) {
		struct peer *p = peers_at(cluster, i);
		struct mu_device_name task, filter;
		bool is_included = p->local || n_filters == 0;

		for (size_t f = 0; f < n_filters && !is_included; f++) {
			int rc = mu_device_parse(&filter, filters[f], err);

			if (rc)
				return mu_wrap(err, "device filter '%.100s'", filters[f]);
			if (mu_device_parse(&task, p->task, NULL))
				continue;
			is_included = mu_device_intersect(&task, &filter);
		}
		if (is_included)
			fan_out_add(g, p);
	}
	return 0;
}
