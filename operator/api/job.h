/* SPDX-License-Identifier: Apache-2.0 */
/* A DistributedTrainingJob as the API server has it; the store and every reconcile share it. */
#ifndef MU_OPERATOR_API_JOB_H
#define MU_OPERATOR_API_JOB_H

#include "operator/api/job_status.h"
#include "operator/api/object.h"

struct job {
	struct object meta;
	char *resource_version;
	int64_t generation;
	bool deleting;
	bool is_foreign;       /* another controller runs it (spec.managedBy) */
	struct job_spec *spec; /* NULL: it is invalid */
	char *spec_error;      /* the reason */
	struct job_status status;
};

/* For the table of kinds.  job_decode never fails: see spec_error. */
struct object *job_decode(enum object_kind kind, const cJSON *json, const struct object *before);

#endif
