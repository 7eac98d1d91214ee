/* SPDX-License-Identifier: Apache-2.0 */
/* The executor's time per op, and the time before the first step of a large graph. Usage:
 * executor_bench [ops].
 *
 * Each line is the best of several runs, in nanoseconds per op. The chains depend on a fed value,
 * so that they cannot be constant-folded.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "task/graph/graph_passes.h"
#include "task/graph/optimize.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/runtime/runtime.h"

#define CPU "/job:w/replica:0/task:0/device:CPU:0"

static struct runtime *rt;
static const struct graph_device device = {CPU, 1, "CPU"};
static const struct graph_devices devices = {&device, 1, CPU, true, false};

static void die(const char *what, const struct mu_err *err)
{
	fprintf(stderr, "executor_bench: %s: %s\n", what, err->msg);
	exit(1);
}

/* ---- graphs ---- */

static struct mu_node *add(struct mu_graph *g, const char *op, unsigned i)
{
	struct mu_err err;
	struct mu_node *n;
	char name[32];

	snprintf(name, sizeof name, "%s%u", op, i);
	if (mu_graph_add(g, name, op, &n, &err))
		die("add", &err);
	return n;
}

static void set_type(struct mu_graph *g, struct mu_node *n, const char *name)
{
	struct mu_attr t = {.kind = MU_ATTR_TYPE, .type = MU_FLOAT};

	mu_node_set_attr(g, n, name, &t);
}

static struct mu_node *add_mul(struct mu_graph *g, unsigned i, struct mu_node *a, struct mu_node *b)
{
	struct mu_node *n = add(g, "Mul", i);
	struct mu_input in[2] = {{a, 0}, {b, 0}};

	set_type(g, n, "T");
	mu_node_set_inputs(g, n, in, 2, NULL, 0);
	return n;
}

enum shape { NO_OPS, MULS, WIDE };

/* A step fetches or targets the last node. */
static struct mu_graph *build(enum shape shape, unsigned ops)
{
	struct mu_graph *g = mu_graph_new();
	struct mu_node *x, *last, *c;

	if (shape == NO_OPS) {
		last = add(g, "NoOp", 0);
		for (unsigned i = 1; i < ops; i++) {
			struct mu_node *n = add(g, "NoOp", i);
			mu_node_set_inputs(g, n, NULL, 0, &(struct mu_input){last, -1}, 1);
			last = n;
		}
		return g;
	}
	x = add(g, "Placeholder", 0);
	set_type(g, x, "dtype");
	float one = 1.0000001f;
	struct mu_tensor t;
	mu_tensor_scalar(&t, MU_FLOAT, &one, NULL);
	struct mu_attr value = {.kind = MU_ATTR_TENSOR, .tensor = &t};
	c = add(g, "Const", 0);
	set_type(g, c, "dtype");
	mu_node_set_attr(g, c, "value", &value);
	mu_tensor_unref(&t);
	last = x;
	struct mu_input *all = calloc(ops, sizeof *all);
	for (unsigned i = 0; i < ops; i++) {
		struct mu_node *n = add_mul(g, i, shape == MULS ? last : x, c);
		all[i].node = last = n;
	}
	if (shape == WIDE) {
		struct mu_node *group = add(g, "NoOp", 0);
		mu_node_set_inputs(g, group, NULL, 0, all, ops);
	}
	free(all);
	return g;
}

/* ---- steps ---- */

struct wait {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool over;
};

static void on_done(void *arg, const struct mu_err *err)
{
	struct wait *w = arg;

	if (err)
		die("step", err);
	pthread_mutex_lock(&w->lock);
	w->over = true;
	pthread_cond_signal(&w->cond);
	pthread_mutex_unlock(&w->lock);
}

static void on_tensor(void *arg, const struct mu_err *err, struct mu_tensor *t, bool dead)
{
	if (!err)
		mu_tensor_unref(t);
}

