/* SPDX-License-Identifier: Apache-2.0 */
/* A pod of a job as the API server has it. */
#ifndef MU_OPERATOR_API_POD_H
#define MU_OPERATOR_API_POD_H

#include "operator/api/job_status.h"
#include "operator/api/object.h"

enum pod_phase { POD_PENDING, POD_RUNNING, POD_SUCCEEDED, POD_FAILED, POD_UNKNOWN };

/* One pod (or process) of the job that exists now. */
struct observed_pod {
	const char *task;
	int index;
	const char *uid; /* copied into the actions DELETE_POD and FINISH_POD */
	enum pod_phase phase;
	bool ready;             /* its readiness probe succeeds */
	bool was_ready;         /* … or has succeeded before, as far as is known */
	bool deleting;          /* terminating */
	bool sidecar_runs;      /* its task has ended, and another container still runs */
	int exit_code;          /* of FAILED and SUCCEEDED; -1 unknown */
	bool disrupted;         /* ended by eviction, preemption or a lost node: no failure */
	double deletion_due;    /* the end of its grace period; 0: unknown */
	bool ended_by_deletion; /* then its exit code is not a result of the program */
	bool gpu;               /* it was created for GPU kernels (label) */
	bool is_departure_pod;  /* plan_pod.is_departure_pod */
	const char *reason;  /* why it failed or waits: "OOMKilled", "ImagePullBackOff"; or NULL */
	const char *message; /* the last line of a program that failed, or NULL */
	const char *detail;  /* of `reason`: the missing claim or init container's image; or NULL */
	const char *node;    /* or NULL */
	const char *kernels; /* variant that its task reported, or NULL */
	const char *chosen_kernels; /* variant that it was created for, or NULL */
	int epoch;                  /* the cluster epoch of its task; 0: unknown */
	double finish_requested_at; /* the finish request to its server; 0: none by this operator */
	double created;             /* seconds */
	double finished;            /* seconds; 0 when it has not */
};

/* Reasons that the operator derives from a message; a kubelet does not report them. */
#define POD_CLAIM_MISSING "VolumeClaimMissing"
#define POD_NO_EXECUTABLE "ExecutableNotFound"
#define POD_INIT_FAILED   "InitContainerFailed"

struct pod {
	struct object meta;
	struct observed_pod observed;  /* its strings belong to the pod */
	char *ip;                      /* or NULL */
	double deletion_requested_at;  /* the first time; 0: never, or not known */
	struct progress_report *final; /* final report of its program, or NULL */
};

/* For the table of kinds.  Keeps facts that only an earlier version of the pod has. */
struct object *pod_decode(enum object_kind kind, const cJSON *json, const struct object *before);

#endif
