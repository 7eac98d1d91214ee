/* SPDX-License-Identifier: Apache-2.0 */
/* Converts the peers' GetStatus replies to the devices of a session. */
#include "task/master/session_devices.h"

#include "lib/graph/device_name.h"
#include "proto/master.pb-c.h"
#include "proto/worker.pb-c.h"
#include "task/messages/control.h"

static Muster__GetStatusResponse *status_of(struct fan_out_entry *e, struct mu_arena *a,
					    struct mu_err *err)
{
	Muster__GetStatusResponse *r = control_unpack(a, &muster__get_status_response__descriptor,
						      mu_buf_span(&e->reply), err);

	if (!r)
		mu_wrap(err, "%s", e->peer->task);
	return r;
}

/* True if the device name has the task's prefix. */
static bool is_device_of(const struct peer *p, const char *device)
{
	size_t n = strlen(p->task);

	return !strncmp(device, p->task, n) && device[n] == '/';
}

/* Replaces the task in a device name by the name of the task in the session. */
static char *rename_device(struct mu_arena *a, const struct peer *p, const char *device)
{
	return mu_arena_printf(a, "%s%s", p->task, device + mu_device_task_len(device));
}

int session_devices(struct session *s, struct fan_out *g, struct mu_err *err)
{
	struct graph_device *list = NULL;
	unsigned n = 0;

	s->peers = MU_ARENA_ARRAY(&s->arena, struct peer *, g->n);
	for (unsigned i = 0; i < g->n; i++) {
		Muster__GetStatusResponse *r = status_of(&g->entries[i], &s->arena, err);
		struct graph_device *grown;

		if (!r)
			return -MU_INVALID_ARGUMENT;
		s->peers[s->n_peers++] = g->entries[i].peer;
		grown = MU_ARENA_ARRAY(&s->arena, struct graph_device, n + r->n_device_attributes);
		if (n)
			memcpy(grown, list, n * sizeof(*list));
		list = grown;
		for (size_t d = 0; d < r->n_device_attributes; d++) {
			Muster__DeviceAttributes *at = r->device_attributes[d];

			if (s->cluster != s->master->peers)
				at->name = rename_device(&s->arena, g->entries[i].peer, at->name);

			if (is_device_of(g->entries[i].peer, at->name))
				list[n++] = (struct graph_device){at->name, at->incarnation,
								  at->device_type};
		}
	}
	s->devices.list = list;
	s->devices.count = n;
	s->devices.client =
	    rename_device(&s->arena, peers_at(s->cluster, 0), s->master->rt->cpu_name);
	return 0;
}

int list_devices(const struct session *s, struct fan_out *g, struct mu_buf *reply,
		 struct mu_err *err)
{
	Muster__ListDevicesResponse m = MUSTER__LIST_DEVICES_RESPONSE__INIT;
	Muster__DeviceAttributes **lists[2] = {NULL, NULL}; /* local, remote */
	struct mu_arena a;
	size_t n[2] = {0, 0};
	int rc = 0;

	mu_arena_init(&a);
	for (unsigned i = 0; i < g->n; i++) {
		Muster__GetStatusResponse *r;
		bool is_remote;

		if (g->entries[i].rc)
			continue;
		r = status_of(&g->entries[i], &a, err);
		if (!r) {
			rc = -MU_INVALID_ARGUMENT;
			break;
		}
		is_remote = !g->entries[i].peer->local;
		lists[is_remote] =
		    mu_xrealloc(lists[is_remote], (n[is_remote] + r->n_device_attributes + 1) *
						      sizeof(*lists[is_remote]));
		for (size_t d = 0; d < r->n_device_attributes; d++) {
			Muster__DeviceAttributes *at = r->device_attributes[d];

			if (s && s->cluster != s->master->peers)
				at->name = rename_device(&a, g->entries[i].peer, at->name);
			lists[is_remote][n[is_remote]++] = at;
		}
	}
	if (!rc) {
		m.n_local_device = n[0];
		m.local_device = lists[0];
		m.n_remote_device = n[1];
		m.remote_device = lists[1];
		control_pack(reply, &m);
	}
	free(lists[0]);
	free(lists[1]);
	mu_arena_fini(&a);
	return rc;
}
