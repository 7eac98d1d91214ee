/* SPDX-License-Identifier: Apache-2.0 */
/* The time of a step of a C program that contains its worker, and so its master.
 *
 * Usage: client_steps PS-ADDRESS WORKER-ADDRESS FOLDER [SECONDS]. The ps of a cluster of these two
 * tasks must be running; FOLDER has x.idx and y.idx. Prints one JSON object: the median time in
 * microseconds of each kind of step.
 *
 * 	null       fetches a scalar from the ps, adds 1 here, adds the sum on the ps
 * 	nothing    a NoOp here: client, master and executor only
 * 	session    one update of a model of one number here, by mu_session_run
 * 	monitored  the same by mu_monitored_train with the hooks of the built-in trainer
 * 	trainer    the built-in trainer without a ps: 784-128-10, batches of 32 random rows
 */
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "muster/train.h"
#include "task/server.h"

#define WORKER "/job:worker/task:0"
#define PS     "/job:ps/task:0"

enum { WARMUP_STEPS = 200, MAX_TIMES = 1 << 20, LAST_STEP = 1 << 30, MAX_RATES = 64 };

static struct mu_err err;
static struct task_server *server;
static double seconds = 2;

static void must(int rc)
{
	if (!rc)
		return;
	fprintf(stderr, "client_steps: %s\n", err.msg);
	exit(1);
}

static struct mu_session_options options(void)
{
	return (struct mu_session_options){.transport = {.call = task_server_call, .ctx = server}};
}

/* ---- timing ---- */

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void tell(const char *name, int (*step)(void *arg), void *arg, const char *end)
{
	double *took = calloc(MAX_TIMES, sizeof(*took)), stop, last;
	int n = 0;

	for (int i = 0; i < WARMUP_STEPS; i++)
		must(step(arg));
	last = mu_clock();
	stop = last + seconds;
	while (last < stop && n < MAX_TIMES) {
		double start = last;

		must(step(arg));
		last = mu_clock();
		took[n++] = last - start;
	}
	qsort(took, (size_t)n, sizeof(*took), by_size);
	printf("\"%s\": %.2f%s", name, 1e6 * took[n / 2], end);
	fflush(stdout);
	free(took);
}

/* ---- steps ---- */

struct target {
	struct mu_session *session;
	struct mu_out op;
};

static int run_target(void *arg)
{
	struct target *t = arg;

	return mu_session_do(t->session, t->op, &err);
}

static void null_step(void)
{
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	struct mu_session_options o = options();
	struct mu_session *s;
	struct mu_var *v;
	struct mu_out sum, op;

	mu_push_device(b, PS);
	v = mu_variable(b, "bench_null", MU_FLOAT, MU_SCALAR, MU_ZEROS, true);
	mu_pop_device(b);
	mu_push_device(b, WORKER);
	sum = mu_add(b, mu_read(v), mu_const_float(b, 1));
	mu_pop_device(b);
	mu_push_device(b, PS);
	op = mu_op(b, "AssignAdd", MU_IN(v->ref, sum));
	mu_pop_device(b);
	must(mu_session_open(&s, "here", b, &o, &err));
	must(mu_session_do(s, mu_init_all(b), &err));
	tell("null", run_target, &(struct target){s, op}, ", ");
	mu_session_close(s);
}

static void nothing(void)
{
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	struct mu_session_options o = options();
	struct mu_session *s;
	struct mu_out op;

	mu_push_device(b, WORKER);
	op = mu_op(b, "NoOp");
	mu_pop_device(b);
	must(mu_session_open(&s, "here", b, &o, &err));
	tell("nothing", run_target, &(struct target){s, op}, ", ");
	mu_session_close(s);
}

struct model {
	struct mu_monitored *monitored;
	struct mu_session *session;
	struct mu_feed feed;
	struct mu_out fetches[2]; /* the global step after the update, the loss */
};

static int run_session(void *arg)
{
	struct model *m = arg;
	struct mu_tensor got[2];
	int rc = mu_session_run(
	    m->session,
	    &(struct mu_run){
		.feeds = &m->feed, .n_feeds = 1, .fetches = m->fetches, .n_fetches = 2},
	    got, &err);

	for (int i = 0; i < 2 && !rc; i++)
		mu_tensor_unref(&got[i]);
	return rc;
}

static int run_monitored(void *arg)
{
	struct model *m = arg;

	return mu_monitored_train(m->monitored, &(struct mu_run){.feeds = &m->feed, .n_feeds = 1},
				  NULL, &err);
}

