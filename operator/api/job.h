/* SPDX-License-Identifier: Apache-2.0 */
/* A DistributedTrainingJob as the API server has it, decoded once per version.  Immutable and
 * reference-counted: the store and every reconcile share it. */
#ifndef API_JOB_H
#define API_JOB_H

#include <cjson/cJSON.h>

#include "operator/api/job_status.h"

struct job {
	_Atomic int refs;
	char *namespace, *name, *uid, *resource_version;
	uint64_t version; /* resource_version as a number */
	int64_t generation;
	bool deleting;
	struct job_spec *spec; /* NULL: it cannot be used */
	char *spec_error;      /* why not */
	struct job_status status;
};

/* Returns new.  Never fails: see spec_error. */
struct job *job_decode(const cJSON *object);
struct job *job_ref(struct job *j);
void job_unref(struct job *j); /* NULL: nothing */
MU_AUTO_DEFINE(job_unref, struct job)

#endif
