/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/api/kinds.h"

#include "operator/api/job.h"
#include "operator/api/labels.h"
#include "operator/api/node.h"
#include "operator/api/owned.h"
#include "operator/api/pod.h"

const struct kind_info kinds[KINDS] = {
    [KIND_JOB] = {"jobs", "/apis/" JOB_API_VERSION, "distributedtrainingjobs", NULL, job_decode,
		  NULL, 0.03, false, false},
    [KIND_POD] = {"pods", "/api/v1", "pods", LABEL_JOB, pod_decode, pod_same, 0.1, false, false},
    [KIND_SERVICE] = {"services", "/api/v1", "services", LABEL_JOB, owned_decode, owned_same, 0.5,
		      false, false},
    [KIND_NODE] = {"nodes", "/api/v1", "nodes", NULL, node_decode, node_same, 0.5, false, true},
    [KIND_POLICY] = {"networkpolicies", "/apis/networking.k8s.io/v1", "networkpolicies", LABEL_JOB,
		     owned_decode, owned_same, 0.5, true, false},
    [KIND_VOLCANO] = {"volcano's podgroups", "/apis/scheduling.volcano.sh/v1beta1", "podgroups",
		      LABEL_JOB, owned_decode, owned_same, 0.1, true, false},
    [KIND_PLUGINS] = {"the scheduler plug-ins' podgroups", "/apis/scheduling.x-k8s.io/v1alpha1",
		      "podgroups", LABEL_JOB, owned_decode, owned_same, 0.1, true, false},
};
