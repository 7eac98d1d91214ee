/* SPDX-License-Identifier: Apache-2.0 */
/* What is made beside pods and service when a job asks for it: a NetworkPolicy, and membership in a
 * gang scheduler's group.
 *
 *	volcano             PodGroup + annotation scheduling.k8s.io/group-name
 *	scheduler-plugins   PodGroup + label scheduling.x-k8s.io/pod-group
 *	kueue               no object: labels and a count on the pods
 */
#include <stdio.h>

#include "operator/control/labels.h"
#include "operator/control/render.h"

static const struct {
	const char *version, *scheduler;
} gangs[] = {
    [GANG_NONE] = {NULL, NULL},
    [GANG_VOLCANO] = {"scheduling.volcano.sh/v1beta1", "volcano"},
    [GANG_SCHEDULER_PLUGINS] = {"scheduling.x-k8s.io/v1alpha1", "scheduler-plugins-scheduler"},
    [GANG_KUEUE] = {NULL, NULL},
};

static cJSON *sub(cJSON *object, const char *key)
{
	cJSON *c = cJSON_GetObjectItemCaseSensitive(object, key);
	return c ? c : cJSON_AddObjectToObject(object, key);
}

static void set(cJSON *object, const char *key, const char *value)
{
	cJSON_DeleteItemFromObjectCaseSensitive(object, key);
	cJSON_AddStringToObject(object, key, value);
}

/* One rule: pods with this label, on these ports (0: all); `anywhere`: in every namespace. */
static void allow(cJSON *rules, const char *label, const char *value, bool anywhere, int port,
		  int port2)
{
	cJSON *rule = cJSON_CreateObject(), *from = cJSON_CreateObject(), *ports, *p;
	int numbers[] = {port, port2};

	set(sub(sub(from, "podSelector"), "matchLabels"), label, value);
	if (anywhere)
		sub(from, "namespaceSelector");
	cJSON_AddItemToArray(cJSON_AddArrayToObject(rule, "from"), from);
	ports = port ? cJSON_AddArrayToObject(rule, "ports") : NULL;
	for (unsigned i = 0; ports && i < MU_COUNT(numbers) && numbers[i]; i++) {
		p = cJSON_CreateObject();
		cJSON_AddStringToObject(p, "protocol", "TCP");
		cJSON_AddNumberToObject(p, "port", numbers[i]);
		cJSON_AddItemToArray(ports, p);
	}
	cJSON_AddItemToArray(rules, rule);
}

cJSON *render_policy(const struct job_spec *spec, int port, int http_port)
{
	cJSON *object = render_object("networking.k8s.io/v1", "NetworkPolicy", spec), *rules;
	cJSON *s = cJSON_AddObjectToObject(object, "spec");

	set(sub(sub(s, "podSelector"), "matchLabels"), LABEL_JOB, spec->name);
	cJSON_AddItemToArray(cJSON_AddArrayToObject(s, "policyTypes"),
			     cJSON_CreateString("Ingress"));
	rules = cJSON_AddArrayToObject(s, "ingress");
	allow(rules, LABEL_JOB, spec->name, false, 0, 0);
	allow(rules, "muster.dev/client", spec->name, false, port, http_port);
	allow(rules, "muster.dev/role", "operator", true, http_port, 0);
	allow(rules, "muster.dev/role", "metrics", true, http_port, 0);
	return object;
}

const char *group_api(const struct job_spec *spec)
{
	return gangs[spec->gang].version;
}

cJSON *render_group(const struct job_spec *spec, int members)
{
	cJSON *object = render_object(gangs[spec->gang].version, "PodGroup", spec);
	cJSON *s = cJSON_AddObjectToObject(object, "spec");

	cJSON_AddNumberToObject(s, "minMember", members);
	if (spec->gang == GANG_VOLCANO && spec->queue)
		set(s, "queue", spec->queue);
	if (spec->gang == GANG_VOLCANO && spec->priority_class)
		set(s, "priorityClassName", spec->priority_class);
	return object;
}

void render_member(cJSON *pod, const struct job_spec *spec, int members)
{
	cJSON *metadata = sub(pod, "metadata"), *labels = sub(metadata, "labels");
	cJSON *s = sub(pod, "spec");
	const char *scheduler = gangs[spec->gang].scheduler;
	char count[16];

	snprintf(count, sizeof(count), "%d", members);
	switch (spec->gang) {
	case GANG_NONE:
		return;
	case GANG_VOLCANO:
		set(sub(metadata, "annotations"), "scheduling.k8s.io/group-name", spec->name);
		break;
	case GANG_SCHEDULER_PLUGINS:
		set(labels, "scheduling.x-k8s.io/pod-group", spec->name);
		break;
	case GANG_KUEUE:
		set(labels, "kueue.x-k8s.io/queue-name", spec->queue);
		set(labels, "kueue.x-k8s.io/pod-group-name", spec->name);
		set(sub(metadata, "annotations"), "kueue.x-k8s.io/pod-group-total-count", count);
		if (spec->priority_class)
			set(labels, "kueue.x-k8s.io/priority-class", spec->priority_class);
		return;
	}
	if (!cJSON_GetObjectItemCaseSensitive(s, "schedulerName"))
		set(s, "schedulerName", scheduler);
	if (spec->priority_class && !cJSON_GetObjectItemCaseSensitive(s, "priorityClassName"))
		set(s, "priorityClassName", spec->priority_class);
}
