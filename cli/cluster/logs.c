/* SPDX-License-Identifier: Apache-2.0 */
/* muster logs: prints the logs of a job's tasks. Each line begins with its task,
 * unless the command names one task (worker/0).
 *
 * The main thread lists the job and its pods once a second. Each started container gets a thread
 * that streams its log. Lines are requested with timestamps, so that a broken stream resumes after
 * the last printed line. A recreated pod or a restarted container is a new source with its own log.
 */
#include <ctype.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/cluster/cluster.h"
#include "lib/base/clock.h"
#include "operator/api/job_spec.h"
#include "operator/api/object_json.h"

enum { FOLLOWED_MAX = 64, STREAM_S = 3600, END_GRACE_S = 10, STAMP_MAX = 48 };
static const double list_interval_s = 1;

struct logs {
	struct cluster_job job;
	char task[JOB_MAX_TASK_NAME + 1]; /* "": all tasks */
	int index;                        /* -1: all indices */
	bool follow, previous, prints_task;
	long tail; /* last lines of each log; -1: all lines */
	struct log_source **sources;
	unsigned n_sources;
	char last_message[512];      /* last message about a job without pods */
	pthread_mutex_t output_lock; /* guards standard output */
	_Atomic bool output_closed;  /* standard output is closed */
};
/* The log of one run of a container. */
struct log_source {
	struct logs *logs;
	char task[JOB_MAX_NAME + 16]; /* "worker/0" */
	char *pod, *container, *uid, *waiting;
	int restarts;
	bool listed, has_thread, complete;
	pthread_t thread;
	_Atomic bool thread_ended; /* the thread has ended */
	int rc;                    /* result of the stream */
	struct mu_err err;
	char zone[8]; /* of the timestamps: "Z" or "+02:00", as the container runtime writes it */
	char last_stamp[STAMP_MAX];  /* timestamp of the last printed line */
	char resume_from[STAMP_MAX]; /* `last` when the current stream started */
	unsigned n_last;             /* printed lines with the timestamp `last` */
	unsigned n_skip;             /* lines at resume_from still to skip */
	bool skipping;               /* the last line was skipped */
};

/* ---- lines ---- */

static void print_line(struct log_source *s, const char *line, size_t len)
{
	struct logs *l = s->logs;

	pthread_mutex_lock(&l->output_lock);
	if (l->prints_task)
		printf("%s | ", s->task);
	fwrite(line, 1, len, stdout);
	if (putchar('\n') == EOF)
		atomic_store(&l->output_closed, true);
	pthread_mutex_unlock(&l->output_lock);
}

/* Reads the timestamp of a line; its zone goes to s, so that timestamps compare as strings. Returns
 * 0 if there is none (a line of the kubelet itself). */
static size_t read_stamp(struct log_source *s, char out[STAMP_MAX], const char *line, size_t len)
{
	enum { SECONDS_END = sizeof("2026-01-01T00:00:00") - 1 };
	const char *space = memchr(line, ' ', len);
	size_t n = space ? (size_t)(space - line) : len;

	if (n < 20 || n >= STAMP_MAX || !isdigit((unsigned char)line[0]) || line[10] != 'T')
		return 0;
	snprintf(out, STAMP_MAX, "%.*s", (int)n, line);
	char *zone = out + SECONDS_END + strcspn(out + SECONDS_END, "Z+-");
	snprintf(s->zone, sizeof(s->zone), "%s", *zone ? zone : "Z");
	*zone = 0;
	return n + (space != NULL);
}

/* Prints a line, unless it was printed before the stream broke. */
static int handle_line(void *arg, const char *line, size_t len, struct mu_err *err)
{
	struct log_source *s = arg;
	char stamp[STAMP_MAX];
	size_t skip = read_stamp(s, stamp, line, len);
	int order = skip && s->resume_from[0] ? strcmp(stamp, s->resume_from) : 1;

	if (skip) /* a text without a timestamp may be a further piece of the line before it */
		s->skipping = order < 0 || (order == 0 && s->n_skip > 0);
	if (s->skipping) {
		s->n_skip -= order == 0;
		return 0;
	}
	if (skip) {
		s->n_last = strcmp(stamp, s->last_stamp) == 0 ? s->n_last + 1 : 1;
		memcpy(s->last_stamp, stamp, sizeof(stamp));
	}
	print_line(s, line + skip, len - skip);
	return atomic_load(&s->logs->output_closed)
		   ? mu_fail(err, MU_CANCELLED, "standard output is closed")
		   : 0;
}

