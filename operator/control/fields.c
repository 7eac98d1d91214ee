/* SPDX-License-Identifier: Apache-2.0 */
/* What the cache and the plan look at in each kind of object; all else is never read.  The numbers
 * are those of the fields in k8s.io/api's protobuf; kinds that a CRD makes have no such form. */
#include "operator/control/cache.h"

static const struct kube_fields owner[] = {
    {"uid", NULL, 4, KUBE_TEXT}, {"controller", NULL, 6, KUBE_TRUTH}, {0}};
static const struct kube_fields metadata[] = {{"name", NULL, 1, KUBE_TEXT},
					      {"namespace", NULL, 3, KUBE_TEXT},
					      {"uid", NULL, 5, KUBE_TEXT},
					      {"resourceVersion", NULL, 6, KUBE_TEXT},
					      {"creationTimestamp", NULL, 8, KUBE_TIME},
					      {"deletionTimestamp", NULL, 9, KUBE_TIME},
					      {"deletionGracePeriodSeconds", NULL, 10, KUBE_NUMBER},
					      {"labels", NULL, 11, KUBE_TEXTS},
					      {"ownerReferences", owner, 13, KUBE_LIST},
					      {0}};

/* ---- pods ---- */
static const struct kube_fields waiting[] = {{"reason", NULL, 1, KUBE_TEXT}, {0}};
static const struct kube_fields ended[] = {{"exitCode", NULL, 1, KUBE_NUMBER},
					   {"reason", NULL, 3, KUBE_TEXT},
					   {"message", NULL, 4, KUBE_TEXT},
					   {"finishedAt", NULL, 6, KUBE_TIME},
					   {0}};
static const struct kube_fields state[] = {
    {"waiting", waiting, 1, KUBE_OBJECT}, {"terminated", ended, 3, KUBE_OBJECT}, {0}};
static const struct kube_fields container[] = {{"state", state, 2, KUBE_OBJECT}, {0}};
static const struct kube_fields condition[] = {{"type", NULL, 1, KUBE_TEXT},
					       {"status", NULL, 2, KUBE_TEXT},
					       {"reason", NULL, 5, KUBE_TEXT},
					       {"message", NULL, 6, KUBE_TEXT},
					       {0}};
static const struct kube_fields pod_spec[] = {{"nodeName", NULL, 10, KUBE_TEXT}, {0}};
static const struct kube_fields pod_status[] = {{"phase", NULL, 1, KUBE_TEXT},
						{"conditions", condition, 2, KUBE_LIST},
						{"reason", NULL, 4, KUBE_TEXT},
						{"podIP", NULL, 6, KUBE_TEXT},
						{"containerStatuses", container, 8, KUBE_LIST},
						{0}};
const struct kube_fields cache_pod_fields[] = {{"metadata", metadata, 1, KUBE_OBJECT},
					       {"spec", pod_spec, 2, KUBE_OBJECT},
					       {"status", pod_status, 3, KUBE_OBJECT},
					       {0}};

/* ---- nodes ---- */
static const struct kube_fields node_condition[] = {
    {"type", NULL, 1, KUBE_TEXT}, {"status", NULL, 2, KUBE_TEXT}, {0}};
static const struct kube_fields node_spec[] = {{"unschedulable", NULL, 4, KUBE_TRUTH}, {0}};
static const struct kube_fields allocatable[] = {{.name = "nvidia.com/gpu"}, {0}};
static const struct kube_fields node_status[] = {{"allocatable", allocatable, 2, KUBE_AMOUNTS},
						 {"conditions", node_condition, 4, KUBE_LIST},
						 {0}};
const struct kube_fields cache_node_fields[] = {{"metadata", metadata, 1, KUBE_OBJECT},
						{"spec", node_spec, 2, KUBE_OBJECT},
						{"status", node_status, 3, KUBE_OBJECT},
						{0}};

/* ---- services and policies ---- */
const struct kube_fields cache_owned_fields[] = {{"metadata", metadata, 1, KUBE_OBJECT}, {0}};

/* ---- jobs ---- */
/* all but managedFields */
static const struct kube_fields job_metadata[] = {{.name = "name"},
						  {.name = "namespace"},
						  {.name = "uid"},
						  {.name = "resourceVersion"},
						  {.name = "generation"},
						  {.name = "labels"},
						  {.name = "annotations"},
						  {.name = "creationTimestamp"},
						  {.name = "deletionTimestamp"},
						  {.name = "deletionGracePeriodSeconds"},
						  {.name = "ownerReferences"},
						  {.name = "finalizers"},
						  {0}};
const struct kube_fields cache_job_fields[] = {{.name = "apiVersion"},
					       {.name = "kind"},
					       {.name = "metadata", .below = job_metadata},
					       {.name = "spec", .below = kube_as_text},
					       {.name = "status", .below = kube_as_text},
					       {0}};

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
