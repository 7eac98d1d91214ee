/* SPDX-License-Identifier: Apache-2.0 */
#include "task/master/gather.h"

#include <errno.h>
#include <time.h>

#include "lib/base/log.h"

enum { REMIND_S = 3, NAMED = 3 };

void gather_init(struct gather *g, unsigned cap)
{
	*g = (struct gather){.entries = MU_NEW_ARRAY(struct gather_entry, cap ? cap : 1)};
	pthread_mutex_init(&g->lock, NULL);
	pthread_cond_init(&g->changed, NULL);
}

void gather_fini(struct gather *g)
{
	for (unsigned i = 0; i < g->n; i++) {
		mu_buf_fini(&g->entries[i].reply);
		mu_buf_fini(&g->entries[i].request);
	}
	free(g->entries);
	pthread_mutex_destroy(&g->lock);
	pthread_cond_destroy(&g->changed);
}

void gather_add(struct gather *g, struct peer *p)
{
	g->entries[g->n++] = (struct gather_entry){.owner = g, .peer = p};
}

static void answered(void *arg, const struct mu_err *err, struct mu_span reply)
{
	struct gather_entry *e = arg;
	struct gather *g = e->owner;

	pthread_mutex_lock(&g->lock);
	if (err) {
		e->rc = -(int)err->code;
		e->err = *err;
	} else {
		mu_buf_put(&e->reply, reply.data, reply.len);
	}
	e->ended = true;
	g->pending--;
	pthread_cond_broadcast(&g->changed);
	pthread_mutex_unlock(&g->lock);
}

static void describe(struct gather *g, struct mu_buf *out)
{
	unsigned n = 0;

	for (unsigned i = 0; i < g->n; i++) {
		struct peer *p = g->entries[i].peer;

		if (g->entries[i].ended || n++ >= NAMED)
			continue;
		mu_buf_printf(out, "%s%s", out->len ? ", " : "", p->task);
		if (p->ops->describe)
			p->ops->describe(p, out);
	}
	if (n > NAMED)
		mu_buf_printf(out, " and %u more", n - NAMED);
}

void gather_describe(struct gather *g, struct mu_buf *out)
{
	pthread_mutex_lock(&g->lock);
	if (g->pending)
		describe(g, out);
	pthread_mutex_unlock(&g->lock);
}

/* With the lock, which is let go while the line is written: who reads it may be slow. */
static void remind(struct gather *g, const char *what, unsigned seconds)
{
	MU_AUTO_BUF text = {0};

	describe(g, &text);
	mu_buf_putc(&text, 0);
	pthread_mutex_unlock(&g->lock);
	mu_warn("master", "%s waits for %u s now for %s", what, seconds, text.data);
	pthread_mutex_lock(&g->lock);
}

void gather_cancel(struct gather *g)
{
	pthread_mutex_lock(&g->lock);
	g->cancelled = true;
	pthread_mutex_unlock(&g->lock);
	for (unsigned i = 0; i < g->n; i++) {
		uint64_t id;

		pthread_mutex_lock(&g->lock);
		id = g->entries[i].ended ? 0 : g->entries[i].id;
		pthread_mutex_unlock(&g->lock);
		if (id)
			g->entries[i].peer->ops->cancel(g->entries[i].peer, id);
	}
}

void gather_run(struct gather *g, enum peer_method m, struct mu_span request, long timeout_ms,
		bool wait, const char *what)
{
	unsigned seconds = 0, gap = REMIND_S;
	struct timespec at;
	bool cancelled;

	pthread_mutex_lock(&g->lock);
	g->pending = g->n;
	for (unsigned i = 0; i < g->n; i++) {
		g->entries[i].ended = false;
		g->entries[i].id = 0;
		g->entries[i].rc = 0;
		mu_buf_clear(&g->entries[i].reply);
	}
	pthread_mutex_unlock(&g->lock);
	for (unsigned i = 0; i < g->n; i++) {
		struct gather_entry *e = &g->entries[i];
		uint64_t id = e->peer->ops->call(
		    e->peer, m, e->request.len ? mu_buf_span(&e->request) : request, timeout_ms,
		    wait, answered, e);

		pthread_mutex_lock(&g->lock);
		e->id = id;
		cancelled = g->cancelled;
		pthread_mutex_unlock(&g->lock);
		if (cancelled && id)
			e->peer->ops->cancel(e->peer, id);
	}
	pthread_mutex_lock(&g->lock);
	clock_gettime(CLOCK_REALTIME, &at);
	at.tv_sec += gap;
	while (g->pending > 0)
		if (pthread_cond_timedwait(&g->changed, &g->lock, &at) == ETIMEDOUT) {
			seconds += gap;
			remind(g, what, seconds);
			gap *= 2;
			at.tv_sec += gap;
		}
	pthread_mutex_unlock(&g->lock);
}

int gather_error(struct gather *g, struct mu_err *err)
{
	for (unsigned i = 0; i < g->n; i++)
		if (g->entries[i].rc)
			return mu_fail(err, g->entries[i].err.code, "%s: %s",
				       g->entries[i].peer->task, g->entries[i].err.msg);
	return 0;
}
