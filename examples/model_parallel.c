/* SPDX-License-Identifier: Apache-2.0 */
/* Model parallelism: a network too large for one machine, with one layer on each of two tasks.
 *
 * The variables of a layer, its computation and its updates are on one task. Only activations and
 * their gradients cross the network.
 *
 *	model_parallel [TASK0,TASK1]
 */
#include <stdio.h>

#include "examples/waves.h"
#include "muster/grad.h"
#include "muster/server.h"

enum { TASKS = 2, BATCH = 16, FEATURES = 4, HIDDEN = 8, STEPS = 201 };

struct net {
	struct mu_out inputs, loss, train;
};

static struct net build(struct mu_builder *b)
{
	struct mu_optimizer adagrad = {.kind = MU_ADAGRAD, .rate = 0.1};
	struct net n;

	mu_push_device(b, "/job:layer/task:0");
	n.inputs = mu_placeholder(b, "inputs", MU_FLOAT, MU_SHAPE(-1, FEATURES));
	struct mu_var *first = wave_variable(b, "first", FEATURES, HIDDEN, 0.5, 1);
	struct mu_out hidden = mu_tanh(b, mu_matmul(b, n.inputs, mu_read(first)));
	mu_pop_device(b);

	mu_push_device(b, "/job:layer/task:1");
	struct mu_var *second = wave_variable(b, "second", HIDDEN, 1, 0.5, 2);
	struct mu_out outputs = mu_reshape(b, mu_matmul(b, hidden, mu_read(second)),
					   mu_const_ints(b, (int32_t[]){-1}, 1));
	struct mu_out error = mu_sub(b, outputs, mu_sum(b, n.inputs, (int32_t[]){1}, 1));
	n.loss = mu_mean(b, mu_square(b, error), NULL, 0);
	mu_pop_device(b);
	/* A gradient is computed on the device of the forward op, an update on that of the
	 * variable. */
	n.train = mu_minimize(b, &adagrad, n.loss, NULL);
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
	struct mu_server *tasks[TASKS] = {NULL};
	struct mu_err err;
	int rc = mu_cluster_add_hosts(&cluster, "layer",
				      argc > 1 ? argv[1] : "localhost:2222,localhost:2223", &err);

	for (int i = 0; i < TASKS && !rc; i++)
		rc = mu_server_start(&tasks[i], &cluster, "layer", i, &err);
	if (!rc)
		rc = train(mu_server_target(tasks[0]), &err);
	if (rc)
		fprintf(stderr, "model_parallel: %s\n", err.msg);
	for (int i = 0; i < TASKS; i++)
		mu_server_stop(tasks[i]);
	return rc ? 1 : 0;
}
