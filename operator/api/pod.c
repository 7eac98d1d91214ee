/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/api/pod.h"

#include <stdio.h>

#include "lib/base/log.h"
#include "lib/base/rfc3339.h"
#include "operator/api/object_json.h"

enum { MESSAGE_MAX = 200 }; /* bytes; records of pods are small */

/* Reasons for which the platform, not the program, ended a pod. */
static const char *const platform_reasons[] = {"Evicted",
					       "Preempting",
					       "Preempted",
					       "NodeLost",
					       "NodeShutdown",
					       "Terminated",
					       "NodeAffinity",
					       "TopologyAffinityError",
					       "UnexpectedAdmissionError",
					       NULL};

static double time_at(const cJSON *object, const char *key)
{
	return mu_rfc3339_read(cJSON_GetStringValue(at(object, key)));
}

static enum pod_phase phase_of(const char *phase)
{
	static const char *const names[] = {"Pending", "Running", "Succeeded", "Failed", NULL};
	int i = mu_word_index(phase, names);

	return i < 0 ? POD_UNKNOWN : (enum pod_phase)i;
}

/* The trainer's final report, JSON in the termination message; NULL if there is none. */
static struct progress_report *final_report(const char *message)
{
	struct progress_report *r = MU_NEW(struct progress_report);

	progress_report_parse(r, message && *message == '{' ? message : NULL);
	if (r->set)
		return r;
	free(r);
	return NULL;
}

/* The last line above INFO in the termination message, which holds the end of the log; or NULL. */
static char *last_error_line(const char *message)
{
	size_t end, start = message ? strlen(message) : 0;

	do {
		for (end = start; end && strchr("\r\n", message[end - 1]); end--)
			;
		for (start = end; start && message[start - 1] != '\n'; start--)
			;
	} while (start && mu_log_line_is_info(message + start, end - start));
	bool found = end > start && !mu_log_line_is_info(message + start, end - start);
	if (end - start > MESSAGE_MAX)
		end = start + MESSAGE_MAX;
	return found ? mu_xasprintf("%.*s", (int)(end - start), message + start) : NULL;
}

/* Runtimes report a missing executable as a failed start. */
static const char *ended_reason(const char *reason, const char *message)
{
	bool is_start_failure = reason && (strcmp(reason, "StartError") == 0 ||
					   strcmp(reason, "ContainerCannotRun") == 0);
	bool is_missing = is_start_failure && message &&
			  (strstr(message, "executable file not found") ||
			   strstr(message, "no such file or directory"));

	return is_missing ? POD_NO_EXECUTABLE : reason;
}

/* A kubelet sorts the statuses by the containers' names.  name NULL: the first one. */
static const cJSON *container_status(const cJSON *statuses, const char *name)
{
	return name ? item_with(statuses, "name", name) : cJSON_GetArrayItem(statuses, 0);
}

/* Stores the first reason that is more specific than a start or an end of a container. */
static bool take_reason(struct observed_pod *o, const char *reason)
{
	static const char *const uninformative[] = {"ContainerCreating", "PodInitializing",
						    "Completed", NULL};

	if (o->reason || !reason || mu_word_index(reason, uninformative) >= 0)
		return false;
	o->reason = mu_xstrdup(reason);
	return true;
}

/* Before the task starts: stores why an init container waits, or that it failed. */
static void read_init_containers(struct observed_pod *o, const cJSON *status)
{
	const cJSON *init;

	cJSON_ArrayForEach(init, at(status, "initContainerStatuses"))
	{
		const cJSON *state = at(init, "state");
		const cJSON *code = at(at(state, "terminated"), "exitCode");
		bool failed = cJSON_IsNumber(code) && code->valueint != 0;

		if (take_reason(o,
				failed ? POD_INIT_FAILED : text_at(at(state, "waiting"), "reason")))
			o->detail = mu_xstrdup_or_null(text_at(init, "image"));
	}
}

/* The first container of the spec runs the task; other containers do not count.  Its end is the end
 * of the task, although the phase of the pod is Running while a sidecar runs. */
static void read_containers(struct pod *pod, const cJSON *json)
{
	const cJSON *containers = at(at(json, "spec"), "containers"), *status = at(json, "status");
	const cJSON *state =
	    at(container_status(at(status, "containerStatuses"),
				text_at(cJSON_GetArrayItem(containers, 0), "name")),
	       "state");
	const cJSON *ended = at(state, "terminated");
	struct observed_pod *o = &pod->observed;

	if (ended) {
		const cJSON *code = at(ended, "exitCode");
		o->exit_code = cJSON_IsNumber(code) ? code->valueint : -1;
		o->finished = time_at(ended, "finishedAt");
		pod->final = final_report(text_at(ended, "message"));
		if (o->exit_code != 0 && !pod->final)
			o->message = last_error_line(text_at(ended, "message"));
		take_reason(o, ended_reason(text_at(ended, "reason"), text_at(ended, "message")));
		o->sidecar_runs = o->phase == POD_RUNNING;
		if (o->sidecar_runs)
			o->phase = o->exit_code == 0 && !o->disrupted ? POD_SUCCEEDED : POD_FAILED;
		o->ready = false;
	} else if (!take_reason(o, text_at(at(state, "waiting"), "reason")) &&
		   !at(state, "running")) {
		read_init_containers(o, status);
	}
}

