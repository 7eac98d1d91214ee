/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP endpoints of the task:
 *
 *	GET  /healthz  200 while the process runs
 *	GET  /readyz   200 while the server accepts calls, 503 while it starts or stops
 *	GET  /status   one JSON object
 *	GET  /metrics  metrics in the Prometheus text format
 *	POST /cluster  sets the members of the cluster (server_cluster.c)
 *	POST /finish   asks the program to drain and exit with code 0
 *
 * The POST requests need the bearer token of the job, or must come from the loopback interface. */
#include <cjson/cJSON.h>
#include <math.h>
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
	int64_t step; /* value of the variable global_step; -1: this task has none */
};

static void sum_resource(void *arg, struct resource *r)
{
	struct resource_sums *sums = arg;
	struct variable *v = (struct variable *)r;

	sums->count++;
	if (r->type->bytes)
		sums->bytes += r->type->bytes(r);
	if (!resource_is_variable(r) || strcmp(r->name, "global_step"))
		return;
	pthread_mutex_lock(&v->lock);
	if (mu_tensor_is_set(&v->value) && !v->value.buf->device && v->value.shape.count == 1 &&
	    (v->value.dtype == MU_INT64 || v->value.dtype == MU_INT32))
		sums->step = mu_tensor_int(&v->value, 0);
	pthread_mutex_unlock(&v->lock);
}

int64_t task_server_global_step(struct task_server *s)
{
	struct resource_sums sums = {.step = -1};

	resources_each(s->rt->resources, sum_resource, &sums);
	return sums.step;
}

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Computes steps per second and CPU use since the last measurement, at most once a second. */
static void measure(struct task_server *s, uint64_t steps, double *rate, double *busy)
{
	int64_t now = mu_clock_ms();

	pthread_mutex_lock(&s->lock);
	if (now - s->rate_ms >= 1000) {
		double elapsed_s = (double)(now - s->rate_ms) / 1000, cpu = cpu_seconds();
		double share = (cpu - s->rate_cpu) / elapsed_s / thread_pool_size(s->rt->pool);

		s->rate = (double)(steps - s->rate_steps) / elapsed_s;
		s->busy = share > 1 ? 1 : share;
		s->rate_ms = now;
		s->rate_steps = steps;
		s->rate_cpu = cpu;
	}
	*rate = s->rate;
	*busy = s->busy;
	pthread_mutex_unlock(&s->lock);
}

static void status_add_devices(struct task_server *s, cJSON *to)
{
	cJSON *devices = cJSON_AddArrayToObject(to, "devices");

	for (unsigned i = 0; i < s->rt->n_cpus; i++) {
		MU_AUTO_FREE char *name = mu_xasprintf("%s/device:CPU:%u", s->rt->task_prefix, i);

		cJSON_AddItemToArray(devices, cJSON_CreateString(name));
	}
	for (unsigned i = 0; i < device_count(s->rt->devices); i++) {
		MU_AUTO_FREE char *name = mu_xasprintf("%s/device:GPU:%u", s->rt->task_prefix, i);

		if (gpu_is_usable(gpu_at(s->rt->devices, i)))
			cJSON_AddItemToArray(devices, cJSON_CreateString(name));
	}
}

static void add_gpus(struct task_server *s, cJSON *to)
{
	unsigned n = device_count(s->rt->devices);
	cJSON *gpus = n ? cJSON_AddArrayToObject(to, "gpus") : NULL;

	for (unsigned i = 0; i < n; i++) {
		cJSON *gpu = cJSON_CreateObject();
		struct gpu_info f;
		char version[32];

		gpu_get_info(gpu_at(s->rt->devices, i), &f);
		cJSON_AddItemToArray(gpus, gpu);
		cJSON_AddStringToObject(gpu, "name", f.name);
		if (*f.broken)
			cJSON_AddStringToObject(gpu, "broken", f.broken);
		snprintf(version, sizeof(version), "%d.%d", f.major, f.minor);
		cJSON_AddStringToObject(gpu, "capability", version);
		snprintf(version, sizeof(version), "%d.%d", f.driver / 1000, f.driver % 1000 / 10);
		cJSON_AddStringToObject(gpu, "driver", version);
		cJSON_AddNumberToObject(gpu, "memoryBytes", (double)f.memory);
		cJSON_AddNumberToObject(gpu, "limitBytes", (double)f.limit);
		cJSON_AddNumberToObject(gpu, "usedBytes", (double)f.used);
		cJSON_AddNumberToObject(gpu, "peakBytes", (double)f.peak);
	}
}

