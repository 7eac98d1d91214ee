/* SPDX-License-Identifier: Apache-2.0 */
/* The lists of /status: resources, parked steps, sessions, and traffic with each other task.  Each
 * list is bounded; the counts beside them are not. */
#include <stdio.h>

#include "lib/base/clock.h"
#include "lib/io/json.h"
#include "task/runtime/traffic.h"
#include "task/server_internal.h"

enum { MAX_RESOURCES = 1000, MAX_STEPS = 100, MAX_WAITS = 8, MAX_SESSIONS = 1000 };

struct list {
	struct mu_buf *b;
	unsigned n, waits;
	bool open; /* a step's own list of waits has begun */
	int64_t step_id, now;
};

static void put_text(struct mu_buf *b, const char *key, const char *text)
{
	mu_buf_printf(b, "\"%s\":", key);
	mu_json_quote(b, mu_span_of(text));
	mu_buf_putc(b, ',');
}

static void see_resource(void *arg, struct resource *r)
{
	struct list *l = arg;

	if (l->n++ >= MAX_RESOURCES)
		return;
	mu_buf_puts(l->b, l->n > 1 ? ",{" : "{");
	put_text(l->b, "container", r->container);
	put_text(l->b, "name", r->name);
	put_text(l->b, "type", r->type->name);
	mu_buf_printf(l->b, "\"bytes\":%zu}", r->type->bytes ? r->type->bytes(r) : 0);
}

static void end_step(struct list *l)
{
	if (l->open)
		mu_buf_puts(l->b, "]}");
	l->open = false;
}

static void see_step(void *arg, int64_t step_id)
{
	struct list *l = arg;

	end_step(l);
	l->step_id = step_id;
	l->waits = 0;
}

/* Room for one more thing that the step waits for: its first one begins the step's entry. */
static bool next_wait(struct list *l)
{
	if (l->waits++ >= MAX_WAITS || (!l->open && l->n >= MAX_STEPS))
		return false;
	if (l->open) {
		mu_buf_putc(l->b, ',');
		return true;
	}
	mu_buf_printf(l->b, "%s{\"step\":\"%lld\",\"waitsFor\":[", l->n++ ? "," : "",
		      (long long)l->step_id);
	l->open = true;
	return true;
}

static void see_node(void *arg, const struct mu_node *n)
{
	struct list *l = arg;
	MU_AUTO_BUF text = {0};

	if (!next_wait(l))
		return;
	mu_buf_printf(&text, "%s (%s)", n->name, n->op);
	mu_json_quote(l->b, mu_buf_span(&text));
}

static void see_key(void *arg, const char *key)
{
	struct list *l = arg;
	struct rendezvous_key k;
	MU_AUTO_BUF text = {0};

	if (rendezvous_key_parse(&k, key, NULL) || !next_wait(l))
		return;
	mu_buf_printf(&text, "%.*s from %.*s", (int)k.edge.len, k.edge.data, (int)k.src_device.len,
		      k.src_device.data);
	mu_json_quote(l->b, mu_buf_span(&text));
}

static void see_traffic(void *arg, const char *task, uint64_t in, uint64_t out)
{
	struct list *l = arg;

	mu_buf_puts(l->b, l->n++ ? ",{" : "{");
	put_text(l->b, "task", task);
	mu_buf_printf(l->b, "\"bytesIn\":%llu,\"bytesOut\":%llu}", (unsigned long long)in,
		      (unsigned long long)out);
}

static void put_sessions(struct task_server *s, struct list *l)
{
	struct master *m = s->context.master;

	pthread_mutex_lock(&m->lock);
	mu_map_each (&m->sessions, slot) {
		struct session *one = slot->value;
		if (l->n >= MAX_SESSIONS)
			break;
		mu_buf_printf(
		    l->b, "%s{\"handle\":\"%s\",\"ageSeconds\":%.1f,\"idleSeconds\":%.1f}",
		    l->n++ ? "," : "", one->handle, (double)(l->now - one->created_ms) / 1000,
		    (double)(l->now - one->used_ms) / 1000);
	}
	pthread_mutex_unlock(&m->lock);
}

void server_status_lists(struct task_server *s, struct mu_buf *b)
{
	struct list resources = {.b = b}, steps = {.b = b}, peers = {.b = b};
	struct list sessions = {.b = b, .now = mu_clock_ms()};
	struct worker_see see = {see_step, see_node, see_key, &steps};

	mu_buf_puts(b, "\"resourceList\":[");
	resources_each(s->rt->resources, see_resource, &resources);
	mu_buf_puts(b, "],\"parkedSteps\":[");
	worker_each_step(s->context.worker, &see);
	end_step(&steps);
	mu_buf_puts(b, "],\"peers\":[");
	traffic_each(s->rt->traffic, see_traffic, &peers);
	mu_buf_puts(b, "],\"sessionList\":[");
	put_sessions(s, &sessions);
	mu_buf_puts(b, "],");
}
