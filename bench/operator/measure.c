/* SPDX-License-Identifier: Apache-2.0 */
/* Measurements: CPU time and memory of processes from their clocks and /proc, writes from the API
 * server's counters. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "bench/operator/load.h"

double load_cpu(int pid)
{
	struct timespec t;
	clockid_t clock;

	/* nanosecond resolution; /proc has only 10 ms, which is 0.1 % of ten seconds */
	if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) != 0)
		return 0;
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static long kilobytes(const char *text, const char *key)
{
	const char *at = strstr(text, key);
	return at ? strtol(at + strlen(key), NULL, 10) : 0;
}

void load_memory(struct load_process *p)
{
	MU_AUTO_FREE char *path = mu_xasprintf("/proc/%d/status", p->pid);
	MU_AUTO_BUF text = {0};

	if (mu_buf_read_file(&text, path, 1 << 16, NULL) < 0)
		return;
	p->rss = kilobytes(text.data, "VmRSS:");
	p->peak = kilobytes(text.data, "VmHWM:");
}

static int keep(void *arg, const char *data, size_t len, struct mu_err *err)
{
	mu_buf_put(arg, data, len);
	return 0;
}

static bool has(const char *line, const char *label, const char *value)
{
	MU_AUTO_FREE char *want = mu_xasprintf("%s=\"%s\"", label, value);
	return strstr(line, want) != NULL;
}

static bool is_write(const char *line)
{
	return has(line, "verb", "POST") || has(line, "verb", "PUT") ||
	       has(line, "verb", "PATCH") || has(line, "verb", "APPLY") ||
	       has(line, "verb", "DELETE");
}

/* Calls fn with each line of the server's metrics and its value. */
static void each_metric(struct kube_client *c, void (*fn)(void *arg, const char *line, long value),
			void *arg)
{
	MU_AUTO_BUF text = {0};
	struct kube_stream metrics = {
	    .path = "/metrics", .seconds = 60, .chunk = keep, .arg = &text};
	struct mu_err err = {0};
	char *save = NULL;

	if (kube_stream(c, &metrics, &err) < 0) {
		fprintf(stderr, "load: %s\n", err.msg);
		return;
	}
	mu_buf_putc(&text, 0);
	for (char *line = strtok_r(text.data, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		const char *value = strrchr(line, ' ');

		fn(arg, line, value ? (long)strtod(value, NULL) : 0);
	}
}

struct counting {
	const char *resource;
	struct load_counts *out;
};

static void count_line(void *arg, const char *line, long n)
{
	static const char name[] = "apiserver_request_total{";
	const struct counting *k = arg;
	struct load_counts *out = k->out;
	/* our own writes: created jobs, pod updates, pods of the bare loop */
	bool mine = (has(line, "resource", "pods") && has(line, "subresource", "status")) ||
		    (has(line, "resource", k->resource) && has(line, "verb", "POST"));

	if (strncmp(line, name, strlen(name)) != 0 || mine || has(line, "resource", "leases"))
		return;
	out->reads += has(line, "verb", "LIST") || has(line, "verb", "GET") ? n : 0;
	if (!is_write(line))
		return;
	out->writes += n;
	out->events += has(line, "resource", "events") ? n : 0;
	out->conflicts += has(line, "code", "409") ? n : 0;
}

void load_count(struct kube_client *c, const char *resource, struct load_counts *out)
{
	*out = (struct load_counts){0};
	each_metric(c, count_line, &(struct counting){resource, out});
}

static void own_line(void *arg, const char *line, long n)
{
	static const char calls[] = "rest_client_requests_total{";
	static const char retries[] = "workqueue_retries_total{";
	struct load_own *out = arg;

	if (strncmp(line, retries, strlen(retries)) == 0)
		out->retries += n;
	if (strncmp(line, calls, strlen(calls)) != 0)
		return;
	out->reads += has(line, "method", "GET") ? n : 0;
	out->conflicts += has(line, "code", "409") ? n : 0;
}

void load_own(struct kube_client *c, struct load_own *out)
{
	*out = (struct load_own){0};
	each_metric(c, own_line, out);
}

struct parallel {
	_Atomic int next;
	int n;
	load_item_fn *fn;
	void *arg;
};

static void *run_items(void *arg)
{
	struct parallel *p = arg;

	for (int i; (i = atomic_fetch_add(&p->next, 1)) < p->n;)
		p->fn(p->arg, i);
	return NULL;
}

void load_parallel(int threads, int n, load_item_fn *fn, void *arg)
{
	struct parallel p = {.n = n, .fn = fn, .arg = arg};
	pthread_t *t = MU_NEW_ARRAY(pthread_t, (size_t)threads);
	int started = 0;

	while (started < threads && pthread_create(&t[started], NULL, run_items, &p) == 0)
		started++;
	for (int i = 0; i < started; i++)
		pthread_join(t[i], NULL);
	free(t);
}