/* Bytes after which an unfinished line is printed. A progress bar that uses carriage returns may be
 * one line for hours. */
enum { LOG_PIECE_MAX = 16 << 10 };

struct log_stream {
	struct kube_lines lines;
	struct logs *logs;
};

static int handle_chunk(void *arg, const char *data, size_t len, struct mu_err *err)
{
	struct log_stream *st = arg;
	int rc = kube_lines_feed(&st->lines, data, len, err);

	pthread_mutex_lock(&st->logs->output_lock);
	if (fflush(stdout))
		atomic_store(&st->logs->output_closed, true);
	pthread_mutex_unlock(&st->logs->output_lock);
	return rc;
}

static void put_path(struct mu_buf *out, const struct log_source *s)
{
	const struct logs *l = s->logs;

	mu_buf_printf(out, "/api/v1/namespaces/%s/pods/%s/log?container=%s&timestamps=true",
		      l->job.ns, s->pod, s->container);
	if (l->follow)
		mu_buf_puts(out, "&follow=true");
	if (l->previous)
		mu_buf_puts(out, "&previous=true");
	if (s->resume_from[0]) /* whole seconds: skip the lines of that second that were printed */
		mu_buf_printf(out, "&sinceTime=%.19s%s%s", s->resume_from,
			      *s->zone == '+' ? "%2B" : "", s->zone + (*s->zone == '+'));
	else if (l->tail >= 0)
		mu_buf_printf(out, "&tailLines=%ld", l->tail);
}

/* Streams the log from the last printed line to its end. Runs in a thread with -f. */
static void *stream_log(void *arg)
{
	struct log_source *s = arg;
	struct log_stream st = {
	    .lines = {.line = handle_line, .arg = s, .piece_max = LOG_PIECE_MAX}, .logs = s->logs};
	MU_AUTO_BUF path = {0};

	memcpy(s->resume_from, s->last_stamp, sizeof(s->resume_from));
	s->n_skip = s->n_last;
	s->skipping = false;
	put_path(&path, s);
	s->rc = kube_stream(
	    s->logs->job.client,
	    &(struct kube_stream){
		.path = path.data, .seconds = STREAM_S, .chunk = handle_chunk, .arg = &st},
	    &s->err);
	if (st.lines.rest.len && s->rc == 0) /* the last line has no newline */
		handle_chunk(&st, "\n", 1, &s->err);
	mu_buf_fini(&st.lines.rest);
	atomic_store(&s->thread_ended, true);
	return NULL;
}

/* ---- sources ---- */

static bool is_selected(const struct logs *l, const cJSON *pod)
{
	const cJSON *labels = field_at(pod, "metadata.labels");
	const cJSON *task = cJSON_GetObjectItemCaseSensitive(labels, CLUSTER_LABEL_TASK);
	const cJSON *index = cJSON_GetObjectItemCaseSensitive(labels, CLUSTER_LABEL_INDEX);

	if (!cJSON_IsString(task) || !cJSON_IsString(index))
		return false;
	return !l->task[0] || (strcmp(task->valuestring, l->task) == 0 &&
			       (l->index < 0 || atoi(index->valuestring) == l->index));
}

