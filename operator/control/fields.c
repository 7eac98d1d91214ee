/* SPDX-License-Identifier: Apache-2.0 */
/* The members of each kind of object that the cache and the plan read; all others are skipped. */
#include "operator/control/cache.h"

static const struct kube_fields owner[] = {{.name = "uid"}, {.name = "controller"}, {0}};
static const struct kube_fields metadata[] = {{.name = "name"},
					      {.name = "namespace"},
					      {.name = "uid"},
					      {.name = "resourceVersion"},
					      {.name = "creationTimestamp"},
					      {.name = "deletionTimestamp"},
					      {.name = "deletionGracePeriodSeconds"},
					      {.name = "labels"},
					      {.name = "ownerReferences", .below = owner},
					      {0}};

/* ---- pods ---- */
static const struct kube_fields waiting[] = {{.name = "reason"}, {0}};
static const struct kube_fields ended[] = {
    {.name = "exitCode"}, {.name = "reason"}, {.name = "message"}, {.name = "finishedAt"}, {0}};
static const struct kube_fields state[] = {
    {.name = "waiting", .below = waiting}, {.name = "terminated", .below = ended}, {0}};
static const struct kube_fields container[] = {{.name = "state", .below = state}, {0}};
static const struct kube_fields condition[] = {
    {.name = "type"}, {.name = "status"}, {.name = "reason"}, {.name = "message"}, {0}};
static const struct kube_fields pod_spec[] = {{.name = "nodeName"}, {0}};
static const struct kube_fields pod_status[] = {
    {.name = "phase"}, {.name = "conditions", .below = condition},        {.name = "reason"},
    {.name = "podIP"}, {.name = "containerStatuses", .below = container}, {0}};
const struct kube_fields cache_pod_fields[] = {{.name = "metadata", .below = metadata},
					       {.name = "spec", .below = pod_spec},
					       {.name = "status", .below = pod_status},
					       {0}};

/* ---- nodes ---- */
static const struct kube_fields node_condition[] = {{.name = "type"}, {.name = "status"}, {0}};
static const struct kube_fields node_spec[] = {{.name = "unschedulable"}, {0}};
static const struct kube_fields allocatable[] = {{.name = "nvidia.com/gpu"}, {0}};
static const struct kube_fields node_status[] = {{.name = "allocatable", .below = allocatable},
						 {.name = "conditions", .below = node_condition},
						 {0}};
const struct kube_fields cache_node_fields[] = {{.name = "metadata", .below = metadata},
						{.name = "spec", .below = node_spec},
						{.name = "status", .below = node_status},
						{0}};

/* ---- services and policies ---- */
const struct kube_fields cache_owned_fields[] = {{.name = "metadata", .below = metadata}, {0}};

/* ---- pod groups ---- */
static const struct kube_fields said[] = {
    {.name = "type"}, {.name = "status"}, {.name = "message"}, {0}};
static const struct kube_fields group_spec[] = {{.name = "minMember"}, {0}};
static const struct kube_fields group_status[] = {
    {.name = "phase"}, {.name = "conditions", .below = said}, {0}};
const struct kube_fields cache_group_fields[] = {{.name = "metadata", .below = metadata},
						 {.name = "spec", .below = group_spec},
						 {.name = "status", .below = group_status},
						 {0}};
