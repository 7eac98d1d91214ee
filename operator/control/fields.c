/* SPDX-License-Identifier: Apache-2.0 */
/* What the cache and the plan look at in each kind of object; all else is never read. */
#include "operator/control/cache.h"

static const struct kube_fields owner[] = {{"uid", NULL}, {"controller", NULL}, {NULL, NULL}};
static const struct kube_fields metadata[] = {{"name", NULL},
					      {"namespace", NULL},
					      {"uid", NULL},
					      {"resourceVersion", NULL},
					      {"labels", NULL},
					      {"creationTimestamp", NULL},
					      {"deletionTimestamp", NULL},
					      {"deletionGracePeriodSeconds", NULL},
					      {"ownerReferences", owner},
					      {NULL, NULL}};

/* all but managedFields */
static const struct kube_fields job_metadata[] = {{"name", NULL},
						  {"namespace", NULL},
						  {"uid", NULL},
						  {"resourceVersion", NULL},
						  {"generation", NULL},
						  {"labels", NULL},
						  {"annotations", NULL},
						  {"creationTimestamp", NULL},
						  {"deletionTimestamp", NULL},
						  {"deletionGracePeriodSeconds", NULL},
						  {"ownerReferences", NULL},
						  {"finalizers", NULL},
						  {NULL, NULL}};

static const struct kube_fields reason[] = {{"reason", NULL}, {NULL, NULL}};
static const struct kube_fields ended[] = {
    {"exitCode", NULL}, {"finishedAt", NULL}, {"reason", NULL}, {"message", NULL}, {NULL, NULL}};
static const struct kube_fields state[] = {
    {"waiting", reason}, {"terminated", ended}, {NULL, NULL}};
static const struct kube_fields container[] = {{"state", state}, {NULL, NULL}};
static const struct kube_fields condition[] = {
    {"type", NULL}, {"status", NULL}, {"reason", NULL}, {"message", NULL}, {NULL, NULL}};
static const struct kube_fields pod_spec[] = {{"nodeName", NULL}, {NULL, NULL}};
static const struct kube_fields pod_status[] = {{"phase", NULL},
						{"podIP", NULL},
						{"reason", NULL},
						{"conditions", condition},
						{"containerStatuses", container},
						{NULL, NULL}};
static const struct kube_fields node_spec[] = {{"unschedulable", NULL}, {NULL, NULL}};
static const struct kube_fields allocatable[] = {{"nvidia.com/gpu", NULL}, {NULL, NULL}};
static const struct kube_fields node_status[] = {
    {"conditions", condition}, {"allocatable", allocatable}, {NULL, NULL}};

const struct kube_fields cache_job_fields[] = {{"apiVersion", NULL},       {"kind", NULL},
					       {"metadata", job_metadata}, {"spec", kube_as_text},
					       {"status", kube_as_text},   {NULL, NULL}};
const struct kube_fields cache_pod_fields[] = {
    {"metadata", metadata}, {"spec", pod_spec}, {"status", pod_status}, {NULL, NULL}};
static const struct kube_fields said[] = {
    {"type", NULL}, {"status", NULL}, {"message", NULL}, {NULL, NULL}};
static const struct kube_fields group_spec[] = {{"minMember", NULL}, {NULL, NULL}};
static const struct kube_fields group_status[] = {
    {"phase", NULL}, {"conditions", said}, {NULL, NULL}};
/* services and policies have no more of these than pod groups need */
const struct kube_fields cache_owned_fields[] = {
    {"metadata", metadata}, {"spec", group_spec}, {"status", group_status}, {NULL, NULL}};
const struct kube_fields cache_node_fields[] = {
    {"metadata", metadata}, {"spec", node_spec}, {"status", node_status}, {NULL, NULL}};
