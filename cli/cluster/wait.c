/* SPDX-License-Identifier: Apache-2.0 */
/* muster wait: follows a job until it has ended, and prints the same as muster run.
 *
 * It gets the job, then watches from its resourceVersion. When the watch ends or fails, both start
 * again. An unavailable API server does not end the wait, since a job may train for days.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/cluster/cluster.h"
#include "cli/run_view.h"
#include "lib/base/backoff.h"
#include "lib/base/clock.h"
#include "lib/io/json.h"

enum { WATCH_S = 300, WATCH_GRACE_S = 10, EXIT_UNKNOWN = 3, EXIT_TIMEOUT = 124 };

struct wait {
	struct cluster_job job;
	struct run_view view;
	struct job_status status;
	double deadline;     /* by mu_clock; INFINITY: none */
	char last_line[600]; /* last printed phase and problem */
	char version[64];    /* metadata.resourceVersion */
	bool found, deleted; /* the job was found; it was deleted */
};

static bool has_ended(const struct wait *w)
{
	return w->deleted || w->status.phase == JOB_SUCCEEDED || w->status.phase == JOB_FAILED;
}

static void copy_printable(char *out, size_t size, const char *text)
{
	MU_AUTO_BUF safe = {0};

	put_printable(&safe, text);
	snprintf(out, size, "%s", safe.data ? safe.data : "");
}

static void read_safe_status(struct job_status *out, const cJSON *job)
{
	job_status_decode(out, field_at(job, "status"));
	for (unsigned i = 0; i < JOB_CONDITIONS; i++)
		copy_printable(out->conditions[i].message, sizeof(out->conditions[i].message),
			       out->conditions[i].message);
}

static void update_view(struct run_view *v, const cJSON *job, double now)
{
	struct job_progress progress;

	field_progress(job, &progress);
	if (progress.step > v->progress.step)
		v->step_at = now;
	progress.step = progress.step < 0 ? 0 : progress.step;
	v->progress = progress;
	v->accuracy = field_number(job, "status.progress.accuracy", -1);
	copy_printable(v->checkpoint, sizeof(v->checkpoint),
		       field_text(job, "status.progress.lastCheckpoint", ""));
}

/* Prints a line for each change of the phase or of the problem that blocks the job. */
static void print_changes(struct wait *w)
{
	const struct condition *trouble = job_status_trouble(&w->status);
	char last_line[sizeof(w->last_line)];

	snprintf(last_line, sizeof(last_line), "%s%s%s",
		 w->status.phase == JOB_NEW ? "Created" : job_phase_names[w->status.phase],
		 trouble ? ": " : "", trouble ? trouble->message : "");
	if (strcmp(last_line, w->last_line) == 0)
		return;
	snprintf(w->last_line, sizeof(w->last_line), "%s", last_line);
	run_view_print(&w->view, "%s: %s", w->job.name, last_line);
}

static void update_job(struct wait *w, const cJSON *job)
{
	w->found = true;
	job_status_fini(&w->status);
	read_safe_status(&w->status, job);
	snprintf(w->version, sizeof(w->version), "%s",
		 field_text(job, "metadata.resourceVersion", ""));
	update_view(&w->view, job, mu_wall());
	if (has_ended(w))
		return;
	print_changes(w);
	if (w->status.phase == JOB_RUNNING)
		run_view_show(&w->view, &w->status, mu_wall());
}

static int on_event(void *arg, const char *line, size_t len, struct mu_err *err)
{
	struct wait *w = arg;
	cJSON *event = kube_json((struct mu_span){line, len});
	enum kube_change change;
	const cJSON *job;
	int rc = event ? kube_event_read(event, &change, &job, err)
		       : mu_fail(err, MU_UNAVAILABLE, "invalid JSON in a watch event");

	if (!rc && change == KUBE_DELETED)
		w->deleted = true;
	else if (!rc && change != KUBE_BOOKMARK)
		update_job(w, job);
	if (!rc && has_ended(w))
		rc =
		    mu_fail(err, MU_CANCELLED, "the job has ended"); /* this error ends the watch */
	cJSON_Delete(event);
	return rc;
}

static double seconds_left(const struct wait *w)
{
	double left = w->deadline - mu_clock();

	return left < 0 ? 0 : left;
}