/* Finds or adds the source of the current run of the pod's first container. */
static struct log_source *find_or_add_source(struct logs *l, const cJSON *pod,
					     const char *container, int restarts)
{
	const cJSON *labels = field_at(pod, "metadata.labels");
	const char *uid = field_text(pod, "metadata.uid", "");
	struct log_source *s;

	for (unsigned i = 0; i < l->n_sources; i++)
		if (strcmp(l->sources[i]->uid, uid) == 0 && l->sources[i]->restarts == restarts)
			return l->sources[i];
	s = MU_NEW(struct log_source);
	*s = (struct log_source){.logs = l,
				 .pod = mu_xstrdup(field_text(pod, "metadata.name", "")),
				 .container = mu_xstrdup(container),
				 .uid = mu_xstrdup(uid),
				 .restarts = restarts};
	snprintf(s->task, sizeof(s->task), "%.63s/%.12s",
		 cJSON_GetObjectItemCaseSensitive(labels, CLUSTER_LABEL_TASK)->valuestring,
		 cJSON_GetObjectItemCaseSensitive(labels, CLUSTER_LABEL_INDEX)->valuestring);
	l->sources = mu_xrealloc(l->sources, (l->n_sources + 1) * sizeof(struct log_source *));
	return l->sources[l->n_sources++] = s;
}

static void source_free(struct log_source *s)
{
	free(s->pod);
	free(s->container);
	free(s->uid);
	free(s->waiting);
	free(s);
}

/* Reports each reason for a missing log once. */
static void report_waiting(struct log_source *s, const cJSON *pod)
{
	const char *message, *reason = pod_waiting_reason(pod, &message);
	MU_AUTO_BUF text = {0};

	put_printable(&text, reason ? reason : "the container has not started");
	if (*message) {
		mu_buf_puts(&text, ": ");
		put_printable(&text, message);
	}
	if (s->waiting && strcmp(s->waiting, text.data) == 0)
		return;
	free(s->waiting);
	s->waiting = mu_buf_take(&text);
	fprintf(stderr, "muster: %s has no log yet: %s\n", s->task, s->waiting);
}

static int start_stream(struct log_source *s, struct mu_err *err)
{
	struct logs *l = s->logs;
	unsigned n_streams = 0;

	atomic_store(&s->thread_ended, false);
	free(s->waiting);
	s->waiting = NULL;
	if (!l->follow) {
		stream_log(s);
		s->complete = true;
		return s->rc < 0 ? mu_append(&s->err, " (%s)", s->task), *err = s->err, s->rc : 0;
	}
	for (unsigned i = 0; i < l->n_sources; i++)
		n_streams += l->sources[i]->has_thread;
	if (n_streams >= FOLLOWED_MAX)
		return mu_fail(
		    err, MU_RESOURCE_EXHAUSTED,
		    "at most %d tasks can be followed at once: name one task, such as worker/0",
		    FOLLOWED_MAX);
	if (pthread_create(&s->thread, NULL, stream_log, s) != 0)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "cannot start a thread");
	s->has_thread = true;
	return 0;
}

/* Joins ended threads. Returns an error that a retry cannot fix. */
static int join_ended(struct logs *l, struct mu_err *err)
{
	for (unsigned i = 0; i < l->n_sources; i++) {
		struct log_source *s = l->sources[i];

		if (!s->has_thread || !atomic_load(&s->thread_ended))
			continue;
		pthread_join(s->thread, NULL);
		s->has_thread = false;
		if (s->rc == -MU_NOT_FOUND) /* the pod was deleted */
			s->complete = true;
		/* INVALID_ARGUMENT: the container has not started */
		else if (s->rc < 0 && s->rc != -MU_INVALID_ARGUMENT && !cluster_is_transient(s->rc))
			return *err = s->err, s->rc;
	}
	return 0;
}

/* Starts, restarts or skips the log stream of a listed pod. */
static int update_source(struct logs *l, const cJSON *pod, struct mu_err *err)
{
	const cJSON *first = cJSON_GetArrayItem(field_at(pod, "spec.containers"), 0);
	const char *container = field_text(first, "name", "");
	const cJSON *status =
	    item_with(field_at(pod, "status.containerStatuses"), "name", container);
	bool running = field_at(status, "state.running"),
	     terminated = field_at(status, "state.terminated");
	struct log_source *s =
	    find_or_add_source(l, pod, container, (int)field_number(status, "restartCount", 0));

	s->listed = true;
	if (s->has_thread || s->complete)
		return 0;
	if (!running && !terminated) {
		report_waiting(s, pod);
		return 0;
	}
	/* The stream succeeded and the container has terminated: the log is complete. */
	if (terminated && atomic_load(&s->thread_ended) && s->rc == 0) {
		s->complete = true;
		return 0;
	}
	return start_stream(s, err);
}

