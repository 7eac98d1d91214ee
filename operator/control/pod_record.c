/* SPDX-License-Identifier: Apache-2.0 */
/* From a pod of the API to the few fields that decide something. */
#include "operator/control/cache.h"

#include <stdio.h>

#include "lib/base/rfc3339.h"
#include "operator/control/at.h"

enum { MOST_MESSAGE = 200 }; /* bytes; records of pods are small */

/* Reasons for which the platform, not the program, ended a pod. */
static const char *const platform_reasons[] = {
    "Evicted",  "Preempting",   "Preempted",
    "NodeLost", "NodeShutdown", "Terminated",
    "Shutdown", "NodeAffinity", "UnexpectedAdmissionError",
    NULL};
static bool is_one_of(const char *s, const char *const *names)
{
	for (; s && *names; names++)
		if (strcmp(s, *names) == 0)
			return true;
	return false;
}

static const char *text_at(const cJSON *object, const char *key)
{
	return cJSON_GetStringValue(at(object, key));
}

static char *copy_or_null(const char *s)
{
	return s && *s ? mu_xstrdup(s) : NULL;
}

double time_from_rfc3339(const char *text)
{
	double whole = mu_rfc3339_read(text);
	const char *part = whole > 0 ? strchr(text, '.') : NULL;

	return whole + (part ? strtod(part, NULL) : 0);
}

static double time_at(const cJSON *object, const char *key)
{
	return time_from_rfc3339(cJSON_GetStringValue(at(object, key)));
}

static enum pod_phase phase_of(const char *phase)
{
	static const char *const names[] = {"Pending", "Running", "Succeeded", "Failed"};
	for (int i = 0; phase && i < (int)MU_COUNT(names); i++)
		if (strcmp(phase, names[i]) == 0)
			return (enum pod_phase)i;
	return POD_UNKNOWN;
}

/* The program may have left a final report, as JSON, where the kubelet looks. */
static struct progress_report *final_report(const char *message)
{
	struct progress_report *r = MU_NEW(struct progress_report);

	progress_report_parse(r, message && *message == '{' ? message : NULL);
	if (r->set)
		return r;
	free(r);
	return NULL;
}

/* The last line that the program wrote: the kubelet reads it from the log of one that failed. */
static char *last_line(const char *message)
{
	size_t end = message ? strlen(message) : 0, start;

	while (end && (message[end - 1] == '\n' || message[end - 1] == '\r'))
		end--;
	for (start = end; start && message[start - 1] != '\n'; start--)
		;
	if (end - start > MOST_MESSAGE)
		end = start + MOST_MESSAGE;
	return end > start ? mu_xasprintf("%.*s", (int)(end - start), message + start) : NULL;
}

/* Runtimes report a program that the image lacks as a start that failed. */
static const char *ended_reason(const char *reason, const char *message)
{
	bool start = reason && (strcmp(reason, "StartError") == 0 ||
				strcmp(reason, "ContainerCannotRun") == 0);
	bool missing = start && message &&
		       (strstr(message, "executable file not found") ||
			strstr(message, "no such file or directory"));

	return missing ? POD_NO_EXECUTABLE : reason;
}

/* The first container is ours; what else runs in the pod does not count. */
static void read_container(struct cached_pod *p, const cJSON *status)
{
	const cJSON *first = cJSON_GetArrayItem(at(status, "containerStatuses"), 0);
	const cJSON *state = at(first, "state");
	const cJSON *waiting = at(state, "waiting"), *ended = at(state, "terminated");
	const char *reason;

	if (ended) {
		const cJSON *code = at(ended, "exitCode");
		p->exit_code = cJSON_IsNumber(code) ? code->valueint : -1;
		p->finished = time_at(ended, "finishedAt");
		p->final = final_report(text_at(ended, "message"));
		if (p->exit_code != 0 && !p->final)
			p->message = last_line(text_at(ended, "message"));
	}
	reason = ended ? ended_reason(text_at(ended, "reason"), text_at(ended, "message"))
		       : text_at(waiting, "reason");
	if (!p->reason && reason && strcmp(reason, "ContainerCreating") != 0 &&
	    strcmp(reason, "PodInitializing") != 0 && strcmp(reason, "Completed") != 0)
		p->reason = mu_xstrdup(reason);
}

/* The name in `persistentvolumeclaim "NAME" not found`; NULL: the message is another. */
static char *missing_claim(const char *message)
{
	static const char before[] = "persistentvolumeclaim \"", after[] = "\" not found";
	const char *name = message ? strstr(message, before) : NULL;
	size_t n;

	if (!name)
		return NULL;
	name += sizeof(before) - 1;
	n = strcspn(name, "\"");
	return strncmp(name + n, after, sizeof(after) - 1) == 0 ? mu_xstrndup(name, n) : NULL;
}

/* A node may get room by itself, a claim does not appear by itself: it has a reason of its own. */
static void read_unscheduled(struct cached_pod *p, const char *reason, const char *message)
{
	p->detail = missing_claim(message);
	p->reason = copy_or_null(p->detail ? POD_CLAIM_MISSING : reason);
}