static void run(struct executor *e, const char *feed, const char *fetch)
{
	static int64_t id;
	struct wait w = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
	struct rendezvous *r = rendezvous_table_get(rt->steps, ++id);
	struct mu_tensor t;
	struct mu_err err;
	float one = 1;

	if (feed) {
		mu_tensor_scalar(&t, MU_FLOAT, &one, NULL);
		if (rendezvous_send(r, feed, t, false, &err))
			die("feed", &err);
	}
	if (fetch)
		rendezvous_recv_local(r, fetch, on_tensor, NULL);
	struct step *s = executor_start(e, r, NULL, NULL, on_done, &w);
	pthread_mutex_lock(&w.lock);
	while (!w.over)
		pthread_cond_wait(&w.cond, &w.lock);
	pthread_mutex_unlock(&w.lock);
	step_unref(s);
	rendezvous_unref(r);
	rendezvous_table_drop(rt->steps, id, NULL);
}

static double lap(double *since)
{
	double t = mu_clock(), took = t - *since;

	*since = t;
	return took * 1e3;
}

static void bench(const char *name, enum shape shape, unsigned ops, bool optimize)
{
	struct mu_graph *made = build(shape, ops), *session = mu_graph_new(), *pruned;
	const char *last = made->nodes[made->n_nodes - 1]->name, *in = "Placeholder0:0";
	const char **feed_keys, **fetch_keys;
	bool fetches = shape == MULS;
	char tensor[64];
	struct graph_signature sig = {.feeds = &in, .n_feeds = shape != NO_OPS};
	struct partition *partitions;
	struct executor *e;
	struct mu_err err;
	MU_AUTO_BUF bytes = {0};
	double start, at, best = 1e9;
	unsigned n_partitions;

	snprintf(tensor, sizeof tensor, "%s:0", last);
	const char *fetch = tensor;
	if (fetches)
		sig.fetches = &fetch, sig.n_fetches = 1;
	else
		sig.targets = &last, sig.n_targets = 1;
	mu_graph_write(made, &bytes);
	start = at = mu_clock();
	if (mu_graph_parse(session, mu_buf_span(&bytes), &err))
		die("parse", &err);
	printf("%-10s parse %.0f", name, lap(&at));
	if (graph_prune(session, &sig, &devices, &pruned, &feed_keys, &fetch_keys, &err))
		die("prune", &err);
	printf(" prune %.0f", lap(&at));
	if (graph_place(pruned, &devices, NULL, &err))
		die("place", &err);
	printf(" place %.0f", lap(&at));
	if (graph_partition(pruned, &devices, &partitions, &n_partitions, &err))
		die("partition", &err);
	printf(" partition %.0f", lap(&at));
	struct mu_graph *partition = partitions[0].graph;
	partitions[0].graph = NULL;
	graph_partitions_free(partitions, n_partitions);
	if (optimize) {
		graph_optimize(partition, rt);
		printf(" optimize to %u nodes %.0f", partition->n_nodes, lap(&at));
	}
	if (executor_new(rt, partition, "", &e, &err))
		die("compile", &err);
	printf(" compile %.0f", lap(&at));
	const char *feed_key = sig.n_feeds ? feed_keys[0] : NULL;
	const char *fetch_key = fetches ? fetch_keys[0] : NULL;
	run(e, feed_key, fetch_key);
	printf(" step %.0f, first run %.0f ms; ", lap(&at), (mu_clock() - start) * 1e3);
	for (int i = 0; i < 15; i++) {
		at = mu_clock();
		run(e, feed_key, fetch_key);
		double took = mu_clock() - at;
		best = took < best ? took : best;
	}
	printf("then %.1f ns/op\n", best * 1e9 / ops);
	executor_unref(e);
	mu_graph_free(pruned);
	mu_graph_free(session);
	mu_graph_free(made);
}

int main(int argc, char **argv)
{
	unsigned ops = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 100000;
	struct mu_err err;

	if (runtime_new("w", 0, 0, &task_kernels, NULL, &rt, &err))
		die("runtime", &err);
	for (int optimize = 0; optimize < 2; optimize++) {
		bench("noop chain", NO_OPS, ops, optimize);
		bench("mul chain", MULS, ops, optimize);
		bench("mul wide", WIDE, ops, optimize);
	}
	runtime_free(rt);
	return 0;
}