/* ---- the job ---- */

static bool job_has_ended(const cJSON *job)
{
	const char *phase = field_text(job, "status.phase", "");

	return strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0;
}

/* Fails for a task that the job does not have, instead of waiting forever. */
static int check_task(const struct logs *l, const cJSON *job, struct mu_err *err)
{
	const cJSON *tasks = field_at(job, "spec.tasks");
	const cJSON *task = cJSON_GetObjectItemCaseSensitive(tasks, l->task);
	double replicas = field_number(task, "replicas", 1);

	if (!l->task[0] || strcmp(l->task, JOB_TENSORBOARD) == 0)
		return 0;
	if (!task)
		return mu_fail(err, MU_NOT_FOUND, "job '%s' has no task '%s'", l->job.name,
			       l->task);
	if (l->index >= replicas)
		return mu_fail(err, MU_NOT_FOUND, "job '%s' has no %s/%d: its last is %s/%.0f",
			       l->job.name, l->task, l->index, l->task, replicas - 1);
	return 0;
}

static int report_no_pods(struct logs *l, const cJSON *job, struct mu_err *err)
{
	MU_AUTO_BUF text = {0};

	if (job_has_ended(job))
		return mu_fail(err, MU_NOT_FOUND,
			       "job '%s' has ended and its pods were deleted with their logs "
			       "(run.cleanPodPolicy)",
			       l->job.name);
	mu_buf_printf(&text, "job '%s' is %s and has no pod%s%s yet", l->job.name,
		      field_text(job, "status.phase", "new"), l->task[0] ? " of " : "", l->task);
	mu_buf_puts(&text, *field_text(job, "status.summary.message", "") ? ": " : "");
	put_printable(&text, field_text(job, "status.summary.message", ""));
	if (!l->follow)
		return mu_fail(err, MU_FAILED_PRECONDITION, "%s; -f waits for it", text.data);
	if (strncmp(text.data, l->last_message, sizeof(l->last_message) - 1) != 0)
		fprintf(stderr, "muster: %s\n", text.data);
	snprintf(l->last_message, sizeof(l->last_message), "%s", text.data);
	return 0;
}

/* Lists the job and its pods once. *ended: the job has ended or was deleted. */
static int update_sources(struct logs *l, bool first, bool *ended, struct mu_err *err)
{
	cJSON *job = NULL, *pods = NULL;
	const cJSON *pod;
	unsigned n = 0;
	int rc = cluster_job_get(&l->job, &job, err);

	if (!rc && first)
		rc = check_task(l, job, err);
	if (!rc)
		rc = cluster_job_pods(&l->job, &pods, err);
	for (unsigned i = 0; i < l->n_sources; i++)
		l->sources[i]->listed = rc != 0;
	cJSON_ArrayForEach(pod, field_at(pods, "items")) n += is_selected(l, pod);
	if (first)
		l->prints_task = l->index < 0;
	if (!rc && !n && (first || l->follow) && !l->n_sources)
		rc = report_no_pods(l, job, err);
	cJSON_ArrayForEach(pod, field_at(pods, "items"))
	{
		if (!rc && is_selected(l, pod))
			rc = update_source(l, pod, err);
	}
	*ended = job && job_has_ended(job);
	if (!job && !first && rc == -MU_NOT_FOUND) { /* the job was deleted */
		*ended = true;
		rc = 0;
	}
	cJSON_Delete(job);
	cJSON_Delete(pods);
	return rc;
}

/* True while a log is streamed or will be streamed again. */
static bool is_busy(const struct logs *l)
{
	for (unsigned i = 0; i < l->n_sources; i++)
		if (l->sources[i]->has_thread ||
		    (l->sources[i]->listed && !l->sources[i]->complete && !l->sources[i]->waiting))
			return true;
	return false;
}