static void read_conditions(struct cached_pod *p, const cJSON *status)
{
	const cJSON *condition;

	cJSON_ArrayForEach(condition, at(status, "conditions"))
	{
		const char *type = text_at(condition, "type");
		const char *value = text_at(condition, "status");
		const char *reason = text_at(condition, "reason");
		if (!type || !value)
			continue;
		if (strcmp(type, "Ready") == 0)
			p->ready = p->answered =
			    strcmp(value, "True") == 0 && p->phase == POD_RUNNING;
		/* whoever says so (a drain, a preemption, an autoscaler): not the program */
		if (strcmp(type, "DisruptionTarget") == 0 && strcmp(value, "True") == 0)
			p->free = true;
		if (strcmp(type, "PodScheduled") == 0 && strcmp(value, "False") == 0 && !p->reason)
			read_unscheduled(p, reason, text_at(condition, "message"));
	}
}

static const char *controller_uid(const cJSON *metadata)
{
	const cJSON *ref;

	cJSON_ArrayForEach(
	    ref,
	    at(metadata,
	       "ownerReferences")) if (cJSON_IsTrue(at(ref, "controller"))) return text_at(ref,
											   "uid");
	return NULL;
}

/* Within the second of the request nobody knows which came first, nor when there is no end of a
 * container to go by (it never started, or its node has lost it), nor when the time of the request
 * is not known; then the program gets another chance. */
static void judge_end(struct cached_pod *p)
{
	p->killed = p->deleting && (p->phase == POD_SUCCEEDED || p->phase == POD_FAILED) &&
		    (p->finished <= 0 || p->finished >= p->deletion_asked);
}

/* deletionTimestamp is when the grace period ends.  A kubelet that has ended a pod asks once more,
 * without any grace, and then it says nothing about the first request. */
static void read_deletion(struct cached_pod *p, const cJSON *metadata)
{
	double ends = time_at(metadata, "deletionTimestamp");
	double grace = cJSON_GetNumberValue(at(metadata, "deletionGracePeriodSeconds"));

	p->deleting = at(metadata, "deletionTimestamp") != NULL;
	p->deletion_due = ends;
	p->deletion_asked = p->deleting && grace > 0 ? ends - grace : 0;
	judge_end(p);
}

void pod_record_follow(struct cached_pod *p, const struct cached_pod *before)
{
	p->answered = p->answered || before->answered;
	p->epoch = p->epoch > before->epoch ? p->epoch : before->epoch;
	if (p->deletion_asked > 0 || before->deletion_asked <= 0)
		return;
	p->deletion_asked = before->deletion_asked;
	judge_end(p);
}

/* 0 when it is none, or none from 1 up. */
static int number_of(const char *text)
{
	long n = text ? strtol(text, NULL, 10) : 0;

	return n > 0 && n <= INT32_MAX ? (int)n : 0;
}

struct cached_pod *pod_record_new(const cJSON *pod)
{
	const cJSON *metadata = at(pod, "metadata"), *status = at(pod, "status");
	const cJSON *labels = at(metadata, "labels");
	const char *task = text_at(labels, LABEL_TASK), *index = text_at(labels, LABEL_INDEX);
	const char *name = text_at(metadata, "name"), *uid = text_at(metadata, "uid");
	const char *owner = controller_uid(metadata);
	struct cached_pod *p;

	if (!task || !index || !name || !uid)
		return NULL;
	p = MU_NEW(struct cached_pod);
	p->name = mu_xstrdup(name);
	p->uid = mu_xstrdup(uid);
	p->owner = mu_xstrdup(owner ? owner : "");
	p->task = mu_xstrdup(task);
	p->index = (int)strtol(index, NULL, 10);
	p->exit_code = -1;
	p->gpu = at(labels, LABEL_GPU) != NULL;
	p->leaves = at(labels, LABEL_LEAVES) != NULL;
	p->epoch = number_of(text_at(labels, LABEL_EPOCH));
	p->phase = phase_of(text_at(status, "phase"));
	p->created = time_at(metadata, "creationTimestamp");
	p->node = copy_or_null(text_at(at(pod, "spec"), "nodeName"));
	p->ip = copy_or_null(text_at(status, "podIP"));
	p->reason = copy_or_null(text_at(status, "reason"));
	p->free = is_one_of(p->reason, platform_reasons);
	read_container(p, status);
	read_conditions(p, status);
	read_deletion(p, metadata);
	return p;
}

static bool same_report(const struct progress_report *a, const struct progress_report *b)
{
	return a == b || (a && b && progress_report_same(a, b));
}

static bool same(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

bool pod_record_same(const struct cached_pod *a, const struct cached_pod *b)
{
	return a->phase == b->phase && a->ready == b->ready && a->deleting == b->deleting &&
	       a->free == b->free && a->killed == b->killed && a->gpu == b->gpu &&
	       a->leaves == b->leaves && a->index == b->index && a->exit_code == b->exit_code &&
	       a->created == b->created && a->finished == b->finished &&
	       a->deletion_due == b->deletion_due && same(a->name, b->name) &&
	       same(a->uid, b->uid) && same(a->owner, b->owner) && same(a->task, b->task) &&
	       same(a->reason, b->reason) && same(a->message, b->message) &&
	       same(a->detail, b->detail) && same(a->node, b->node) && same(a->ip, b->ip) &&
	       same_report(a->final, b->final);
}

void pod_record_free(struct cached_pod *p)
{
	free(p->name);
	free(p->uid);
	free(p->owner);
	free(p->task);
	free(p->reason);
	free(p->message);
	free(p->detail);
	free(p->final);
	free(p->node);
	free(p->ip);
	free(p);
}
