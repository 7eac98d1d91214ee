/* SPDX-License-Identifier: Apache-2.0 */
/* A Service, NetworkPolicy or PodGroup of a job. */
#ifndef API_OWNED_H
#define API_OWNED_H

#include "operator/api/object.h"

struct owned {
	struct object meta;
	/* PodGroup only: */
	int members;
	char *phase;   /* as its scheduler says; "" when it says nothing */
	char *waiting; /* why the group waits, in its scheduler's words; or NULL */
};

/* For the table of kinds. */
struct object *owned_decode(enum object_kind kind, const cJSON *json, const struct object *before);
bool owned_same(const struct object *a, const struct object *b);

#endif
