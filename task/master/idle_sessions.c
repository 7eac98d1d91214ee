/* SPDX-License-Identifier: Apache-2.0 */
/* Closes idle sessions, and all sessions when the master stops.
 *
 * A client that crashes leaves its session open, and TensorFlow keeps such a session forever.  Here
 * a session is closed if it runs no step and no call has used it for `session_idle_ms`.  With more
 * than MANY_IDLE idle sessions the limit is an hour, because clients then start and crash in a
 * loop.
 *
 * The timer thread only requests a sweep.  An offload thread does it, because closing a session
 * calls the other tasks.  master_stop waits for a running sweep, and no sweep starts after it. */
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "task/master/master.h"

enum { MANY_IDLE = 1000, MANY_IDLE_LIMIT_MS = 3600 * 1000, MAX_SWEEP_INTERVAL_MS = 60 * 1000 };

static bool is_running(struct session *s)
{
	bool running;

	pthread_mutex_lock(&s->lock);
	running = s->running;
	pthread_mutex_unlock(&s->lock);
	return running;
}

/* Removes the longest idle session from the master if it exceeds the limit.  Returns its reference,
 * or NULL.  Marks sessions with a running step as used now. */
static struct session *take_idle_session(struct master *m)
{
	int64_t now = mu_clock_ms(), limit = m->session_idle_ms;
	struct session *oldest = NULL;
	unsigned n = 0;

	pthread_mutex_lock(&m->lock);
	mu_map_each (&m->sessions, slot) {
		struct session *s = slot->value;

		if (is_running(s)) {
			s->used_ms = now;
			continue;
		}
		n++;
		if (!oldest || s->used_ms < oldest->used_ms)
			oldest = s;
	}
	if (n > MANY_IDLE && limit > MANY_IDLE_LIMIT_MS)
		limit = MANY_IDLE_LIMIT_MS;
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

	while ((s = take_idle_session(m))) {
		mu_info("master", "closing session %s: idle for %lld s", s->handle,
			(long long)(mu_clock_ms() - s->used_ms) / 1000);
		mu_fail(&why, MU_ABORTED, "The session was idle for too long");
		session_close(s, &why);
		session_unref(s);
	}
	pthread_mutex_lock(&m->lock);
	m->is_sweeping = false;
	pthread_cond_broadcast(&m->sweep_ended);
	pthread_mutex_unlock(&m->lock);
}

static void request_sweep(void *arg);

static void schedule_sweep(struct master *m)
{
	int64_t interval = m->session_idle_ms / 4 + 1;

	mu_timer_add(m->timer, interval < MAX_SWEEP_INTERVAL_MS ? interval : MAX_SWEEP_INTERVAL_MS,
		     request_sweep, m);
}

static void request_sweep(void *arg)
{
	struct master *m = arg;

	pthread_mutex_lock(&m->lock);
	if (!m->stopping) {
		if (!m->is_sweeping) {
			m->is_sweeping = true;
			mu_offload_run(m->offload, sweep, m);
		}
		schedule_sweep(m);
	}
	pthread_mutex_unlock(&m->lock);
}

void master_set_session_idle_limit(struct master *m, int64_t idle_ms)
{
	m->session_idle_ms = idle_ms;
	if (idle_ms > 0)
		schedule_sweep(m);
}

/* Waits for a running sweep.  After master_reject_new_steps no sweep starts. */
static void wait_sweep(struct master *m)
{
	pthread_mutex_lock(&m->lock);
	while (m->is_sweeping)
		pthread_cond_wait(&m->sweep_ended, &m->lock);
	pthread_mutex_unlock(&m->lock);
}

void master_close_all(struct master *m, const struct mu_err *why)
{
	pthread_mutex_lock(&m->lock);
	MU_AUTO_FREE struct session **list = MU_NEW_ARRAY(struct session *, m->sessions.count + 1);
	unsigned n = 0;
	mu_map_each (&m->sessions, s)
		list[n++] = s->value;
	for (unsigned i = 0; i < n; i++)
		mu_map_del(&m->sessions, list[i]->handle);
	pthread_mutex_unlock(&m->lock);
	for (unsigned i = 0; i < n; i++) {
		session_close(list[i], why);
		session_unref(list[i]);
	}
}

void master_stop(struct master *m)
{
	struct mu_err why;

	master_reject_new_steps(m);
	wait_sweep(m);
	mu_fail(&why, MU_UNAVAILABLE, "%s is shutting down", m->rt->task_prefix);
	master_close_all(m, &why);
}
