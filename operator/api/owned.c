/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/api/owned.h"

#include "operator/api/object_json.h"

/* Volcano says why in a condition; the scheduler plug-ins have a phase only. */
static char *why_waiting(const cJSON *status)
{
	const cJSON *c;

	cJSON_ArrayForEach(c, at(status, "conditions"))
	{
		if (strcmp(text_or_empty(c, "type"), "Unschedulable") == 0 &&
		    strcmp(text_or_empty(c, "status"), "True") == 0)
			return mu_xasprintf("%.180s", text_or_empty(c, "message"));
	}
	return NULL;
}

static void fini(struct object *object)
{
	struct owned *o = (struct owned *)object;

	free(o->phase);
	free(o->waiting);
}

struct object *owned_decode(enum object_kind kind, const cJSON *json, const struct object *before)
{
	const cJSON *members = at(at(json, "spec"), "minMember"), *status = at(json, "status");
	struct owned *o = object_new(kind, sizeof(*o), json, fini);

	o->members = cJSON_IsNumber(members) ? members->valueint : -1;
	o->phase = mu_xasprintf("%.31s", text_or_empty(status, "phase"));
	o->waiting = why_waiting(status);
	return &o->meta;
}

bool owned_same(const struct object *x, const struct object *y)
{
	const struct owned *a = (const struct owned *)x, *b = (const struct owned *)y;

	return a->members == b->members && strcmp(a->phase, b->phase) == 0 &&
	       strcmp(a->waiting ? a->waiting : "", b->waiting ? b->waiting : "") == 0;
}
