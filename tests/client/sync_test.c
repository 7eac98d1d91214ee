// SPDX-License-Identifier: Apache-2.0
/* Synchronous replicas: the numbers that two workers and a chief's thread come to. */
#include "tests/test.h"

#include <math.h>
#include <pthread.h>
#include <unistd.h>

#include "muster/train.h"
#include "tests/client/server.h"

enum { STEPS = 20 };

static struct mu_err err;

/* loss = (w - x)^2 / 2, so that the gradient is w - x and the average one w - mean(x). */
struct worker {
	struct mu_builder *b;
	struct mu_out x;
	struct mu_var *w;
	struct mu_sync sync;
	float own;
	bool chief;
	int64_t delay_us;
	int rc;
	int64_t steps;
	struct mu_err err;
};

static void build(struct worker *w, unsigned aggregate, unsigned workers, unsigned self)
{
	struct mu_optimizer sgd;

	w->b = mu_builder_new();
	struct mu_var *step = mu_global_step(w->b);
	w->x = mu_placeholder(w->b, "x", MU_FLOAT, MU_SCALAR);
	w->w = mu_variable(w->b, "w", MU_FLOAT, MU_SCALAR, MU_ZEROS, true);
	struct mu_out d = mu_sub(w->b, mu_read(w->w), w->x);
	struct mu_out loss = mu_mul(w->b, mu_const_float(w->b, 0.5f), mu_square(w->b, d));
	assert_ok(mu_optimizer_named("sgd", 0.25, &sgd, &err), &err);
	mu_minimize_sync(w->b, &sgd, loss, step, aggregate, workers, self, &w->sync);
	assert_ok(mu_builder_check(w->b, &err), &err);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct mu_hook *hooks[2];
	unsigned n = 0;
	struct mu_monitored *m;
	MU_AUTO_TENSOR x = {0};
	struct mu_shape scalar;
	int rc;

	if (mu_shape_set(&scalar, 0, NULL, &w->err))
		return NULL;
	hooks[n++] = mu_stop_at_step_hook(STEPS);
	if (w->chief)
		hooks[n++] = mu_sync_hook(&w->sync);
	rc = mu_monitored_open(&m, w->b,
			       &(struct mu_monitored_options){.target = test_server(),
							      .chief = w->chief,
							      .train = w->sync.train,
							      .sync = &w->sync,
							      .hooks = hooks,
							      .n_hooks = n,
							      .wait_seconds = 10,
							      .session = {.run_timeout_ms = 10000}},
			       &w->err);
	if (rc) {
		w->rc = rc;
		return NULL;
	}
	rc = mu_tensor_new(&x, MU_FLOAT, &scalar, &w->err);
	*MU_DATA(float, &x) = w->own;
	while (!rc && !mu_monitored_should_stop(m)) {
		struct mu_feed feed = {w->x, &x};

		if (w->delay_us)
			usleep((useconds_t)w->delay_us);
		rc = mu_monitored_train(m, &(struct mu_run){.feeds = &feed, .n_feeds = 1}, NULL,
					&w->err);
		w->steps++;
	}
	w->rc = rc;
	mu_monitored_close(m, rc != 0, NULL);
	return NULL;
}

static float run(struct worker *w, unsigned n)
{
	pthread_t t[4];
	struct mu_session *s;
	MU_AUTO_TENSOR v = {0};

	test_server();
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(pthread_create(&t[i], NULL, work, &w[i]), 0);
	for (unsigned i = 0; i < n; i++) {
		pthread_join(t[i], NULL);
		if (w[i].rc)
			fail_msg("worker %u: %s", i, w[i].err.msg);
	}
	assert_ok(mu_session_open(&s, test_server(), w[0].b, NULL, &err), &err);
	assert_ok(mu_session_get(s, mu_read(w[0].w), &v, &err), &err);
	mu_session_close(s);
	for (unsigned i = 0; i < n; i++)
		mu_builder_free(w[i].b);
	return *MU_DATA(float, &v);
}

static void two_workers__make_steps_of_their_average(void **state)
{
	struct worker w[2] = {{.own = 1, .chief = true}, {.own = 3}};
	float got;

	build(&w[0], 2, 2, 0);
	build(&w[1], 2, 2, 1);
	got = run(w, 2);
	assert_float_equal(got, 2 * (1 - powf(0.75f, STEPS)), 1e-5);
	assert_int_equal(w[0].steps, STEPS);
	assert_int_equal(w[1].steps, STEPS);
	test_server_stop(NULL);
}

static void a_slow_worker__is_not_waited_for_when_there_is_a_backup(void **state)
{
	struct worker w[3] = {{.own = 2, .chief = true}, {.own = 2}, {.own = 50}};

	w[2].delay_us = 300000;
	for (int i = 0; i < 3; i++)
		build(&w[i], 2, 3, (unsigned)i);
	assert_true(run(w, 3) > 0);
	assert_true(w[2].steps < STEPS);
	test_server_stop(NULL);
}

static void more_gradients_than_workers__are_refused(void **state)
{
	struct mu_sync sync;
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	struct mu_optimizer sgd = {.rate = 1};

	mu_minimize_sync(b, &sgd, mu_const_float(b, 1), mu_global_step(b), 3, 2, 0, &sync);
	assert_fails(mu_builder_check(b, &err), &err, MU_INVALID_ARGUMENT, "3 of 2 workers");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(more_gradients_than_workers__are_refused),
	    cmocka_unit_test(two_workers__make_steps_of_their_average),
	    cmocka_unit_test(a_slow_worker__is_not_waited_for_when_there_is_a_backup),
	};

	return cmocka_run_group_tests(tests, NULL, test_server_stop);
}
