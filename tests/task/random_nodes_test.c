/* SPDX-License-Identifier: Apache-2.0 */
/* Runs every op of the op table in the executor with random arguments, many of them invalid.
 *
 *	RANDOM_NODES_ROUNDS   graphs per op (12)
 *	RANDOM_NODES_SEED     seed of the arguments
 *	RANDOM_NODES_OP       this op only; prints each graph before it runs */
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/runtime/runtime.h"
#include "tests/task/random_nodes.h"
#include "tests/test.h"
#include "tests/wait.h"

enum { TENSOR_LIMIT = 16 << 20, GROWTH_KIB = 1 << 20, ENOUGH_MS = 25, TOO_MUCH_CPU_MS = 2000 };
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SLOWER = 10 };
#else
enum { SLOWER = 1 };
#endif

struct wait {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool done;
	struct mu_err err;
};

static struct runtime *rt;
static unsigned invalid, failed, ran;

static void on_done(void *arg, const struct mu_err *err)
{
	struct wait *w = arg;

	pthread_mutex_lock(&w->lock);
	w->done = true;
	if (err)
		w->err = *err;
	pthread_cond_signal(&w->cond);
	pthread_mutex_unlock(&w->lock);
}

static bool done_within(struct wait *w, long ms)
{
	struct timespec until;
	bool done;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += ms / 1000;
	until.tv_nsec += ms % 1000 * 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&w->lock);
	while (!w->done && !pthread_cond_timedwait(&w->cond, &w->lock, &until))
		;
	done = w->done;
	pthread_mutex_unlock(&w->lock);
	return done;
}

static double cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Cancels steps that wait for another step (a dequeue, a receive).  Other steps must end soon, as
 * measured by their CPU time. */
static void run_step(struct executor *e, const char *op, int64_t id, struct wait *w)
{
	struct rendezvous *r = rendezvous_table_get(rt->steps, id);
	struct step *s = executor_start(e, r, NULL, NULL, on_done, w);
	struct mu_err stop = {MU_CANCELLED, "odd_op has waited long enough"};
	double before = cpu_ms();

	if (!done_within(w, ENOUGH_MS)) {
		step_cancel(s, &stop);
		if (!done_within(w, TEST_TIMEOUT_S * 1000))
			fail_msg("%s (graph %lld) hangs", op, (long long)id);
		if (cpu_ms() - before > TOO_MUCH_CPU_MS * SLOWER)
			fail_msg("%s (graph %lld) computes for %.0f ms", op, (long long)id,
				 cpu_ms() - before);
	}
	step_unref(s);
	rendezvous_unref(r);
	rendezvous_table_drop(rt->steps, id, NULL);
}

static void run_graph(const struct mu_op_def *op, struct dice *d, int64_t id)
{
	struct wait w = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, {0}};
	struct mu_graph *g = random_node_graph(op, d);
	struct executor *e = NULL;

	if (!executor_new(rt, g, "", &e, &w.err)) {
		run_step(e, op->name, id, &w);
		executor_unref(e);
	}
	resources_clear(rt->resources, "");
	++*(!e ? &invalid : w.err.code ? &failed : &ran);
	if (w.err.code && !strstr(w.err.msg, "odd_"))
		fail_msg("%s (graph %lld): the error names no node: %s", op->name, (long long)id,
			 w.err.msg);
}

static unsigned long setting(const char *name, unsigned long default_value)
{
	const char *text = getenv(name);

	return text ? strtoul(text, NULL, 10) : default_value;
}

static void every_op__with_random_arguments__ends_soon_and_names_the_node(void **state)
{
	unsigned long rounds = setting("RANDOM_NODES_ROUNDS", 12);
	uint64_t seed = setting("RANDOM_NODES_SEED", 20170401);
	const char *only = getenv("RANDOM_NODES_OP");
	const struct mu_op_def *op;
	struct rusage before, after;
	struct mu_err err = {0};

	mu_tensor_limit = TENSOR_LIMIT;
	assert_ok(runtime_new("local", 0, 2, &task_kernels, NULL, &rt, &err), &err);
	getrusage(RUSAGE_SELF, &before);
	for (unsigned i = 0; (op = mu_op_at(i)); i++)
		for (unsigned long k = 0; k < rounds; k++) {
			struct dice d = {seed + i * 1000003u + k};
			if (only && strcmp(only, op->name) != 0)
				continue;
			if (only)
				fprintf(stderr, "%s %lu\n", op->name, k);
			run_graph(op, &d, (int64_t)(i * rounds + k + 1));
		}
	getrusage(RUSAGE_SELF, &after);
	print_message("%u ran, %u failed, %u were invalid\n", ran, failed, invalid);
	if (!only) /* otherwise no kernel would be tested */
		assert_true(ran > (ran + failed + invalid) / 20);
	assert_true((after.ru_maxrss - before.ru_maxrss) / SLOWER < GROWTH_KIB);
	runtime_free(rt);
}

/* The working directory: files that ops write stay out of the source tree. */
static char work_dir[] = "/tmp/random_nodes-XXXXXX";

static int setup(void **state)
{
	return mkdtemp(work_dir) ? chdir(work_dir) : -1;
}

static int teardown(void **state)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -r %s", work_dir);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_op__with_random_arguments__ends_soon_and_names_the_node),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