static int watch_job(struct wait *w, struct mu_err *err)
{
	struct kube_lines lines = {.line = on_event, .arg = w};
	bool is_last = seconds_left(w) < WATCH_S; /* the last watch: it ends at the timeout */
	long seconds = is_last ? (long)ceil(seconds_left(w)) : WATCH_S;
	MU_AUTO_BUF path = {0};
	int rc;

	if (!seconds)
		return 0;
	mu_buf_printf(&path,
		      CLUSTER_JOBS_PATH "?watch=1&fieldSelector=metadata.name%%3D%s"
					"&resourceVersion=%s&timeoutSeconds=%ld",
		      w->job.ns, w->job.name, w->version, seconds);
	rc = kube_stream(
	    w->job.client,
	    &(struct kube_stream){.path = path.data,
				  .seconds = is_last ? seconds : seconds + WATCH_GRACE_S,
				  .chunk = kube_lines_feed,
				  .arg = &lines},
	    err);
	mu_buf_fini(&lines.rest);
	return has_ended(w) ? 0 : rc;
}

static int get_job(struct wait *w, struct mu_err *err)
{
	cJSON *job = NULL;
	int rc = cluster_job_get(&w->job, &job, err);

	if (!rc)
		update_job(w, job);
	if (rc == -MU_NOT_FOUND && w->found) {
		w->deleted = true;
		rc = 0;
	}
	cJSON_Delete(job);
	return rc;
}

/* Returns 0 when the job has ended, was deleted, or the timeout has expired. */
static int wait_for_end(struct wait *w, struct mu_err *err)
{
	enum { BACKOFF_MAX_S = 30 };
	int rc = 0, failures = 0;

	do {
		double start = mu_clock();

		rc = get_job(w, err);
		if (!rc && !has_ended(w))
			rc = watch_job(w, err);
		/* OUT_OF_RANGE: the resourceVersion is too old (410 Gone); GET again */
		if (rc && rc != -MU_OUT_OF_RANGE && !(w->found && cluster_is_transient(rc)))
			return rc;
		failures = rc || mu_clock() - start < 1 ? failures + 1 : 0;
		if (!has_ended(w) && failures)
			kube_client_sleep(
			    w->job.client,
			    fmin(mu_backoff(failures - 1, 1, BACKOFF_MAX_S), seconds_left(w)));
	} while (!has_ended(w) && seconds_left(w) > 0);
	return 0;
}

static int print_end(struct wait *w, const struct cluster_options *o)
{
	const struct job_status *s = &w->status;
	double seconds =
	    s->completion_time > 0 && s->start_time > 0 ? s->completion_time - s->start_time : 0;
	MU_AUTO_FREE char *options = cluster_options_text(o);

	run_view_clear(&w->view);
	if (w->deleted) {
		printf("%s: deleted\n", w->job.name);
		return EXIT_UNKNOWN;
	}
	if (!has_ended(w)) {
		printf("%s: has not ended within the timeout, step %lld\n", w->job.name,
		       (long long)w->view.progress.step);
		return EXIT_TIMEOUT;
	}
	run_view_outcome(&w->view, s, seconds);
	run_view_results(&w->view);
	if (s->phase == JOB_FAILED)
		printf("Try next:\n  muster explain %s%s\n  muster logs %s%s\n", w->job.name,
		       options, w->job.name, options);
	return s->phase == JOB_SUCCEEDED ? CLI_OK : CLI_FAILED;
}

/* Parses "90", "90s", "10m" or "2h"; NAN if invalid. */
static double read_duration(const char *text)
{
	static const struct {
		const char *unit;
		double seconds;
	} units[] = {{"", 1}, {"s", 1}, {"m", 60}, {"h", 3600}};
	char *end;
	double n = strtod(text, &end);

	for (unsigned i = 0; i < MU_COUNT(units); i++)
		if (*text >= '0' && *text <= '9' && strcmp(end, units[i].unit) == 0)
			return n * units[i].seconds;
	return NAN;
}

int cluster_wait(int argc, char **argv)
{
	struct wait w = {.deadline = INFINITY};
	struct cluster_options o = {0};
	const char *timeout = NULL;
	const struct cli_option table[] = {
	    CLUSTER_OPTIONS(&o), {"timeout", .value = &timeout}, {NULL}};
	struct mu_err err = {0};
	int n = cli_options("wait", argc, argv, table, 1), rc;

	if (n < 0)
		return CLI_USAGE;
	if (timeout && !isfinite(read_duration(timeout)))
		return cli_usage(
		    "wait", "--timeout must be seconds, or a time such as 90s, 10m or 2h; got '%s'",
		    timeout);
	rc = cluster_job_open(&w.job, "wait", n ? argv[0] : NULL, &o);
	if (rc)
		return rc == CLI_USAGE ? rc : EXIT_UNKNOWN;
	if (timeout)
		w.deadline = mu_clock() + read_duration(timeout);
	run_view_init(&w.view, w.job.name, 0);
	if (wait_for_end(&w, &err) < 0) {
		run_view_clear(&w.view);
		cli_fail(&err);
		rc = EXIT_UNKNOWN;
	} else {
		rc = print_end(&w, &o);
	}
	job_status_fini(&w.status);
	cluster_job_close(&w.job);
	return rc;
}