static int follow_logs(struct logs *l, struct mu_err *err)
{
	double ended_at = 0;
	bool ended = false, first = true;
	int rc = 0;

	for (;;) {
		rc = update_sources(l, first, &ended, err);
		if (rc < 0 && !(l->follow && !first && cluster_is_transient(rc)))
			return rc;
		first = false;
		rc = l->follow ? join_ended(l, err) : 0;
		if (ended && ended_at <= 0)
			ended_at = mu_clock();
		if (rc < 0 || !l->follow || (ended && !is_busy(l)) ||
		    (ended && mu_clock() - ended_at > END_GRACE_S))
			return rc;
		kube_client_sleep(l->job.client, list_interval_s);
	}
}

static int print_logs(struct logs *l, struct mu_err *err)
{
	unsigned n_without_log = 0;
	int rc = follow_logs(l, err);

	kube_client_stop(l->job.client);
	for (unsigned i = 0; i < l->n_sources; i++) {
		if (l->sources[i]->has_thread)
			pthread_join(l->sources[i]->thread, NULL);
		n_without_log += l->sources[i]->waiting != NULL;
	}
	if (!rc && !l->follow && n_without_log)
		rc = mu_fail(err, MU_FAILED_PRECONDITION,
			     "%u of %u tasks have no log yet; -f waits for them", n_without_log,
			     l->n_sources);
	for (unsigned i = 0; i < l->n_sources; i++)
		source_free(l->sources[i]);
	free(l->sources);
	return rc;
}

/* ---- the command line ---- */

static bool read_number(const char *text, long *out)
{
	char *end;

	*out = strtol(text, &end, 10);
	return isdigit((unsigned char)*text) && !*end;
}

/* TASK or TASK/INDEX */
static bool read_task(struct logs *l, const char *arg)
{
	size_t n = strcspn(arg, "/");
	long index;

	if (!n || n >= sizeof(l->task))
		return false;
	snprintf(l->task, sizeof(l->task), "%.*s", (int)n, arg);
	if (!arg[n])
		return true;
	if (!read_number(arg + n + 1, &index) || index >= JOB_MAX_REPLICAS)
		return false;
	l->index = (int)index;
	return true;
}

/* Returns 0, or the exit status for a wrong command line. */
static int read_arguments(struct logs *l, struct cluster_options *o, const char **job, int argc,
			  char **argv)
{
	const char *tail = NULL;
	const struct cli_option table[] = {CLUSTER_OPTIONS(o),
					   {"tail", .value = &tail},
					   {"follow", 'f', .flag = &l->follow},
					   {"previous", .flag = &l->previous},
					   {NULL}};
	int n = cli_options("logs", argc, argv, table, 2);

	if (n < 0)
		return CLI_USAGE;
	*job = n ? argv[0] : NULL;
	if (n > 1 && !read_task(l, argv[1]))
		return cli_usage("logs", "'%.63s' is not TASK or TASK/INDEX, as in worker/0",
				 argv[1]);
	if (tail && !read_number(tail, &l->tail))
		return cli_usage("logs", "--tail is a number of lines, got '%s'", tail);
	if (l->follow && l->previous)
		return cli_usage("logs", "--previous prints the log of a run that has ended: it "
					 "cannot be combined with -f");
	return 0;
}

int cluster_logs(int argc, char **argv)
{
	struct logs l = {.index = -1, .tail = -1, .output_lock = PTHREAD_MUTEX_INITIALIZER};
	struct cluster_options o = {0};
	struct mu_err err = {0};
	const char *job = NULL;
	int rc = read_arguments(&l, &o, &job, argc, argv);

	if (!rc)
		rc = cluster_job_open(&l.job, "logs", job, &o);
	if (rc)
		return rc;
	rc = print_logs(&l, &err);
	cluster_job_close(&l.job);
	return rc < 0 && !atomic_load(&l.output_closed) ? cli_fail(&err) : CLI_OK;
}
