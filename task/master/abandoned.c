/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions whose client went away without closing them.
 *
 * A session is abandoned when the connection that last named it is closed and no step of it runs.
 * That alone does not end it: a client's library may close a connection that rests and open another
 * one for its next call (gRPC does after 30 minutes).  So it ends once it has also been left alone
 * for `abandoned_ms`, a day unless told; an hour when more than MANY are abandoned, for then
 * clients come and die in a loop.
 *
 * The timer's thread only asks for a sweep, an offload thread does it: closing talks to the other
 * tasks.  master_stop waits for a sweep that runs, and none begins after it. */
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "task/master/master.h"

enum { MANY = 1000, MANY_MS = 3600 * 1000, LONGEST_PAUSE_MS = 60 * 1000 };

static bool is_abandoned(struct master *m, struct session *s)
{
	bool rests;

	if (rpc_origin_is_open(m->rpc, s->origin))
		return false;
	pthread_mutex_lock(&s->lock);
	rests = !s->running;
	pthread_mutex_unlock(&s->lock);
	return rests;
}

bool session_is_abandoned(struct session *s)
{
	return is_abandoned(s->master, s);
}

/* A reference to one that has had its time, and taken out; NULL: none. */
static struct session *take_one(struct master *m)
{
	int64_t now = mu_clock_ms(), limit = m->abandoned_ms;
	struct session *oldest = NULL;
	unsigned n = 0;

	pthread_mutex_lock(&m->lock);
	mu_map_each (&m->sessions, slot) {
		struct session *s = slot->value;

		if (!is_abandoned(m, s))
			continue;
		n++;
		if (!oldest || s->used_ms < oldest->used_ms)
			oldest = s;
	}
	if (n > MANY && limit > MANY_MS)
		limit = MANY_MS;
	if (oldest && !m->stopping && now - oldest->used_ms >= limit)
		mu_map_del(&m->sessions, oldest->handle);
	else
		oldest = NULL;
	pthread_mutex_unlock(&m->lock);
	return oldest;
}

static void sweep(void *arg)
{
	struct master *m = arg;
	struct session *s;
	struct mu_err why;

	while ((s = take_one(m))) {
		mu_info("master",
			"session %s: its client has gone and said nothing for %lld s; closing it",
			s->handle, (long long)(mu_clock_ms() - s->used_ms) / 1000);
		mu_fail(&why, MU_ABORTED, "The session's client had gone");
		session_close(s, &why);
		session_unref(s);
	}
	pthread_mutex_lock(&m->lock);
	m->sweeping = false;
	pthread_cond_broadcast(&m->swept);
	pthread_mutex_unlock(&m->lock);
}

static void on_time(void *arg);

static void sweep_later(struct master *m)
{
	int64_t pause = m->abandoned_ms / 4 + 1;

	timer_add(m->timer, pause < LONGEST_PAUSE_MS ? pause : LONGEST_PAUSE_MS, on_time, m);
}

static void on_time(void *arg)
{
	struct master *m = arg;

	pthread_mutex_lock(&m->lock);
	if (!m->stopping) {
		if (!m->sweeping) {
			m->sweeping = true;
			offload_run(m->offload, sweep, m);
		}
		sweep_later(m);
	}
	pthread_mutex_unlock(&m->lock);
}

void master_watch_clients(struct master *m, struct rpc_server *rpc, int64_t abandoned_ms)
{
	pthread_mutex_lock(&m->lock);
	m->rpc = rpc;
	m->abandoned_ms = abandoned_ms;
	pthread_mutex_unlock(&m->lock);
	if (abandoned_ms > 0)
		sweep_later(m);
}

void master_end_watch(struct master *m)
{
	pthread_mutex_lock(&m->lock);
	while (m->sweeping)
		pthread_cond_wait(&m->swept, &m->lock);
	pthread_mutex_unlock(&m->lock);
}
