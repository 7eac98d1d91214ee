/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of a Node that the operator reads.  Heartbeats do not change them. */
#ifndef MU_OPERATOR_API_NODE_H
#define MU_OPERATOR_API_NODE_H

#include "operator/api/object.h"

#define GPU_RESOURCE "nvidia.com/gpu" /* the resource, and the key of its nodes' taint */

struct label {
	const char *key, *value;
};
struct node_info {
	const char *name;
	const struct label *labels;
	unsigned n_labels;
	bool schedulable; /* not cordoned, ready */
	int gpus;         /* allocatable nvidia.com/gpu */
	bool lost;        /* Ready is Unknown: its kubelet sends no heartbeats */
};

struct node {
	struct object meta;
	struct node_info info; /* borrows from the node */
	struct mu_arena arena;
};

/* For the table of kinds. */
struct object *node_decode(enum object_kind kind, const cJSON *json, const struct object *before);
bool node_same(const struct object *a, const struct object *b);

#endif
