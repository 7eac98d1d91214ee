/* SPDX-License-Identifier: Apache-2.0 */
/* muster explain: one report on why a job waits, is slow or has failed.
 *
 * The job's status comes first. Pods and events add what the status does not contain (the
 * scheduler's message, an image pull error). The status of the tasks, read through the API server's
 * proxy, shows slow tasks. The report names objects that the caller may not read.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/cli.h"
#include "cli/cluster/cluster.h"
#include "lib/base/rfc3339.h"
#include "operator/api/job_spec.h"
#include "operator/api/job_status.h"
#include "operator/api/object_json.h"

enum { MAX_PODS = 12, MAX_FAILURES = 12, MAX_EVENTS = 6, MAX_TASK_REQUESTS = 64 };

static void put_pair(struct mu_buf *out, const char *what, const char *text)
{
	mu_buf_printf(out, "  %-11s ", what);
	put_printable(out, text);
	mu_buf_putc(out, '\n');
}

static bool is_true(const cJSON *c)
{
	return strcmp(field_text(c, "status", ""), "True") == 0;
}

static void put_head(struct mu_buf *out, const cJSON *job, double now)
{
	const char *phase = field_text(job, "status.phase", "New");
	const cJSON *condition = item_with(field_at(job, "status.conditions"), "type", phase);
	char age[16];

	put_printable(out, field_text(job, "metadata.name", "?"));
	mu_buf_puts(out, " in ");
	put_printable(out, field_text(job, "metadata.namespace", "?"));
	mu_buf_puts(out, ": ");
	put_printable(out, phase);
	if (is_true(condition))
		mu_buf_printf(out, " for %s", field_age(condition, "lastTransitionTime", now, age));
	mu_buf_printf(out, ", created %s ago",
		      field_age(job, "metadata.creationTimestamp", now, age));
	mu_buf_puts(out, ", ");
	put_printable(out, field_text(job, "status.summary.ready", "no"));
	mu_buf_puts(out, " tasks ready\n");
	if (!field_at(job, "status.conditions"))
		put_pair(out, "why",
			 "the operator has not processed the job: is it running, and does it watch "
			 "this namespace?");
	else if (field_number(job, "metadata.generation", 0) >
		 field_number(job, "status.observedGeneration", 0))
		put_pair(
		    out, "note",
		    "the manifest was changed and the operator has not processed the change yet");
}

/* The conditions that report a problem, with the operator's message. */
static void put_why(struct mu_buf *out, const cJSON *job, double now)
{
	const char *phase = field_text(job, "status.phase", "");
	bool ended = strcmp(phase, "Failed") == 0 || strcmp(phase, "Succeeded") == 0;
	const cJSON *c;

	cJSON_ArrayForEach(c, field_at(job, "status.conditions"))
	{
		const char *type = field_text(c, "type", "");
		int i = condition_type_of(type);
		bool healthy = i >= 0 && condition_kinds[i].healthy;
		MU_AUTO_BUF line = {0};
		char age[16];

		if (healthy == is_true(c) || (healthy && ended))
			continue;
		mu_buf_printf(&line, "%.40s (%.64s, %s): %s", type, field_text(c, "reason", ""),
			      field_age(c, "lastTransitionTime", now, age),
			      field_text(c, "message", ""));
		put_pair(out, "why", line.data);
	}
}

static void put_progress(struct mu_buf *out, const cJSON *job)
{
	const cJSON *p = field_at(job, "status.progress");
	struct job_progress progress;
	MU_AUTO_BUF line = {0};

	field_progress(job, &progress);
	if (progress.step < 0)
		return;
	job_progress_put(&line, &progress);
	if (*field_text(p, "eta", ""))
		mu_buf_printf(&line, "  done %.64s", field_text(p, "eta", ""));
	put_pair(out, "progress", line.data);
	if (*field_text(p, "lastCheckpoint", ""))
		put_pair(out, "checkpoint", field_text(p, "lastCheckpoint", ""));
}

static void put_tasks(struct mu_buf *out, const cJSON *job)
{
	const cJSON *t;

	cJSON_ArrayForEach(t, field_at(job, "status.tasks"))
	{
		MU_AUTO_BUF line = {0};

		mu_buf_printf(&line, "%s: %.0f of %.0f ready", t->string ? t->string : "?",
			      field_number(t, "ready", 0), field_number(t, "desired", 0));
		if (field_number(t, "succeeded", 0) > 0)
			mu_buf_printf(&line, ", %.0f done", field_number(t, "succeeded", 0));
		if (field_number(t, "failed", 0) > 0)
			mu_buf_printf(&line, ", %.0f failed", field_number(t, "failed", 0));
		if (*field_text(t, "kernels", ""))
			mu_buf_printf(&line, ", kernels %.31s", field_text(t, "kernels", ""));
		put_pair(out, "tasks", line.data);
	}
}

