/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of objects that the operator watches. */
#ifndef MU_OPERATOR_API_KINDS_H
#define MU_OPERATOR_API_KINDS_H

#include "operator/api/object.h"

/* A Service, NetworkPolicy or PodGroup of a job. */
struct owned {
	struct object meta;
	/* PodGroup only: */
	int members;
	char *phase;   /* set by its scheduler; "" if not set */
	char *waiting; /* the scheduler's message why the group waits, or NULL */
};

/* The watch and the decoder of a kind. */
struct kind_info {
	const char *name; /* for the log */
	const char *group, *resource, *selector;
	/* Returns new, or NULL when the object is not one of ours.  `before` is the object in an
	 * earlier version, or NULL. */
	struct object *(*decode)(enum object_kind kind, const cJSON *json,
				 const struct object *before);
	/* (optional) True when two versions are equal; else each version is a change. */
	bool (*same)(const struct object *a, const struct object *b);
	bool on_demand;  /* watched from the first job on that has one */
	bool of_cluster; /* not in a namespace, and the operator works without it */
};
extern const struct kind_info kinds[KINDS];

/* By the gang_kind of a job: the scheduler of its pods, and the kind of its PodGroup (or KINDS). */
extern const struct gang_info {
	const char *scheduler;
	enum object_kind group;
} gangs[];

#endif
