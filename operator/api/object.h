/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of the API: their kinds, and the head of their typed forms. */
#ifndef MU_OPERATOR_API_OBJECT_H
#define MU_OPERATOR_API_OBJECT_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buf.h"

/* Labels of the objects that the operator creates: written by render, read by pod_decode. */
#define LABEL_JOB       "muster.dev/job"
#define LABEL_TASK      "muster.dev/task"
#define LABEL_INDEX     "muster.dev/index"
#define LABEL_GPU       "muster.dev/gpu"       /* "true": observed_pod.gpu */
#define LABEL_DEPARTURE "muster.dev/departure" /* "true": plan_pod.is_departure_pod */
#define LABEL_KERNELS   "muster.dev/kernels"   /* observed_pod.chosen_kernels */
#define LABEL_EPOCH     "muster.dev/epoch"     /* plan_pod.epoch */

enum object_kind {
	KIND_JOB,
	KIND_POD,
	KIND_SERVICE,
	KIND_NODE,
	KIND_POLICY,
	KIND_VOLCANO, /* PodGroups: each scheduler has its own */
	KIND_PLUGINS,
	KINDS
};

/* The first member of each typed object.  An object is decoded once per version, immutable and
 * reference-counted. */
struct object {
	_Atomic int refs;
	enum object_kind kind;
	char *namespace, *name, *uid;
	char *owner;      /* UID of its controller, of a job its own; "" when there is none */
	uint64_t version; /* metadata.resourceVersion as a number; 0: there is none */
	void (*fini)(struct object *o); /* frees the fields after the head */
};

/* Returns new: `size` bytes, the head filled in from the metadata. */
void *object_new(enum object_kind kind, size_t size, const cJSON *json,
		 void (*fini)(struct object *o));
void *object_ref(void *object);
void object_unref(void *object); /* NULL: nothing */

#endif