static void put_failures(struct mu_buf *out, const cJSON *job)
{
	int n_shown = 0, n_more = 0;
	const cJSON *e;

	cJSON_ArrayForEach(e, field_at(job, "status.indexStatuses"))
	{
		MU_AUTO_BUF line = {0};

		if (cJSON_IsTrue(field_at(e, "done")) || field_number(e, "attempts", 0) < 1)
			continue;
		if (n_shown++ >= MAX_FAILURES) {
			n_more++;
			continue;
		}
		mu_buf_printf(&line, "%.63s/%.0f: last exit code %.0f (%.48s)%s%.64s, attempt %.0f",
			      field_text(e, "task", "?"), field_number(e, "index", 0),
			      field_number(e, "exitCode", -1), field_text(e, "reason", "?"),
			      *field_text(e, "node", "") ? " on node " : "",
			      field_text(e, "node", ""), field_number(e, "attempts", 0));
		if (cJSON_IsTrue(field_at(e, "uncounted")))
			mu_buf_puts(&line, ", not counted against backoffLimit");
		put_pair(out, "failure", line.data);
	}
	if (n_more)
		mu_buf_printf(out, "  %-11s and %d more in .status.indexStatuses\n", "", n_more);
}

static void put_pods(struct mu_buf *out, const cJSON *pods)
{
	int n_shown = 0, n_more = 0;
	const cJSON *pod;

	cJSON_ArrayForEach(pod, field_at(pods, "items"))
	{
		MU_AUTO_BUF line = {0};
		const char *message, *reason = pod_waiting_reason(pod, &message);

		if (!reason && !field_at(pod, "metadata.deletionTimestamp"))
			continue;
		if (n_shown++ >= MAX_PODS) {
			n_more++;
			continue;
		}
		mu_buf_printf(&line, "%.63s: %.64s%s%.400s", field_text(pod, "metadata.name", "?"),
			      reason ? reason : "is terminating", *message ? ": " : "", message);
		if (*field_text(pod, "spec.nodeName", ""))
			mu_buf_printf(&line, " (node %.64s)", field_text(pod, "spec.nodeName", ""));
		put_pair(out, "pod", line.data);
	}
	if (n_more)
		mu_buf_printf(out, "  %-11s and %d more pods\n", "", n_more);
}

struct warning {
	double timestamp;
	const cJSON *event;
};

static int newest_first(const void *a, const void *b)
{
	double x = ((const struct warning *)a)->timestamp,
	       y = ((const struct warning *)b)->timestamp;

	return (x < y) - (x > y);
}

/* The API server lists events by name, which is random. */
static void put_events(struct mu_buf *out, const cJSON *events, double now)
{
	const cJSON *items = field_at(events, "items"), *e;
	MU_AUTO_FREE struct warning *warnings =
	    MU_NEW_ARRAY(struct warning, cJSON_GetArraySize(items) + 1);
	int n = 0;

	cJSON_ArrayForEach(e, items)
	{
		const char *time = field_text(e, "eventTime", field_text(e, "lastTimestamp", ""));

		if (strcmp(field_text(e, "type", ""), "Warning") == 0)
			warnings[n++] = (struct warning){mu_rfc3339_read(time), e};
	}
	qsort(warnings, (size_t)n, sizeof(warnings[0]), newest_first);
	for (int i = 0; i < n && i < MAX_EVENTS; i++) {
		MU_AUTO_BUF line = {0};
		char age[16];
		double count;

		e = warnings[i].event;
		count = field_number(e, "series.count", field_number(e, "count", 1));
		field_age(e, "eventTime", now, age);
		if (strcmp(age, "?") == 0)
			field_age(e, "lastTimestamp", now, age);
		mu_buf_printf(&line, "%s ago", age);
		if (count > 1)
			mu_buf_printf(&line, ", %.0f times", count);
		mu_buf_printf(&line, ": %.64s: %.400s", field_text(e, "reason", "?"),
			      field_text(e, "message", ""));
		put_pair(out, "warning", line.data);
	}
}

