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

/* Narrows a peer to the pods with this label, or to one namespace. */
static void select_pods(cJSON *peer, const char *label, const char *value)
{
	set_text(object_in(object_in(peer, "podSelector"), "matchLabels"), label, value);
}

static void select_namespace(cJSON *peer, const char *ns)
{
	set_text(object_in(object_in(peer, "namespaceSelector"), "matchLabels"),
		 "kubernetes.io/metadata.name", ns);
}

/* Adds a rule that allows traffic to a port (0: all ports).  Returns its list of peers. */
static cJSON *allow(cJSON *rules, int port)
{
	cJSON *rule = append_object(rules), *p;
	cJSON *from = cJSON_AddArrayToObject(rule, "from");

	if (port) {
		p = append_object(cJSON_AddArrayToObject(rule, "ports"));
		cJSON_AddStringToObject(p, "protocol", "TCP");
		cJSON_AddNumberToObject(p, "port", port);
	}
	return from;
}

cJSON *render_policy(const struct job_spec *spec, int port, int http_port, const char *operator_ns,
		     const char *status_from)
{
	cJSON *object = render_object("networking.k8s.io/v1", "NetworkPolicy", spec), *rules;
	cJSON *s = cJSON_AddObjectToObject(object, "spec"), *peers, *peer;

	set_text(object_in(object_in(s, "podSelector"), "matchLabels"), LABEL_JOB, spec->name);
	cJSON_AddItemToArray(cJSON_AddArrayToObject(s, "policyTypes"),
			     cJSON_CreateString("Ingress"));
	rules = cJSON_AddArrayToObject(s, "ingress");
	select_pods(append_object(allow(rules, 0)), LABEL_JOB, spec->name);
	select_pods(append_object(allow(rules, port)), "muster.dev/client", spec->name);
	peers = allow(rules, http_port);
	peer = append_object(peers);
	select_pods(peer, "muster.dev/role", "operator");
	select_namespace(peer, operator_ns);
	while (status_from && *status_from) {
		size_t n = strcspn(status_from, ",");
		MU_AUTO_FREE char *ns = mu_xasprintf("%.*s", (int)n, status_from);

		if (n)
			select_namespace(append_object(peers), ns);
		status_from += n + (status_from[n] == ',');
	}
	return object;
}

cJSON *render_group(const struct job_spec *spec, int members)
{
	cJSON *object = render_object(gangs[spec->gang].version, "PodGroup", spec);
	cJSON *s = cJSON_AddObjectToObject(object, "spec");

	cJSON_AddNumberToObject(s, "minMember", members);
	if (spec->gang == GANG_VOLCANO && spec->queue)
		set_text(s, "queue", spec->queue);
	if (spec->gang == GANG_VOLCANO && spec->priority_class)
		set_text(s, "priorityClassName", spec->priority_class);
	return object;
}

void render_member(cJSON *pod, const struct job_spec *spec, int members)
{
	cJSON *metadata = object_in(pod, "metadata"), *labels = object_in(metadata, "labels");
	cJSON *s = object_in(pod, "spec");
	const char *scheduler = gangs[spec->gang].scheduler;
	char count[16];

	snprintf(count, sizeof(count), "%d", members);
	switch (spec->gang) {
	case GANG_NONE:
		return;
	case GANG_VOLCANO:
		set_text(object_in(metadata, "annotations"), "scheduling.k8s.io/group-name",
			 spec->name);
		break;
	case GANG_SCHEDULER_PLUGINS:
		set_text(labels, "scheduling.x-k8s.io/pod-group", spec->name);
		break;
	case GANG_KUEUE:
		set_text(labels, "kueue.x-k8s.io/queue-name", spec->queue);
		set_text(labels, "kueue.x-k8s.io/pod-group-name", spec->name);
		set_text(object_in(metadata, "annotations"), "kueue.x-k8s.io/pod-group-total-count",
			 count);
		if (spec->priority_class)
			set_text(labels, "kueue.x-k8s.io/priority-class", spec->priority_class);
		return;
	}
	if (!cJSON_GetObjectItemCaseSensitive(s, "schedulerName"))
		set_text(s, "schedulerName", scheduler);
	if (spec->priority_class && !cJSON_GetObjectItemCaseSensitive(s, "priorityClassName"))
		set_text(s, "priorityClassName", spec->priority_class);
}

cJSON *render_action(const struct job_spec *spec, const struct plan_action *a,
		     const char *operator_ns, const char *status_from)
{
	switch (a->kind) {
	case ACTION_CREATE_SERVICE:
		return render_service(spec, JOB_DEFAULT_PORT, JOB_DEFAULT_HTTP_PORT);
	case ACTION_MAKE_SECRET:
		return render_secret(spec, NULL);
	case ACTION_CREATE_POLICY:
		return render_policy(spec, JOB_DEFAULT_PORT, JOB_DEFAULT_HTTP_PORT, operator_ns,
				     status_from);
	case ACTION_PUT_GROUP:
		return render_group(spec, a->index);
	case ACTION_CREATE_POD:
		return render_pod(spec, a->pod);
	default:
		return NULL;
	}
}
