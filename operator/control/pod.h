/* SPDX-License-Identifier: Apache-2.0 */
/* A pod of a job as the API server has it, decoded once per version.  Immutable and
 * reference-counted, as struct job. */
#ifndef CONTROL_POD_H
#define CONTROL_POD_H

#include <cjson/cJSON.h>

#include "lib/kube/kube_json.h"
#include "operator/plan/job_plan.h"

struct pod {
	_Atomic int refs;
	struct observed_pod observed;  /* its strings belong to the pod */
	char *name, *owner;            /* owner: UID of the controller; "" when there is none */
	char *ip;                      /* or NULL */
	double deletion_asked;         /* the first time; 0: never, or not known */
	struct progress_report *final; /* that its program left as it ended; or NULL */
};

extern const struct kube_fields pod_fields[]; /* the members that pod_decode reads */
/* Returns new, or NULL when the pod is not one of ours.  `before` is the same pod in an earlier
 * version, or NULL: what only that one told stays known. */
struct pod *pod_decode(const cJSON *object, const struct pod *before);
/* True when the API server says the same of both. */
bool pod_same(const struct pod *a, const struct pod *b);
struct pod *pod_ref(struct pod *p);
void pod_unref(struct pod *p); /* NULL: nothing */

double time_from_rfc3339(const char *text); /* seconds; 0 when absent or malformed */

#endif
