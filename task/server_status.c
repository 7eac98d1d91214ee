/* SPDX-License-Identifier: Apache-2.0 */
/* What the server says of itself over HTTP:
 *
 *	GET  /healthz  200 as long as the process answers
 *	GET  /readyz   200 once it serves calls, 503 when it is about to end
 *	GET  /status   one JSON object
 *	GET  /metrics  Prometheus' text form
 *	POST /cluster  sets the members of the cluster (server_cluster.c)
 *	POST /finish   asks the program to drain and exit with 0
 *
 * The two that change something need the bearer token of the job, or a caller on the loopback. */
#include <stdio.h>
#include <strings.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/io/json.h"
#include "task/runtime/thread_pool.h"
#include "task/server_internal.h"

struct resource_sums {
	unsigned count;
	size_t bytes;
	int64_t step; /* -1: no global_step here */
};

static void see(void *arg, struct resource *r)
{
	struct resource_sums *sums = arg;
	struct variable *v = (struct variable *)r;

	sums->count++;
	if (r->type->bytes)
		sums->bytes += r->type->bytes(r);
	if (r->type != &variable_type || strcmp(r->name, "global_step"))
		return;
	pthread_mutex_lock(&v->lock);
	if (mu_tensor_is_set(&v->value) && !v->value.buf->device && v->value.shape.count == 1 &&
	    (v->value.dtype == MU_INT64 || v->value.dtype == MU_INT32))
		sums->step = mu_tensor_int(&v->value, 0);
	pthread_mutex_unlock(&v->lock);
}

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Steps a second, and the share of its processors' time that the process took, since the last time
 * somebody asked, a second ago or more. */
static void measure(struct task_server *s, uint64_t steps, double *rate, double *busy)
{
	int64_t now = mu_clock_ms();

	pthread_mutex_lock(&s->lock);
	if (now - s->rate_ms >= 1000) {
		double passed = (double)(now - s->rate_ms) / 1000, cpu = cpu_seconds();
		double share = (cpu - s->rate_cpu) / passed / thread_pool_size(s->rt->pool);

		s->rate = (double)(steps - s->rate_steps) / passed;
		s->busy = share > 1 ? 1 : share;
		s->rate_ms = now;
		s->rate_steps = steps;
		s->rate_cpu = cpu;
	}
	*rate = s->rate;
	*busy = s->busy;
	pthread_mutex_unlock(&s->lock);
}

static void put_text(struct mu_buf *b, const char *key, const char *text)
{
	mu_buf_printf(b, "\"%s\":", key);
	mu_json_quote(b, mu_span_of(text));
	mu_buf_putc(b, ',');
}

static void put_gpu_names(struct task_server *s, struct mu_buf *b)
{
	for (unsigned i = 0; i < gpu_count(s->rt->gpus); i++)
		if (gpu_works(gpu_at(s->rt->gpus, i)))
			mu_buf_printf(b, ",\"%s/device:GPU:%u\"", s->rt->task_prefix, i);
}

static void put_gpus(struct task_server *s, struct mu_buf *b)
{
	unsigned n = gpu_count(s->rt->gpus);

	if (!n)
		return;
	mu_buf_puts(b, "\"gpus\":[");
	for (unsigned i = 0; i < n; i++) {
		struct gpu_facts f;
		gpu_see(gpu_at(s->rt->gpus, i), &f);
		mu_buf_puts(b, i ? ",{" : "{");
		put_text(b, "name", f.name);
		if (*f.broken)
			put_text(b, "broken", f.broken);
		mu_buf_printf(b,
			      "\"capability\":\"%d.%d\",\"driver\":\"%d.%d\",\"memoryBytes\":%zu,"
			      "\"limitBytes\":%zu,\"usedBytes\":%zu,\"mostBytes\":%zu}",
			      f.major, f.minor, f.driver / 1000, f.driver % 1000 / 10, f.memory,
			      f.limit, f.used, f.most);
	}
	mu_buf_puts(b, "],");
}

static void status(struct task_server *s, struct mu_buf *b)
{
	struct resource_sums sums = {.step = -1};
	struct worker_counts w;
	double rate, busy;

	worker_count(s->context.worker, &w);
	measure(s, w.steps, &rate, &busy);
	resources_each(s->rt->resources, see, &sums);
	mu_buf_putc(b, '{');
	put_text(b, "task", s->rt->task_prefix);
	mu_buf_puts(b, "\"devices\":[");
	mu_json_quote(b, mu_span_of(s->rt->cpu_name));
	put_gpu_names(s, b);
	mu_buf_puts(b, "],");
	put_gpus(s, b);
	put_text(b, "kernels", s->device.chosen);
	put_text(b, "kernelsAsked", s->device.asked);
	put_text(b, "kernelsProbed", s->device.probed);
	put_text(b, "blasCore", s->device.blas);
	if (sums.step >= 0)
		mu_buf_printf(b, "\"step\":%lld,", (long long)sums.step);
	if (s->epoch)
		mu_buf_printf(b, "\"epoch\":%d,", s->epoch);
	mu_buf_printf(b,
		      "\"sessions\":%u,\"workerSessions\":%u,\"graphs\":%u,\"runningSteps\":%u,"
		      "\"clientSteps\":%llu,\"failedSteps\":%llu,\"steps\":%llu,"
		      "\"stepsPerSecond\":%.2f,\"busy\":%.3f,\"resources\":%u,"
		      "\"resourceBytes\":%zu,",
		      master_sessions(s->context.master), w.sessions, w.graphs, w.running,
		      (unsigned long long)s->context.master->steps,
		      (unsigned long long)s->context.master->failed_steps,
		      (unsigned long long)w.steps, rate, busy, sums.count, sums.bytes);
	server_status_lists(s, b);
	pthread_mutex_lock(&s->lock);
	if (s->progress)
		mu_buf_printf(b, "\"progress\":%s,", s->progress);
	pthread_mutex_unlock(&s->lock);
	mu_buf_printf(b, "\"uptimeSeconds\":%.1f}\n",
		      (double)(mu_clock_ms() - s->started_ms) / 1000);
}

