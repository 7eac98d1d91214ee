/* SPDX-License-Identifier: Apache-2.0 */
/* What is made beside pods and service when a job asks for it: a NetworkPolicy, and membership in a
 * gang scheduler's group.
 *
 *	volcano             PodGroup + annotation scheduling.k8s.io/group-name
 *	scheduler-plugins   PodGroup + label scheduling.x-k8s.io/pod-group
 *	kueue               no object: labels and a count on the pods
 */
#include <stdio.h>

#include "operator/api/labels.h"
#include "operator/controller/render.h"

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

static cJSON *peer_pods(const char *label, const char *value)
{
	cJSON *peer = cJSON_CreateObject();

	set(sub(sub(peer, "podSelector"), "matchLabels"), label, value);
	return peer;
}

/* Narrows a peer to one namespace. */
static cJSON *in_namespace(cJSON *peer, const char *ns)
{
	set(sub(sub(peer, "namespaceSelector"), "matchLabels"), "kubernetes.io/metadata.name", ns);
	return peer;
}

/* A rule that lets these peers reach a port, 0: all ports.  Takes `from`. */
static void allow(cJSON *rules, cJSON *from, int port)
{
	cJSON *rule = cJSON_CreateObject(), *p;

	cJSON_AddItemToObject(rule, "from", from);
	if (port) {
		p = cJSON_CreateObject();
		cJSON_AddStringToObject(p, "protocol", "TCP");
		cJSON_AddNumberToObject(p, "port", port);
		cJSON_AddItemToArray(cJSON_AddArrayToObject(rule, "ports"), p);
	}
	cJSON_AddItemToArray(rules, rule);
}

static cJSON *peers_of(cJSON *peer)
{
	cJSON *list = cJSON_CreateArray();

	cJSON_AddItemToArray(list, peer);
	return list;
}

cJSON *render_policy(const struct job_spec *spec, int port, int http_port, const char *operator_ns,
		     const char *status_from)
{
	cJSON *object = render_object("networking.k8s.io/v1", "NetworkPolicy", spec), *rules;
	cJSON *s = cJSON_AddObjectToObject(object, "spec"), *status;

	set(sub(sub(s, "podSelector"), "matchLabels"), LABEL_JOB, spec->name);
	cJSON_AddItemToArray(cJSON_AddArrayToObject(s, "policyTypes"),
			     cJSON_CreateString("Ingress"));
	rules = cJSON_AddArrayToObject(s, "ingress");
	allow(rules, peers_of(peer_pods(LABEL_JOB, spec->name)), 0);
	allow(rules, peers_of(peer_pods("muster.dev/client", spec->name)), port);
	status = peers_of(in_namespace(peer_pods("muster.dev/role", "operator"), operator_ns));
	while (status_from && *status_from) {
		size_t n = strcspn(status_from, ",");
		MU_AUTO_FREE char *ns = mu_xasprintf("%.*s", (int)n, status_from);

		if (n)
			cJSON_AddItemToArray(status, in_namespace(cJSON_CreateObject(), ns));
		status_from += n + (status_from[n] == ',');
	}
	allow(rules, status, http_port);
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