/* ---- the built-in trainer ---- */

struct rates {
	double rate[MAX_RATES], stop;
	int n;
	volatile int enough;
};

static void collect(void *arg, const struct mu_progress *p)
{
	struct rates *r = arg;

	if (r->n < MAX_RATES)
		r->rate[r->n++] = p->steps_per_second;
	r->enough = mu_clock() > r->stop;
}

/* Ignores the first rate (warm-up) and the last one (incomplete interval). */
static void trainer(const char *folder)
{
	struct rates r = {.stop = mu_clock() + 1 + seconds};
	MU_AUTO_FREE char *images = mu_xasprintf("%s/x.idx", folder);
	MU_AUTO_FREE char *labels = mu_xasprintf("%s/y.idx", folder);
	struct mu_train_options o = {
	    .model = "mlp",
	    .n_hidden = 1,
	    .hidden = {128},
	    .train_images = images,
	    .train_labels = labels,
	    .scale = 255,
	    .batch = 32,
	    .seed = 1,
	    .steps = LAST_STEP,
	    .target = "here",
	    .job = "worker",
	    .chief = true,
	    .transport = options().transport,
	    .progress = collect,
	    .progress_arg = &r,
	    .stop = &r.enough,
	};
	struct mu_train_result result;

	must(mu_optimizer_named("sgd", 0.01, &o.optimizer, &err));
	must(mu_train(&o, &result, &err));
	if (r.n < 3) {
		fprintf(stderr, "client_steps: the trainer told too little in %g s\n", seconds);
		exit(1);
	}
	qsort(r.rate + 1, (size_t)r.n - 2, sizeof(*r.rate), by_size);
	printf("\"trainer\": %.2f}\n", 1e6 / r.rate[1 + (r.n - 2) / 2]);
}

/* ---- a model of one number ---- */

static void keep_quiet(void *arg, const struct mu_progress *p)
{
}

static void model(void)
{
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	MU_AUTO_TENSOR one = {0};
	struct mu_optimizer sgd;
	struct model m = {0};
	struct mu_hook *hooks[3];
	struct mu_out x, loss;
	struct mu_var *w;

	mu_push_device(b, WORKER);
	mu_global_step(b);
	x = mu_placeholder(b, "x", MU_FLOAT, MU_SCALAR);
	w = mu_variable(b, "bench_w", MU_FLOAT, MU_SCALAR, MU_ZEROS, true);
	loss = mu_square(b, mu_sub(b, mu_read(w), x));
	must(mu_optimizer_named("sgd", 1e-3, &sgd, &err));
	m.fetches[0] = mu_minimize(b, &sgd, loss, mu_global_step(b));
	m.fetches[1] = loss;
	mu_pop_device(b);
	must(mu_tensor_scalar(&one, MU_FLOAT, &(float){1}, &err));
	m.feed = (struct mu_feed){x, &one};
	hooks[0] = mu_nan_hook(loss);
	hooks[1] = mu_progress_hook(loss, 0.5, LAST_STEP, 1, keep_quiet, NULL);
	hooks[2] = mu_stop_at_step_hook(LAST_STEP);
	must(mu_monitored_open(&m.monitored, b,
			       &(struct mu_monitored_options){.target = "here",
							      .chief = true,
							      .train = m.fetches[0],
							      .hooks = hooks,
							      .n_hooks = 3,
							      .session = options()},
			       &err));
	m.session = mu_monitored_session(m.monitored);
	tell("session", run_session, &m, ", ");
	tell("monitored", run_monitored, &m, ", ");
	must(mu_monitored_close(m.monitored, false, &err));
}

int main(int argc, char **argv)
{
	struct mu_cluster cluster = {0};

	if (argc < 4) {
		fprintf(stderr, "usage: client_steps PS-ADDRESS WORKER-ADDRESS FOLDER [SECONDS]\n");
		return 2;
	}
	seconds = argc > 4 ? atof(argv[4]) : seconds;
	mu_log_set_level(MU_WARN);
	must(mu_cluster_add(&cluster, "ps", 0, argv[1], &err));
	must(mu_cluster_add(&cluster, "worker", 0, argv[2], &err));
	must(task_server_start(
	    &(struct task_server_options){.cluster = &cluster, .job = "worker", .http_port = -1},
	    &server, &err));
	mu_cluster_fini(&cluster);
	putchar('{');
	null_step();
	nothing();
	model();
	trainer(argv[3]);
	task_server_stop(server, 1000);
	return 0;
}
