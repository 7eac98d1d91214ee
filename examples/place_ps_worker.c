/* SPDX-License-Identifier: Apache-2.0 */
/* Two layers whose parameters are on two parameter servers, while a worker computes.
 *
 * A device scope defines the placement. The runtime sends tensors between tasks automatically. This
 * process starts all tasks, so that the example runs without other programs:
 *
 *	place_ps_worker [PS0,PS1 WORKER0]
 */
#include <stdio.h>

#include "examples/waves.h"
#include "muster/grad.h"
#include "muster/server.h"

enum { BATCH = 16, FEATURES = 4, HIDDEN = 8, STEPS = 201 };

struct net {
	struct mu_out inputs, targets, loss, train;
};

static struct net build(struct mu_builder *b)
{
	struct mu_optimizer sgd = {.kind = MU_SGD, .rate = 0.1};
	struct net n;

	mu_push_device(b, "/job:ps/task:0");
	struct mu_var *weights_1 = wave_variable(b, "weights_1", FEATURES, HIDDEN, 0.5, 1);
	struct mu_var *biases_1 =
	    mu_variable(b, "biases_1", MU_FLOAT, MU_SHAPE(HIDDEN), MU_ZEROS, true);
	mu_pop_device(b);
	mu_push_device(b, "/job:ps/task:1");
	struct mu_var *weights_2 = wave_variable(b, "weights_2", HIDDEN, 1, 0.5, 2);
	struct mu_var *biases_2 = mu_variable(b, "biases_2", MU_FLOAT, MU_SHAPE(1), MU_ZEROS, true);
	mu_pop_device(b);

	mu_push_device(b, "/job:worker/task:0");
	n.inputs = mu_placeholder(b, "inputs", MU_FLOAT, MU_SHAPE(-1, FEATURES));
	n.targets = mu_sum(b, n.inputs, (int32_t[]){1}, 1);
	struct mu_out hidden =
	    mu_relu(b, mu_add(b, mu_matmul(b, n.inputs, mu_read(weights_1)), mu_read(biases_1)));
	struct mu_out outputs =
	    mu_add(b, mu_matmul(b, hidden, mu_read(weights_2)), mu_read(biases_2));
	struct mu_out error =
	    mu_sub(b, mu_reshape(b, outputs, mu_const_ints(b, (int32_t[]){-1}, 1)), n.targets);
	n.loss = mu_mean(b, mu_square(b, error), NULL, 0);
	n.train = mu_minimize(b, &sgd, n.loss, NULL);
	mu_pop_device(b);
	return n;
}

static int train(const char *target, struct mu_err *err)
{
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	struct net n = build(b);
	struct training training = {.x = n.inputs,
				    .loss = n.loss,
				    .train = n.train,
				    .rows = BATCH,
				    .columns = FEATURES,
				    .steps = STEPS,
				    .print_interval = 50};

	return train_on_waves(target, b, &training, err);
}

int main(int argc, char **argv)
{
	MU_AUTO_CLUSTER cluster = {0};
	struct mu_server *ps[2] = {NULL}, *worker = NULL;
	struct mu_err err;
	int rc = mu_cluster_add_hosts(&cluster, "ps",
				      argc > 1 ? argv[1] : "localhost:2222,localhost:2223", &err);

	if (!rc)
		rc = mu_cluster_add_hosts(&cluster, "worker", argc > 2 ? argv[2] : "localhost:2224",
					  &err);
	for (int i = 0; i < 2 && !rc; i++)
		rc = mu_server_start(&ps[i], &cluster, "ps", i, &err);
	if (!rc)
		rc = mu_server_start(&worker, &cluster, "worker", 0, &err);
	if (!rc)
		rc = train(mu_server_target(worker), &err);
	if (rc)
		fprintf(stderr, "place_ps_worker: %s\n", err.msg);
	mu_server_stop(worker);
	mu_server_stop(ps[0]);
	mu_server_stop(ps[1]);
	return rc ? 1 : 0;
}