static void status(struct task_server *s, struct mu_buf *b)
{
	struct resource_sums sums = {.step = -1};
	cJSON *json = cJSON_CreateObject();
	struct worker_counts w;
	double rate, busy;

	worker_count(s->context.worker, &w);
	measure(s, w.steps, &rate, &busy);
	resources_each(s->rt->resources, sum_resource, &sums);
	cJSON_AddStringToObject(json, "task", s->rt->task_prefix);
	status_add_devices(s, json);
	add_gpus(s, json);
	cJSON_AddStringToObject(json, "kernels", s->device.chosen);
	cJSON_AddStringToObject(json, "kernelsRequested", s->device.requested);
	cJSON_AddStringToObject(json, "kernelsProbed", s->device.probed);
	cJSON_AddStringToObject(json, "blasCore", s->device.blas);
	if (sums.step >= 0)
		cJSON_AddNumberToObject(json, "step", (double)sums.step);
	if (s->epoch)
		cJSON_AddNumberToObject(json, "epoch", s->epoch);
	cJSON_AddNumberToObject(json, "sessions", master_sessions(s->context.master));
	cJSON_AddNumberToObject(json, "workerSessions", w.sessions);
	cJSON_AddNumberToObject(json, "graphs", w.graphs);
	cJSON_AddNumberToObject(json, "runningSteps", w.running);
	cJSON_AddNumberToObject(json, "clientSteps", (double)s->context.master->steps);
	cJSON_AddNumberToObject(json, "failedSteps", (double)s->context.master->failed_steps);
	cJSON_AddNumberToObject(json, "steps", (double)w.steps);
	cJSON_AddNumberToObject(json, "stepsPerSecond", round(rate * 100) / 100);
	cJSON_AddNumberToObject(json, "busy", round(busy * 1000) / 1000);
	cJSON_AddNumberToObject(json, "resources", sums.count);
	cJSON_AddNumberToObject(json, "resourceBytes", (double)sums.bytes);
	server_status_lists(s, json);
	pthread_mutex_lock(&s->lock);
	if (s->progress)
		cJSON_AddRawToObject(json, "progress", s->progress);
	pthread_mutex_unlock(&s->lock);
	cJSON_AddNumberToObject(json, "uptimeSeconds",
				(double)(mu_clock_ms() - s->started_ms) / 1000);
	mu_json_print(b, json);
	mu_utf8_replace_invalid(b->data); /* a client's names may have any bytes */
	mu_buf_putc(b, '\n');
	cJSON_Delete(json);
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
	resources_each(s->rt->resources, sum_resource, &sums);
	metric(b, "counter", "steps_total", "Partitions of steps started on this task.",
	       (double)w.steps);
	metric(b, "counter", "client_steps_total", "Steps started by clients of this task.",
	       (double)s->context.master->steps);
	metric(b, "counter", "client_steps_failed_total", "Steps that failed.",
	       (double)s->context.master->failed_steps);
	metric(b, "gauge", "running_steps", "Partitions of steps that are running.", w.running);
	metric(b, "gauge", "sessions", "Sessions opened by clients.",
	       master_sessions(s->context.master));
	metric(b, "gauge", "worker_sessions", "Sessions opened by masters.", w.sessions);
	metric(b, "gauge", "graphs", "Registered graphs.", w.graphs);
	metric(b, "gauge", "resources", "Variables, queues, tables and other resources.",
	       sums.count);
	metric(b, "gauge", "resource_bytes", "Memory of the resources, in bytes.",
	       (double)sums.bytes);
	if (sums.step >= 0)
		metric(b, "gauge", "global_step", "Value of the variable global_step.",
		       (double)sums.step);
	metric(b, "gauge", "uptime_seconds", "Seconds since the task started.",
	       (double)(mu_clock_ms() - s->started_ms) / 1000);
	mu_buf_printf(b, "# TYPE muster_info gauge\nmuster_info{task=\"%s\",kernels=\"%s\"} 1\n",
		      s->rt->task_prefix, s->device.chosen);
}

static void status_finish(struct task_server *s, struct mu_http_answer *out)
{
	if (!s->finish) {
		out->status = 409;
		mu_buf_puts(
		    &out->body,
		    "this server runs inside another program and cannot be stopped by request\n");
		return;
	}
	out->status = 202;
	mu_buf_puts(&out->body, "finishing\n");
	s->finish(s->finish_arg);
}

static bool is_authorized(const struct task_server *s, const struct mu_http_request *rq)
{
	static const char scheme[] = "Bearer ";
	const char *authorization = rq->authorization;

	if (rq->loopback)
		return true;
	return authorization && s->token_digest[0] &&
	       strncasecmp(authorization, scheme, strlen(scheme)) == 0 &&
	       mu_token_matches(mu_span_of(authorization + strlen(scheme)), s->token_digest);
}

static void reply_unauthorized(const struct task_server *s, const char *path,
			       struct mu_http_answer *out)
{
	out->status = s->token_digest[0] ? 401 : 403;
	if (s->token_digest[0])
		mu_buf_printf(&out->body,
			      "POST %s needs the bearer token of the job unless it comes from the "
			      "loopback interface\n",
			      path);
	else
		mu_buf_printf(&out->body,
			      "this task has no token (MUSTER_TOKEN_SHA256), so it accepts POST %s "
			      "only from the loopback interface\n",
			      path);
}

void server_http_handle(void *server, const struct mu_http_request *rq, struct mu_http_answer *out)
{
	struct task_server *s = server;
	const char *path = rq->path, *method = rq->method;
	bool is_cluster = !strcmp(path, "/cluster"),
	     is_post = is_cluster || !strcmp(path, "/finish");

	if (strcmp(method, is_post ? "POST" : "GET") && !(!is_post && !strcmp(method, "HEAD"))) {
		out->status = 405;
		mu_buf_printf(&out->body, "%s: the method must be %s\n", path,
			      is_post ? "POST" : "GET");
		return;
	}
	if (is_post && !is_authorized(s, rq)) {
		reply_unauthorized(s, path, out);
		return;
	}
	out->status = 200;
	if (is_cluster) {
		server_cluster_post(s, rq->body, out);
	} else if (is_post) {
		status_finish(s, out);
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
			    "not found; valid paths: /healthz, /readyz, /status, /metrics, "
			    "POST /cluster, POST /finish\n");
	}
}
