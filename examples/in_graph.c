/* SPDX-License-Identifier: Apache-2.0 */
/* In-graph replication: one program builds one graph in which each worker has a copy of the model.
 *
 * The parameters are on the ps task.  Each worker computes the gradient on its half of the batch,
 * and one step applies the average of both: synchronous by construction.
 *
 *	in_graph [PS WORKER0,WORKER1]
 */
#include <stdio.h>

#include "examples/waves.h"
#include "muster/grad.h"
#include "muster/server.h"

enum { WORKERS = 2, HALF = 8, FEATURES = 3, STEPS = 101 };

/* The target is y = 2 x0 - x1 + 0.5 x2. */
static struct mu_out loss_of(struct mu_builder *b, struct mu_out x, struct mu_out w)
{
	float true_values[] = {2, -1, 0.5f};
	struct mu_out parts[FEATURES];

	for (int i = 0; i < FEATURES; i++)
		parts[i] = mu_const_float(b, true_values[i]);
	struct mu_out true_weights =
	    mu_op_add(b, &(struct mu_op_args){.op = "Pack", .in = parts, .n_in = FEATURES});
	true_weights = mu_reshape(b, true_weights, mu_const_ints(b, (int32_t[]){FEATURES, 1}, 2));
	struct mu_out error = mu_sub(b, mu_matmul(b, x, w), mu_matmul(b, x, true_weights));

	return mu_mean(b, mu_square(b, error), NULL, 0);
}

struct graph {
	struct mu_out x, loss, train;
};

static struct graph build(struct mu_builder *b)
{
	struct mu_out halves, losses[WORKERS], grads[WORKERS], read;
	struct graph g;

	mu_push_device(b, "/job:ps/task:0");
	struct mu_var *w = wave_variable(b, "w", FEATURES, 1, 0.1, 1);
	read = mu_read(w);
	g.x = mu_placeholder(b, "x", MU_FLOAT, MU_SHAPE(WORKERS * HALF, FEATURES));
	halves = mu_op(b, "Split", MU_IN(mu_const_int(b, MU_INT32, 0), g.x),
		       MU_ATTRS(MU_A_INT("num_split", WORKERS)));
	mu_pop_device(b);
	for (int i = 0; i < WORKERS; i++) {
		char device[64];

		snprintf(device, sizeof(device), "/job:worker/task:%d", i);
		mu_push_device(b, device);
		losses[i] = loss_of(b, mu_port(halves, i), read);
		mu_gradients(b, losses[i], &read, 1, &grads[i]);
		mu_pop_device(b);
	}
	mu_push_device(b, "/job:ps/task:0");
	struct mu_out half = mu_const_float(b, 1.0f / WORKERS);
	struct mu_out average = mu_mul(b, mu_add(b, grads[0], grads[1]), half);
	g.loss = mu_mul(b, mu_add(b, losses[0], losses[1]), half);
	g.train = mu_op(b, "ApplyGradientDescent", MU_IN(w->ref, mu_const_float(b, 0.2f), average));
	mu_pop_device(b);
	return g;
}

static int train(const char *target, struct mu_err *err)
{
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	struct graph g = build(b);
	struct training training = {.x = g.x,
				    .loss = g.loss,
				    .train = g.train,
				    .rows = WORKERS * HALF,
				    .columns = FEATURES,
				    .steps = STEPS,
				    .print_interval = 25};

	return train_on_waves(target, b, &training, err);
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
		rc = train(mu_server_target(workers[0]), &err);
	if (rc)
		fprintf(stderr, "in_graph: %s\n", err.msg);
	mu_server_stop(workers[0]);
	mu_server_stop(workers[1]);
	mu_server_stop(ps);
	return rc ? 1 : 0;
}
