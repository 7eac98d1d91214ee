/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/api/kinds.h"

#include "operator/api/job.h"
#include "operator/api/node.h"
#include "operator/api/object_json.h"
#include "operator/api/pod.h"

/* The message of Volcano's condition Unschedulable; NULL: it is not True.  The scheduler plug-ins
 * have a phase only. */
static char *unschedulable_message(const cJSON *conditions)
{
	const cJSON *c = item_with(conditions, "type", "Unschedulable");

	return condition_is(conditions, "Unschedulable", "True")
		   ? mu_xasprintf("%.180s", text_or_empty(c, "message"))
		   : NULL;
}

static void fini(struct object *object)
{
	struct owned *o = (struct owned *)object;

	free(o->phase);
	free(o->waiting);
}

static struct object *owned_decode(enum object_kind kind, const cJSON *json,
				   const struct object *before)
{
	const cJSON *members = at(at(json, "spec"), "minMember"), *status = at(json, "status");
	struct owned *o = object_new(kind, sizeof(*o), json, fini);

	o->members = cJSON_IsNumber(members) ? members->valueint : -1;
	o->phase = mu_xasprintf("%.31s", text_or_empty(status, "phase"));
	o->waiting = unschedulable_message(at(status, "conditions"));
	return &o->meta;
}

const struct kind_info kinds[KINDS] = {
    [KIND_JOB] = {"jobs", "/apis/" JOB_API_VERSION, "distributedtrainingjobs", NULL, job_decode},
    [KIND_POD] = {"pods", "/api/v1", "pods", LABEL_JOB, pod_decode},
    [KIND_SERVICE] = {"services", "/api/v1", "services", LABEL_JOB, owned_decode},
    [KIND_NODE] = {"nodes", "/api/v1", "nodes", NULL, node_decode, node_same, .of_cluster = true},
    [KIND_POLICY] = {"networkpolicies", "/apis/networking.k8s.io/v1", "networkpolicies", LABEL_JOB,
		     owned_decode},
    [KIND_VOLCANO] = {"volcano's podgroups", "/apis/scheduling.volcano.sh/v1beta1", "podgroups",
		      LABEL_JOB, owned_decode, .on_demand = true},
    [KIND_PLUGINS] = {"the scheduler plug-ins' podgroups", "/apis/scheduling.x-k8s.io/v1alpha1",
		      "podgroups", LABEL_JOB, owned_decode, .on_demand = true},
};

const struct gang_info gangs[] = {
    [GANG_NONE] = {"default-scheduler", KINDS},
    [GANG_VOLCANO] = {"volcano", KIND_VOLCANO},
    [GANG_SCHEDULER_PLUGINS] = {"scheduler-plugins-scheduler", KIND_PLUGINS},
    [GANG_KUEUE] = {"default-scheduler", KINDS},
};
