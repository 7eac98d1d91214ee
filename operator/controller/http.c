/* SPDX-License-Identifier: Apache-2.0 */
/* Probes and metrics:
 *
 *	/healthz, /livez  200 as long as the process answers
 *	/readyz           200 once the watches that reconciles need have delivered their first lists
 *	/metrics          Prometheus' text form */
#include "operator/controller/controller.h"

#include "lib/net/http_server.h"

static void metrics(struct controller *c, struct mu_buf *out)
{
	static const char reconcile_time[] = "controller_runtime_reconcile_time_seconds",
			  running[] = "muster_job_to_running_seconds",
			  duration[] = "muster_job_duration_seconds";

	store_metrics(&c->store, out);
	workqueue_metrics(&c->queue, out);
	kube_client_metrics(c->kube, out);
	mu_histogram_write_type(reconcile_time, out);
	mu_histogram_write(&c->reconcile_seconds, reconcile_time, "controller=\"job\"", out);
	mu_histogram_write_type(running, out);
	mu_histogram_write(&c->to_running, running, "controller=\"job\"", out);
	mu_histogram_write_type(duration, out);
	mu_histogram_write(&c->succeeded_in, duration, "phase=\"Succeeded\"", out);
	mu_histogram_write(&c->failed_in, duration, "phase=\"Failed\"", out);
	mu_buf_printf(out,
		      "# TYPE controller_runtime_reconcile_total counter\n"
		      "controller_runtime_reconcile_total{controller=\"job\"} %u\n"
		      "# TYPE controller_runtime_reconcile_errors_total counter\n"
		      "controller_runtime_reconcile_errors_total{controller=\"job\"} %u\n"
		      "# TYPE leader_election_master_status gauge\n"
		      "leader_election_master_status{name=\"muster-operator\"} %d\n",
		      atomic_load(&c->reconciles), atomic_load(&c->reconcile_errors),
		      leader_may_write(c) ? 1 : 0);
}

static void answer(void *controller, const struct mu_http_request *rq, struct mu_http_answer *out)
{
	struct controller *c = controller;
	const char *path = rq->path;

	out->status = 200;
	out->type = "text/plain; version=0.0.4; charset=utf-8";
	if (strcmp(path, "/healthz") == 0 || strcmp(path, "/livez") == 0) {
		mu_buf_puts(&out->body, "ok\n");
	} else if (strcmp(path, "/readyz") == 0) {
		bool ready = atomic_load(&c->synced);
		out->status = ready ? 200 : 503;
		mu_buf_puts(&out->body, ready ? "ok\n" : "the first lists are not complete\n");
	} else if (strcmp(path, "/metrics") == 0) {
		metrics(c, &out->body);
	} else {
		out->status = 404;
		mu_buf_puts(&out->body, "there are /healthz, /livez, /readyz and /metrics\n");
	}
}

int probe_server_start(struct mu_http_server **out, struct controller *c, int port,
		       struct mu_err *err)
{
	int bound_port;

	if (mu_http_start("::", port, answer, c, out, &bound_port, NULL) == 0)
		return 0;
	/* a machine without IPv6; if the port is in use, this call reports it */
	return mu_http_start("0.0.0.0", port, answer, c, out, &bound_port, err);
}
