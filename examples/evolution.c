/* SPDX-License-Identifier: Apache-2.0 */
/* Evolution strategies: ten perturbed networks are evaluated in parallel on two workers, and their
 * losses update the weights on the ps task.
 *
 * A trial is the shared weights plus noise. The ps task sums the noise of all trials, weighted by
 * their losses. This sum is an estimate of the gradient; nothing is differentiated.
 *
 *	evolution [PS WORKER0,WORKER1]
 */
#include <stdio.h>

#include "examples/waves.h"
#include "muster/server.h"

enum {
	WORKERS = 2,
	TRIALS = 10,
	TRIALS_PER_WORKER = TRIALS / WORKERS,
	WEIGHTS = 3,
	ROWS = 16,
	STEPS = 301
};
static const double NOISE = 0.1, RATE = 0.05;

struct graph {
	struct mu_out x, noise, loss, update;
};

/* The losses, [1, TRIALS_PER_WORKER], of the networks whose weights are the columns of `trials`.
 * The target is x0 + x1 + x2. */
static struct mu_out losses_of(struct mu_builder *b, struct mu_out x, struct mu_out trials)
{
	struct mu_out target = mu_op(b, "Sum", MU_IN(x, mu_const_ints(b, (int32_t[]){1}, 1)),
				     MU_ATTRS(MU_A_BOOL("keep_dims", true)));
	struct mu_out error = mu_sub(b, mu_matmul(b, x, trials), target);

	return mu_op(b, "Mean", MU_IN(mu_square(b, error), mu_const_ints(b, (int32_t[]){0}, 1)),
		     MU_ATTRS(MU_A_BOOL("keep_dims", true)));
}

static struct graph build(struct mu_builder *b)
{
	struct mu_out parts, losses[WORKERS + 1];
	struct graph g;

	mu_push_device(b, "/job:ps/task:0");
	struct mu_var *w = wave_variable(b, "w", WEIGHTS, 1, 0.1, 1);
	g.x = mu_placeholder(b, "x", MU_FLOAT, MU_SHAPE(ROWS, WEIGHTS));
	g.noise = mu_placeholder(b, "noise", MU_FLOAT, MU_SHAPE(WEIGHTS, TRIALS));
	struct mu_out sigma = mu_const_float(b, (float)NOISE);
	struct mu_out trials = mu_add(b, mu_read(w), mu_mul(b, g.noise, sigma));
	parts = mu_op(b, "Split", MU_IN(mu_const_int(b, MU_INT32, 1), trials),
		      MU_ATTRS(MU_A_INT("num_split", WORKERS)));
	mu_pop_device(b);
	for (int i = 0; i < WORKERS; i++) {
		char device[64];

		snprintf(device, sizeof(device), "/job:worker/task:%d", i);
		mu_push_device(b, device);
		losses[i] = losses_of(b, g.x, mu_port(parts, i));
		mu_pop_device(b);
	}
	mu_push_device(b, "/job:ps/task:0");
	losses[WORKERS] = mu_const_int(b, MU_INT32, 1);
	struct mu_out all_losses =
	    mu_op_add(b, &(struct mu_op_args){.op = "ConcatV2", .in = losses, .n_in = WORKERS + 1});
	g.loss = mu_mean(b, all_losses, NULL, 0);
	struct mu_out centred_losses = mu_sub(b, all_losses, g.loss);
	struct mu_out gradient = mu_matmul_t(b, g.noise, false, centred_losses, true);
	g.update = mu_op(
	    b, "AssignSub",
	    MU_IN(w->ref, mu_mul(b, gradient, mu_const_float(b, (float)(RATE / TRIALS / NOISE)))));
	mu_pop_device(b);
	return g;
}

static int evolve(const char *target, struct mu_err *err)
{
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	MU_AUTO(mu_session_close) struct mu_session *s = NULL;
	struct graph g = build(b);
	int rc = mu_session_open(&s, target, b, NULL, err);

	if (!rc)
		rc = mu_session_do(s, mu_init_all(b), err);
	for (int step = 0; step < STEPS && !rc; step++) {
		MU_AUTO_TENSOR x = {0};
		MU_AUTO_TENSOR noise = {0};
		MU_AUTO_TENSOR loss = {0};
		struct mu_feed feeds[] = {{g.x, &x}, {g.noise, &noise}};

		rc = waves(&x, ROWS, WEIGHTS, 1, step, err);
		if (!rc)
			rc = waves(&noise, WEIGHTS, TRIALS, 1.4142135, 7 * step, err);
		if (!rc)
			rc = mu_session_run(s,
					    &(struct mu_run){.feeds = feeds,
							     .n_feeds = 2,
							     .fetches = &g.loss,
							     .n_fetches = 1,
							     .targets = &g.update,
							     .n_targets = 1},
					    &loss, err);
		if (!rc && step % 50 == 0)
			printf("step %d: loss %.6f\n", step, (double)*MU_DATA(float, &loss));
	}
	return rc;
}

int main(int argc, char **argv)
{
	MU_AUTO_CLUSTER cluster = {0};
	struct mu_server *ps = NULL, *workers[WORKERS] = {NULL};
	struct mu_err err;
	int rc = mu_cluster_add_hosts(&cluster, "ps", argc > 1 ? argv[1] : "localhost:2222", &err);

	if (!rc)
		rc = mu_cluster_add_hosts(
		    &cluster, "worker", argc > 2 ? argv[2] : "localhost:2223,localhost:2224", &err);
	if (!rc)
		rc = mu_server_start(&ps, &cluster, "ps", 0, &err);
	for (int i = 0; i < WORKERS && !rc; i++)
		rc = mu_server_start(&workers[i], &cluster, "worker", i, &err);
	if (!rc)
		rc = evolve(mu_server_target(ps), &err);
	if (rc)
		fprintf(stderr, "evolution: %s\n", err.msg);
	mu_server_stop(workers[0]);
	mu_server_stop(workers[1]);
	mu_server_stop(ps);
	return rc ? 1 : 0;
}
