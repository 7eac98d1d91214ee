/* SPDX-License-Identifier: Apache-2.0 */
#include "task/master/fan_out.h"

#include <errno.h>

#include "lib/base/clock.h"
#include "lib/base/cond.h"
#include "lib/base/log.h"

enum { FIRST_WARNING_S = 3, MAX_NAMED_PEERS = 3 };

void fan_out_init(struct fan_out *f)
{
	*f = (struct fan_out){.entries = NULL};
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->changed, NULL);
}

void fan_out_fini(struct fan_out *f)
{
	for (unsigned i = 0; i < f->n; i++) {
		mu_buf_fini(&f->entries[i].reply);
		mu_buf_fini(&f->entries[i].request);
	}
	free(f->entries);
	pthread_mutex_destroy(&f->lock);
	pthread_cond_destroy(&f->changed);
}

void fan_out_add(struct fan_out *f, struct peer *p)
{
	pthread_mutex_lock(&f->lock);
	if ((f->n & (f->n - 1)) == 0) /* the capacity is a power of two */
		f->entries = mu_xrealloc(f->entries, (f->n ? 2 * f->n : 1) * sizeof(*f->entries));
	f->entries[f->n++] = (struct fan_out_entry){.owner = f, .peer = p};
	pthread_mutex_unlock(&f->lock);
}

static void entry_on_reply(void *arg, const struct mu_err *err, struct mu_span reply)
{
	struct fan_out_entry *e = arg;
	struct fan_out *f = e->owner;

	pthread_mutex_lock(&f->lock);
	if (err) {
		e->rc = -(int)err->code;
		e->err = *err;
	} else {
		mu_buf_put(&e->reply, reply.data, reply.len);
	}
	e->replied = true;
	f->pending--;
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
}

static void entry_describe(struct fan_out *f, struct mu_buf *out)
{
	unsigned n = 0;

	for (unsigned i = 0; i < f->n; i++) {
		struct peer *p = f->entries[i].peer;

		if (f->entries[i].replied || n++ >= MAX_NAMED_PEERS)
			continue;
		mu_buf_printf(out, "%s%s", out->len ? ", " : "", p->task);
		if (p->ops->describe)
			p->ops->describe(p, out);
	}
	if (n > MAX_NAMED_PEERS)
		mu_buf_printf(out, " and %u more", n - MAX_NAMED_PEERS);
}

void fan_out_describe_pending(struct fan_out *f, struct mu_buf *out)
{
	pthread_mutex_lock(&f->lock);
	if (f->pending)
		entry_describe(f, out);
	pthread_mutex_unlock(&f->lock);
}

/* Called with the lock held; releases it while it writes the log line, which may block. */
static void warn_missing(struct fan_out *f, const char *method_name, unsigned seconds)
{
	MU_AUTO_BUF text = {0};

	entry_describe(f, &text);
	mu_buf_putc(&text, 0);
	pthread_mutex_unlock(&f->lock);
	/* TensorFlow's phrase, for which users and scripts search logs */
	mu_warn("master", "%s still waiting for response from worker: %s after %u s", method_name,
		text.data, seconds);
	pthread_mutex_lock(&f->lock);
}

void fan_out_cancel(struct fan_out *f)
{
	pthread_mutex_lock(&f->lock);
	f->cancelled = true;
	pthread_mutex_unlock(&f->lock);
	for (unsigned i = 0; i < f->n; i++) {
		uint64_t id;

		pthread_mutex_lock(&f->lock);
		id = f->entries[i].replied ? 0 : f->entries[i].id;
		pthread_mutex_unlock(&f->lock);
		if (id)
			f->entries[i].peer->ops->cancel(f->entries[i].peer, id);
	}
}

void fan_out_run(struct fan_out *f, enum peer_method m, struct mu_span request, long timeout_ms,
		 bool wait_for_ready, const char *method_name)
{
	unsigned seconds = 0, interval = FIRST_WARNING_S;
	int64_t warn_ms;
	bool cancelled;

	pthread_mutex_lock(&f->lock);
	f->pending = f->n;
	for (unsigned i = 0; i < f->n; i++) {
		f->entries[i].replied = false;
		f->entries[i].id = 0;
		f->entries[i].rc = 0;
		mu_buf_clear(&f->entries[i].reply);
	}
	pthread_mutex_unlock(&f->lock);
	for (unsigned i = 0; i < f->n; i++) {
		struct fan_out_entry *e = &f->entries[i];
		uint64_t id = e->peer->ops->call(
		    e->peer, m, e->request.len ? mu_buf_span(&e->request) : request, timeout_ms,
		    wait_for_ready, entry_on_reply, e);

		pthread_mutex_lock(&f->lock);
		e->id = id;
		cancelled = f->cancelled;
		pthread_mutex_unlock(&f->lock);
		if (cancelled && id)
			e->peer->ops->cancel(e->peer, id);
	}
	pthread_mutex_lock(&f->lock);
	warn_ms = mu_clock_ms() + interval * INT64_C(1000);
	while (f->pending > 0)
		if (mu_cond_wait_until(&f->changed, &f->lock, warn_ms) == ETIMEDOUT) {
			seconds += interval;
			warn_missing(f, method_name, seconds);
			interval *= 2;
			warn_ms += interval * INT64_C(1000);
		}
	pthread_mutex_unlock(&f->lock);
}

int fan_out_error(struct fan_out *f, struct mu_err *err)
{
	for (unsigned i = 0; i < f->n; i++)
		if (f->entries[i].rc)
			return mu_fail(err, f->entries[i].err.code, "%s: %s",
				       f->entries[i].peer->task, f->entries[i].err.msg);
	return 0;
}
