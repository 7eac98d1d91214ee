/* SPDX-License-Identifier: Apache-2.0 */
/* The lists of /status: resources, pending steps, sessions, and traffic with each other task.  Each
 * list has a maximum length; the counts in /status are always complete. */
#include <cjson/cJSON.h>
#include <stdio.h>

#include "lib/base/clock.h"
#include "task/runtime/traffic.h"
#include "task/server_internal.h"

enum { MAX_RESOURCES = 1000, MAX_STEPS = 100, MAX_WAITS = 8, MAX_SESSIONS = 1000 };

struct list {
	cJSON *items;
	unsigned n;
	cJSON *waits_for; /* "waitsFor" of the current step; NULL: the list does not have it yet */
	unsigned n_waits;
	int64_t step_id;
};

static cJSON *add_item(struct list *l)
{
	cJSON *item = cJSON_CreateObject();

	cJSON_AddItemToArray(l->items, item);
	return item;
}

static void add_resource(void *arg, struct resource *r)
{
	struct list *l = arg;
	cJSON *item;

	if (l->n++ >= MAX_RESOURCES)
		return;
	item = add_item(l);
	cJSON_AddStringToObject(item, "container", r->container);
	cJSON_AddStringToObject(item, "name", r->name);
	cJSON_AddStringToObject(item, "type",
				resource_is_variable(r) ? variable_type.name : r->type->name);
	cJSON_AddNumberToObject(item, "bytes", r->type->bytes ? (double)r->type->bytes(r) : 0);
}

static void begin_step(void *arg, int64_t step_id)
{
	struct list *l = arg;

	l->step_id = step_id;
	l->waits_for = NULL;
	l->n_waits = 0;
}

/* Adds a node or tensor that the current step waits for; the first time, adds the step too. */
static void add_wait(struct list *l, const char *text)
{
	if (l->n_waits++ >= MAX_WAITS || (!l->waits_for && l->n >= MAX_STEPS))
		return;
	if (!l->waits_for) {
		cJSON *step = add_item(l);
		char id[24];

		snprintf(id, sizeof(id), "%lld", (long long)l->step_id);
		cJSON_AddStringToObject(step, "step", id);
		l->waits_for = cJSON_AddArrayToObject(step, "waitsFor");
		l->n++;
	}
	cJSON_AddItemToArray(l->waits_for, cJSON_CreateString(text));
}

static void add_pending_node(void *arg, const struct mu_node *n)
{
	MU_AUTO_FREE char *text = mu_xasprintf("%s (%s)", n->name, n->op);

	add_wait(arg, text);
}

static void add_awaited_key(void *arg, const char *key)
{
	struct rendezvous_key k;
	MU_AUTO_FREE char *text = NULL;

	if (rendezvous_key_parse(&k, key, NULL))
		return;
	text = mu_xasprintf("%.*s from %.*s", (int)k.edge.len, k.edge.data, (int)k.src_device.len,
			    k.src_device.data);
	add_wait(arg, text);
}

static void add_traffic(void *arg, const char *task, uint64_t in, uint64_t out)
{
	cJSON *item = add_item(arg);

	cJSON_AddStringToObject(item, "task", task);
	cJSON_AddNumberToObject(item, "bytesIn", (double)in);
	cJSON_AddNumberToObject(item, "bytesOut", (double)out);
}

static double seconds_since(int64_t ms)
{
	return (double)(mu_clock_ms() - ms) / 1000;
}

static void list_sessions(struct task_server *s, struct list *l)
{
	struct master *m = s->context.master;

	pthread_mutex_lock(&m->lock);
	mu_map_each (&m->sessions, slot) {
		struct session *session = slot->value;
		cJSON *item;

		if (l->n++ >= MAX_SESSIONS)
			break;
		item = add_item(l);
		cJSON_AddStringToObject(item, "handle", session->handle);
		cJSON_AddNumberToObject(item, "ageSeconds", seconds_since(session->created_ms));
		cJSON_AddNumberToObject(item, "idleSeconds", seconds_since(session->used_ms));
	}
	pthread_mutex_unlock(&m->lock);
}

void server_status_lists(struct task_server *s, cJSON *to)
{
	struct list resources = {.items = cJSON_AddArrayToObject(to, "resourceList")};
	struct list steps = {.items = cJSON_AddArrayToObject(to, "pendingSteps")};
	struct list peers = {.items = cJSON_AddArrayToObject(to, "peers")};
	struct list sessions = {.items = cJSON_AddArrayToObject(to, "sessionList")};
	struct worker_visitor visitor = {begin_step, add_pending_node, add_awaited_key, &steps};

	resources_each(s->rt->resources, add_resource, &resources);
	worker_each_step(s->context.worker, &visitor);
	traffic_each(s->rt->traffic, add_traffic, &peers);
	list_sessions(s, &sessions);
}