/* The name in `persistentvolumeclaim "NAME" not found`; NULL: it is a different message. */
static char *missing_claim(const char *message)
{
	static const char prefix[] = "persistentvolumeclaim \"", suffix[] = "\" not found";
	const char *name = message ? strstr(message, prefix) : NULL;
	size_t n;

	if (!name)
		return NULL;
	name += sizeof(prefix) - 1;
	n = strcspn(name, "\"");
	return strncmp(name + n, suffix, sizeof(suffix) - 1) == 0 ? mu_xstrndup(name, n) : NULL;
}

/* The user must create a missing claim; a node may become free by itself. */
static void set_wait_reason(struct observed_pod *o, const char *reason, const char *message)
{
	o->detail = missing_claim(message);
	o->reason = mu_xstrdup_or_null(o->detail ? POD_CLAIM_MISSING : reason);
}

static void read_conditions(struct observed_pod *o, const cJSON *status)
{
	const cJSON *list = at(status, "conditions"), *scheduled;

	o->ready = o->was_ready = o->phase == POD_RUNNING && condition_is(list, "Ready", "True");
	/* a drain, a preemption or an autoscaler ends the pod, not its program */
	o->disrupted = o->disrupted || condition_is(list, "DisruptionTarget", "True");
	if (!o->reason && condition_is(list, "PodScheduled", "False")) {
		scheduled = item_with(list, "type", "PodScheduled");
		set_wait_reason(o, text_at(scheduled, "reason"), text_at(scheduled, "message"));
	}
}

/* The deletion ended the pod if its container ended after the delete request.  This is also assumed
 * if the order is unknown: both in the same second, a time is missing, or the container never
 * started.  The program then gets another attempt. */
static void set_ended_by_deletion(struct pod *pod)
{
	struct observed_pod *o = &pod->observed;

	o->ended_by_deletion = o->deleting &&
			       (o->phase == POD_SUCCEEDED || o->phase == POD_FAILED) &&
			       (o->finished <= 0 || o->finished >= pod->deletion_requested_at);
}

/* deletionTimestamp is the end of the grace period.  A kubelet that has ended a pod deletes it
 * again without a grace period, which hides the time of the first request. */
static void read_deletion(struct pod *pod, const cJSON *metadata)
{
	struct observed_pod *o = &pod->observed;
	double deletion_due = time_at(metadata, "deletionTimestamp");
	double grace_s = cJSON_GetNumberValue(at(metadata, "deletionGracePeriodSeconds"));

	o->deleting = at(metadata, "deletionTimestamp") != NULL;
	o->deletion_due = deletion_due;
	pod->deletion_requested_at = o->deleting && grace_s > 0 ? deletion_due - grace_s : 0;
	set_ended_by_deletion(pod);
}

/* Keeps facts of an earlier version of the pod that this version lacks. */
static void keep_earlier_facts(struct pod *pod, const struct pod *before)
{
	struct observed_pod *o = &pod->observed;

	o->was_ready = o->was_ready || before->observed.was_ready;
	if (pod->deletion_requested_at > 0 || before->deletion_requested_at <= 0)
		return;
	pod->deletion_requested_at = before->deletion_requested_at;
	set_ended_by_deletion(pod);
}

static void pod_fini(struct object *object)
{
	struct pod *pod = (struct pod *)object;
	struct observed_pod *o = &pod->observed;
	const char *const strings[] = {o->task, o->reason,         o->message, o->detail,
				       o->node, o->chosen_kernels, pod->ip};

	for (unsigned i = 0; i < MU_COUNT(strings); i++)
		free((char *)strings[i]);
	free(pod->final);
}

struct object *pod_decode(enum object_kind kind, const cJSON *json, const struct object *before)
{
	const cJSON *metadata = at(json, "metadata"), *status = at(json, "status");
	const cJSON *labels = at(metadata, "labels");
	const char *task = text_at(labels, LABEL_TASK), *index = text_at(labels, LABEL_INDEX);
	long epoch = strtol(text_or_empty(labels, LABEL_EPOCH), NULL, 10);
	struct observed_pod *o;
	struct pod *pod;

	if (!task || !index || !*object_name(json) || !*object_uid(json))
		return NULL;
	pod = object_new(kind, sizeof(*pod), json, pod_fini);
	pod->ip = mu_xstrdup_or_null(text_at(status, "podIP"));
	o = &pod->observed;
	o->uid = pod->meta.uid;
	o->task = mu_xstrdup(task);
	o->index = (int)strtol(index, NULL, 10);
	o->exit_code = -1;
	o->gpu = at(labels, LABEL_GPU) != NULL;
	o->is_departure_pod = at(labels, LABEL_DEPARTURE) != NULL;
	o->chosen_kernels = mu_xstrdup_or_null(text_at(labels, LABEL_KERNELS));
	o->epoch = epoch > 0 && epoch <= INT32_MAX ? (int)epoch : 0;
	/* without a status it has just been created */
	o->phase = cJSON_IsObject(status) ? phase_of(text_at(status, "phase")) : POD_PENDING;
	o->created = time_at(metadata, "creationTimestamp");
	o->node = mu_xstrdup_or_null(text_at(at(json, "spec"), "nodeName"));
	o->reason = mu_xstrdup_or_null(text_at(status, "reason"));
	/* OutOfcpu, OutOfmemory, …: the node had no room after all */
	o->disrupted = mu_word_index(o->reason, platform_reasons) >= 0 ||
		       (o->reason && strncmp(o->reason, "OutOf", strlen("OutOf")) == 0);
	read_conditions(o, status);
	read_containers(pod, json);
	read_deletion(pod, metadata);
	if (before)
		keep_earlier_facts(pod, (const struct pod *)before);
	return &pod->meta;
}