static void metric(struct mu_buf *b, const char *type, const char *name, const char *help,
		   double value)
{
	mu_buf_printf(b, "# HELP muster_%s %s\n# TYPE muster_%s %s\nmuster_%s %.17g\n", name, help,
		      name, type, name, value);
}

static void metrics(struct task_server *s, struct mu_buf *b)
{
	struct resource_sums sums = {.step = -1};
	struct worker_counts w;

	worker_count(s->context.worker, &w);
	resources_each(s->rt->resources, see, &sums);
	metric(b, "counter", "steps_total", "Partitions of steps started on this task.",
	       (double)w.steps);
	metric(b, "counter", "client_steps_total", "Steps that clients of this task started.",
	       (double)s->context.master->steps);
	metric(b, "counter", "client_steps_failed_total", "Steps that ended with an error.",
	       (double)s->context.master->failed_steps);
	metric(b, "gauge", "running_steps", "Partitions of steps that run now.", w.running);
	metric(b, "gauge", "sessions", "Sessions of clients.", master_sessions(s->context.master));
	metric(b, "gauge", "worker_sessions", "Sessions of masters.", w.sessions);
	metric(b, "gauge", "graphs", "Registered graphs.", w.graphs);
	metric(b, "gauge", "resources", "Variables, queues and the like.", sums.count);
	metric(b, "gauge", "resource_bytes", "Memory that they hold.", (double)sums.bytes);
	if (sums.step >= 0)
		metric(b, "gauge", "global_step", "The variable global_step.", (double)sums.step);
	metric(b, "gauge", "uptime_seconds", "Since the task started.",
	       (double)(mu_clock_ms() - s->started_ms) / 1000);
	mu_buf_printf(b, "# TYPE muster_info gauge\nmuster_info{task=\"%s\",kernels=\"%s\"} 1\n",
		      s->rt->task_prefix, s->device.chosen);
}

static void finish(struct task_server *s, struct mu_http_answer *out)
{
	if (!s->finish) {
		out->status = 409;
		mu_buf_puts(&out->body, "this server ends with the program around it\n");
		return;
	}
	out->status = 202;
	mu_buf_puts(&out->body, "finishing\n");
	s->finish(s->finish_arg);
}

static bool is_authorized(const struct task_server *s, const struct mu_http_request *rq)
{
	static const char scheme[] = "Bearer ";
	const char *given = rq->authorization;

	if (rq->loopback)
		return true;
	return given && s->token_digest[0] && strncasecmp(given, scheme, strlen(scheme)) == 0 &&
	       mu_token_matches(mu_span_of(given + strlen(scheme)), s->token_digest);
}

static void refuse_unauthorized(const struct task_server *s, const char *path,
				struct mu_http_answer *out)
{
	out->status = s->token_digest[0] ? 401 : 403;
	if (s->token_digest[0])
		mu_buf_printf(&out->body,
			      "POST %s needs the bearer token of the job, or a caller on the "
			      "loopback of this task\n",
			      path);
	else
		mu_buf_printf(&out->body,
			      "this task has no token (MUSTER_TOKEN_SHA256), so it accepts POST %s "
			      "only from its loopback\n",
			      path);
}

void server_status_handle(void *server, const struct mu_http_request *rq,
			  struct mu_http_answer *out)
{
	struct task_server *s = server;
	const char *path = rq->path, *method = rq->method;
	bool tells = !strcmp(path, "/cluster"), post = tells || !strcmp(path, "/finish");

	if (strcmp(method, post ? "POST" : "GET") && !(!post && !strcmp(method, "HEAD"))) {
		out->status = 405;
		mu_buf_printf(&out->body, "%s wants %s\n", path, post ? "POST" : "GET");
		return;
	}
	if (post && !is_authorized(s, rq)) {
		refuse_unauthorized(s, path, out);
		return;
	}
	out->status = 200;
	if (tells) {
		server_cluster_told(s, rq->body, out);
	} else if (post) {
		finish(s, out);
	} else if (!strcmp(path, "/healthz")) {
		mu_buf_puts(&out->body, "ok\n");
	} else if (!strcmp(path, "/readyz")) {
		out->status = s->ready ? 200 : 503;
		mu_buf_puts(&out->body, s->ready ? "ok\n" : "not serving\n");
	} else if (!strcmp(path, "/status")) {
		out->type = "application/json";
		status(s, &out->body);
	} else if (!strcmp(path, "/metrics")) {
		out->type = "text/plain; version=0.0.4";
		metrics(s, &out->body);
	} else {
		out->status = 404;
		mu_buf_puts(&out->body,
			    "there are /healthz, /readyz, /status, /metrics, POST /cluster and "
			    "POST /finish\n");
	}
}