void explain_print(struct mu_buf *out, const cJSON *job, const cJSON *pods, const cJSON *events,
		   const cJSON *tasks, double now)
{
	put_head(out, job, now);
	put_why(out, job, now);
	put_tasks(out, job);
	put_progress(out, job);
	put_failures(out, job);
	put_pods(out, pods);
	put_events(out, events, now);
	explain_tasks(out, tasks);
}

/* True for a running task with a status page; TensorBoard has none. */
static bool has_status_page(const cJSON *pod)
{
	const cJSON *labels = field_at(pod, "metadata.labels");
	const cJSON *task = cJSON_GetObjectItemCaseSensitive(labels, CLUSTER_LABEL_TASK);

	return strcmp(field_text(pod, "status.phase", ""), "Running") == 0 &&
	       strcmp(field_text(task, "", ""), JOB_TENSORBOARD) != 0;
}

/* Reads the status of the running tasks, of the first MAX_TASK_REQUESTS.  Returns NULL if the
 * caller has no permission.  Stops at the first task that does not answer: behind a NetworkPolicy
 * every request would time out.  *all_read is false if it skipped tasks. */
static cJSON *read_task_statuses(struct kube_client *c, const char *ns, const cJSON *pods,
				 bool *all_read, struct mu_err *err)
{
	cJSON *statuses = cJSON_CreateObject();
	int requests = 0;
	const cJSON *pod;

	*all_read = true;
	cJSON_ArrayForEach(pod, field_at(pods, "items"))
	{
		const char *name = field_text(pod, "metadata.name", "");
		cJSON *status = NULL;
		int rc;

		if (!has_status_page(pod))
			continue;
		if (++requests > MAX_TASK_REQUESTS) {
			*all_read = false;
			break;
		}
		rc = cluster_get(c, &status, err, "/api/v1/namespaces/%s/pods/%s:8079/proxy/status",
				 ns, name);
		if (rc == 0)
			cJSON_AddItemToObject(statuses, name, status);
		if (rc == -MU_PERMISSION_DENIED) {
			cJSON_Delete(statuses);
			return NULL;
		}
		if (rc == -MU_UNAVAILABLE || rc == -MU_DEADLINE_EXCEEDED) {
			*all_read = false;
			break;
		}
	}
	return statuses;
}

static int explain(const struct cluster_job *job_ref, struct mu_err *err)
{
	cJSON *job = NULL, *pods = NULL, *events = NULL, *tasks = NULL;
	MU_AUTO_BUF out = {0};
	MU_AUTO_BUF unread = {0};
	struct mu_err ignored = {0}; /* `unread` names the missing parts */
	int rc = cluster_job_get(job_ref, &job, err);
	bool all_read;

	if (rc < 0)
		return rc;
	if (cluster_job_pods(job_ref, &pods, &ignored) < 0)
		mu_buf_puts(&unread, " pods");
	if (cluster_get(job_ref->client, &events, &ignored,
			"/api/v1/namespaces/%s/events?fieldSelector=involvedObject.name%%3D%s",
			job_ref->ns, job_ref->name) < 0)
		mu_buf_puts(&unread, " events");
	tasks = read_task_statuses(job_ref->client, job_ref->ns, pods, &all_read, &ignored);
	if (!all_read)
		mu_buf_puts(&unread, " the status of some tasks");
	if (!tasks)
		mu_buf_puts(&unread, " pods/proxy");
	explain_print(&out, job, pods, events, tasks, (double)time(NULL));
	if (unread.len)
		mu_buf_printf(&out, "  %-11s not read:%s (no permission, or no response)\n", "note",
			      unread.data);
	fwrite(out.data, 1, out.len, stdout);
	cJSON_Delete(job);
	cJSON_Delete(pods);
	cJSON_Delete(events);
	cJSON_Delete(tasks);
	return 0;
}

int cluster_explain(int argc, char **argv)
{
	struct cluster_options o = {0};
	struct cluster_job job;
	struct mu_err err = {0};
	const struct cli_option table[] = {CLUSTER_OPTIONS(&o), {NULL}};
	int n = cli_options("explain", argc, argv, table, 1), rc;

	if (n < 0)
		return CLI_USAGE;
	rc = cluster_job_open(&job, "explain", n ? argv[0] : NULL, &o);
	if (rc)
		return rc;
	rc = explain(&job, &err);
	cluster_job_close(&job);
	return rc < 0 ? cli_fail(&err) : CLI_OK;
}
