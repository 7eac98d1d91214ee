/* SPDX-License-Identifier: Apache-2.0 */
#include "task/master/fan_out.h"

#include <errno.h>

#include "lib/base/clock.h"
#include "lib/base/cond.h"
#include "lib/base/log.h"

enum { FIRST_WARNING_S = 3, MAX_NAMED = 3 };

void fan_out_init(struct fan_out *g)
{
	*g = (struct fan_out){.entries = NULL};
	pthread_mutex_init(&g->lock, NULL);
	pthread_cond_init(&g->changed, NULL);
}

void fan_out_fini(struct fan_out *g)
{
	for (unsigned i = 0; i < g->n; i++) {
		mu_buf_fini(&g->entries[i].reply);
		mu_buf_fini(&g->entries[i].request);
	}
	free(g->entries);
	pthread_mutex_destroy(&g->lock);
	pthread_cond_destroy(&g->changed);
}

void fan_out_add(struct fan_out *g, struct peer *p)
{
	pthread_mutex_lock(&g->lock);
	if ((g->n & (g->n - 1)) == 0) /* the capacity is a power of two */
		g->entries = mu_xrealloc(g->entries, (g->n ? 2 * g->n : 1) * sizeof(*g->entries));
	g->entries[g->n++] = (struct fan_out_entry){.owner = g, .peer = p};
	pthread_mutex_unlock(&g->lock);
}

static void entry_on_reply(void *arg, const struct mu_err *err, struct mu_span reply)
{
	struct fan_out_entry *e = arg;
	struct fan_out *g = e->owner;

	pthread_mutex_lock(&g->lock);
	if (err) {
		e->rc = -(int)err->code;
		e->err = *err;
	} else {
		mu_buf_put(&e->reply, reply.data, reply.len);
	}
	e->replied = true;
	g->pending--;
	pthread_cond_broadcast(&g->changed);
	pthread_mutex_unlock(&g->lock);
}

static void entry_describe(struct fan_out *g, struct mu_buf *out)
{
	unsigned n = 0;

	for (unsigned i = 0; i < g->n; i++) {
		struct peer *p = g->entries[i].peer;

		if (g->entries[i].replied || n++ >= MAX_NAMED)
			continue;
		mu_buf_printf(out, "%s%s", out->len ? ", " : "", p->task);
		if (p->ops->describe)
			p->ops->describe(p, out);
	}
	if (n > MAX_NAMED)
		mu_buf_printf(out, " and %u more", n - MAX_NAMED);
}

void fan_out_describe(struct fan_out *g, struct mu_buf *out)
{
	pthread_mutex_lock(&g->lock);
	if (g->pending)
		entry_describe(g, out);
	pthread_mutex_unlock(&g->lock);
}

/* Called with the lock held; releases it while it writes the log line, which may block. */
static void warn_missing(struct fan_out *g, const char *what, unsigned seconds)
{
	MU_AUTO_BUF text = {0};

	entry_describe(g, &text);
	mu_buf_putc(&text, 0);
	pthread_mutex_unlock(&g->lock);
	/* TensorFlow's phrase, for which users and scripts search logs */
	mu_warn("master", "%s still waiting for response from worker: %s after %u s", what,
		text.data, seconds);
	pthread_mutex_lock(&g->lock);
}

void fan_out_cancel(struct fan_out *g)
{
	pthread_mutex_lock(&g->lock);
	g->cancelled = true;
	pthread_mutex_unlock(&g->lock);
	for (unsigned i = 0; i < g->n; i++) {
		uint64_t id;

		pthread_mutex_lock(&g->lock);
		id = g->entries[i].replied ? 0 : g->entries[i].id;
		pthread_mutex_unlock(&g->lock);
		if (id)
			g->entries[i].peer->ops->cancel(g->entries[i].peer, id);
	}
}

void fan_out_run(struct fan_out *g, enum peer_method m, struct mu_span request, long timeout_ms,
		 bool wait, const char *what)
{
	unsigned seconds = 0, interval = FIRST_WARNING_S;
	int64_t warn_ms;
	bool cancelled;

	pthread_mutex_lock(&g->lock);
	g->pending = g->n;
	for (unsigned i = 0; i < g->n; i++) {
		g->entries[i].replied = false;
		g->entries[i].id = 0;
		g->entries[i].rc = 0;
		mu_buf_clear(&g->entries[i].reply);
	}
	pthread_mutex_unlock(&g->lock);
	for (unsigned i = 0; i < g->n; i++) {
		struct fan_out_entry *e = &g->entries[i];
		uint64_t id = e->peer->ops->call(
		    e->peer, m, e->request.len ? mu_buf_span(&e->request) : request, timeout_ms,
		    wait, entry_on_reply, e);

		pthread_mutex_lock(&g->lock);
		e->id = id;
		cancelled = g->cancelled;
		pthread_mutex_unlock(&g->lock);
		if (cancelled && id)
			e->peer->ops->cancel(e->peer, id);
	}
	pthread_mutex_lock(&g->lock);
	warn_ms = mu_clock_ms() + interval * INT64_C(1000);
	while (g->pending > 0)
		if (mu_cond_wait_until(&g->changed, &g->lock, warn_ms) == ETIMEDOUT) {
			seconds += interval;
			warn_missing(g, what, seconds);
			interval *= 2;
			warn_ms += interval * INT64_C(1000);
		}
	pthread_mutex_unlock(&g->lock);
}

int fan_out_error(struct fan_out *g, struct mu_err *err)
{
	for (unsigned i = 0; i < g->n; i++)
		if (g->entries[i].rc)
			return mu_fail(err, g->entries[i].err.code, "%s: %s",
				       g->entries[i].peer->task, g->entries[i].err.msg);
	return 0;
}
