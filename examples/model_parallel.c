/* SPDX-License-Identifier: Apache-2.0 */
/* Model parallelism: a network too large for one machine, a layer on each of two tasks.
 *
 * Each layer's variables, its computation and its updates are on one task; only what one layer says
 * to the next crosses the network, forward and back.
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
	struct mu_var *first = wavy(b, "first", FEATURES, HIDDEN, 0.5, 1);
	struct mu_out hidden = mu_tanh(b, mu_matmul(b, n.inputs, mu_read(first)));
	mu_pop_device(b);

	mu_push_device(b, "/job:layer/task:1");
	struct mu_var *second = wavy(b, "second", HIDDEN, 1, 0.5, 2);
	struct mu_out outputs = mu_reshape(b, mu_matmul(b, hidden, mu_read(second)),
					   mu_const_ints(b, (int32_t[]){-1}, 1));
	struct mu_out off = mu_sub(b, outputs, mu_sum(b, n.inputs, (int32_t[]){1}, 1));
	n.loss = mu_mean(b, mu_square(b, off), NULL, 0);
	mu_pop_device(b);
	/* Gradients are computed where what they are of was, updates where the variable is. */
	n.train = mu_minimize(b, &adagrad, n.loss, NULL);
	return n;
}

static int learn(const char *target, struct mu_err *err)
{
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	struct net n = build(b);
	struct lesson lesson = {.x = n.inputs,
				.loss = n.loss,
				.train = n.train,
				.rows = BATCH,
				.columns = FEATURES,
				.steps = STEPS,
				.tell = 50};

	return learn_from_waves(target, b, &lesson, err);
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
		rc = learn(mu_server_target(tasks[0]), &err);
	if (rc)
		fprintf(stderr, "model_parallel: %s\n", err.msg);
	for (int i = 0; i < TASKS; i++)
		mu_server_stop(tasks[i]);
	return rc ? 1 : 0;
}
