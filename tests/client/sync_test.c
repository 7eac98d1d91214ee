/* SPDX-License-Identifier: Apache-2.0 */
/* Synchronous replicas: results of two workers and the update thread of the chief. */
#include "tests/test.h"

#include <math.h>
#include <pthread.h>
#include <unistd.h>

#include "muster/train.h"
#include "tests/client/server.h"

enum { STEPS = 20 };

static struct mu_err err;

/* loss = (w - x)^2 / 2, so the gradient is w - x and the average gradient is w - mean(x). */
struct worker {
	struct mu_builder *b;
	struct mu_out x;
	struct mu_var *w;
	struct mu_sync sync;
	float x_value;
	bool chief;
	int64_t delay_us;
	struct mu_hook *extra_hook; /* a hook on the stack of the test */
	volatile int *stop;         /* stop flag of this worker */
	pthread_barrier_t *begin;   /* barrier before the first step */
	int64_t last;               /* final step; 0: STEPS */
	int64_t ends_after;   /* steps of this worker after which it stops all workers; 0: never */
	int64_t has_data_for; /* steps of this worker until its end of data; 0: never */
	int rc;
	int64_t steps, first_step, last_step;
	struct mu_err err;
};

static void build_graph(struct worker *w, unsigned aggregate, unsigned workers, unsigned self)
{
	struct mu_optimizer sgd;

	w->b = mu_builder_new();
	struct mu_var *step = mu_global_step(w->b);
	w->x = mu_placeholder(w->b, "x", MU_FLOAT, MU_SCALAR);
	w->w = mu_variable(w->b, "w", MU_FLOAT, MU_SCALAR, MU_ZEROS, true);
	struct mu_out d = mu_sub(w->b, mu_read(w->w), w->x);
	struct mu_out loss = mu_mul(w->b, mu_const_float(w->b, 0.5f), mu_square(w->b, d));
	assert_ok(mu_optimizer_named("sgd", 0.25, &sgd, &err), &err);
	mu_minimize_sync(
	    w->b, &sgd, loss, step,
	    &(struct mu_sync_options){.aggregate = aggregate, .workers = workers, .self = self},
	    &w->sync);
	assert_ok(mu_builder_check(w->b, &err), &err);
}

static void *worker_thread(void *arg)
{
	struct worker *w = arg;
	struct mu_hook *hooks[3];
	unsigned n = 0;
	struct mu_monitored *m;
	MU_AUTO_TENSOR x = {0};
	struct mu_shape scalar;
	int rc;

	if (mu_shape_set(&scalar, 0, NULL, &w->err))
		return NULL;
	if (w->begin && !w->chief)
		pthread_barrier_wait(w->begin);
	if (w->extra_hook)
		hooks[n++] = w->extra_hook;
	hooks[n++] = mu_stop_at_step_hook(w->last ? w->last : STEPS);
	if (w->chief)
		hooks[n++] = mu_sync_hook(&w->sync);
	rc = mu_monitored_open(&m, w->b,
			       &(struct mu_monitored_options){.target = test_server(),
							      .chief = w->chief,
							      .train = w->sync.train,
							      .sync = &w->sync,
							      .hooks = hooks,
							      .n_hooks = n,
							      .stop = w->stop,
							      .wait_seconds = 60,
							      .session = {.run_timeout_ms = 60000}},
			       &w->err);
	if (rc) {
		w->rc = rc;
		return NULL;
	}
	rc = mu_tensor_new(&x, MU_FLOAT, &scalar, &w->err);
	*MU_DATA(float, &x) = w->x_value;
	w->first_step = mu_monitored_step(m);
	while (!rc && !mu_monitored_should_stop(m) && (!w->steps || w->steps != w->has_data_for)) {
		struct mu_feed feed = {w->x, &x};

		if (w->delay_us)
			usleep((useconds_t)w->delay_us);
		rc = mu_monitored_train(m, &(struct mu_run){.feeds = &feed, .n_feeds = 1}, NULL,
					&w->err);
		w->steps++;
		w->last_step = mu_monitored_step(m);
		if (w->steps == w->ends_after)
			__atomic_store_n(w->stop, 1, __ATOMIC_RELAXED);
	}
	if (!rc && w->has_data_for)
		rc = mu_monitored_leave(m, &w->err);
	w->rc = rc;
	mu_monitored_close(m, rc != 0, NULL);
	return NULL;
}

static float read_weight(struct worker *w)
{
	struct mu_session *s;
	MU_AUTO_TENSOR v = {0};

	assert_ok(mu_session_open(&s, test_server(), w->b, NULL, &err), &err);
	assert_ok(mu_session_get(s, mu_read(w->w), &v, &err), &err);
	mu_session_close(s);
	return *MU_DATA(float, &v);
}

static float run_workers(struct worker *w, unsigned n)
{
	pthread_t t[4];
	float got;

	test_server();
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(pthread_create(&t[i], NULL, worker_thread, &w[i]), 0);
	for (unsigned i = 0; i < n; i++) {
		pthread_join(t[i], NULL);
		if (w[i].rc)
			fail_msg("worker %u: %s", i, w[i].err.msg);
	}
	got = read_weight(&w[0]);
	for (unsigned i = 0; i < n; i++)
		mu_builder_free(w[i].b);
	return got;
}

static void two_workers__apply_the_average_gradient(void **state)
{
	struct worker w[2] = {{.x_value = 1, .chief = true}, {.x_value = 3}};
	float got;

	build_graph(&w[0], 2, 2, 0);
	build_graph(&w[1], 2, 2, 1);
	got = run_workers(w, 2);
	assert_float_equal(got, 2 * (1 - powf(0.75f, STEPS)), 1e-5);
	assert_int_equal(w[0].steps, STEPS);
	assert_int_equal(w[1].steps, STEPS);
	test_server_stop(NULL);
}

static void slow_worker__with_a_backup__does_not_delay_the_step(void **state)
{
	struct worker w[3] = {{.x_value = 2, .chief = true}, {.x_value = 2}, {.x_value = 50}};

	w[2].delay_us = 300000;
	for (int i = 0; i < 3; i++)
		build_graph(&w[i], 2, 3, (unsigned)i);
	assert_true(run_workers(w, 3) > 0);
	assert_true(w[2].steps < STEPS);
	test_server_stop(NULL);
}

/* At a step, sets the stop flag of another worker or passes its barrier. */
struct signal_hook {
	struct mu_hook base;
	int64_t at;
	volatile int *stop;
	pthread_barrier_t *begin;
};

static int signal_after(struct mu_hook *base, struct mu_hook_step *s, struct mu_err *e)
{
	struct signal_hook *h = (struct signal_hook *)base;

	if (s->step == h->at && h->stop)
		__atomic_store_n(h->stop, 1, __ATOMIC_RELAXED);
	if (s->step == h->at && h->begin)
		pthread_barrier_wait(h->begin);
	return 0;
}

static _Atomic bool chief_has_saved;
static bool had_saved; /* when the other worker ended */

static int on_chief_end(struct mu_hook *h, struct mu_session *s, int64_t step, struct mu_err *e)
{
	usleep(200000);
	chief_has_saved = true;
	return 0;
}

static int on_worker_end(struct mu_hook *h, struct mu_session *s, int64_t step, struct mu_err *e)
{
	had_saved = chief_has_saved;
	return 0;
}

/* If the ps were lost in between, the chief would need the worker again. */
static void worker_at_the_last_step__waits_until_the_chief_has_saved(void **state)
{
	struct mu_hook chief = {.end = on_chief_end}, other = {.end = on_worker_end};
	struct worker w[2] = {{.x_value = 1, .chief = true, .extra_hook = &chief},
			      {.x_value = 3, .extra_hook = &other}};

	build_graph(&w[0], 2, 2, 0);
	build_graph(&w[1], 2, 2, 1);
	run_workers(w, 2);
	assert_true(had_saved);
	test_server_stop(NULL);
}

static void stopped_worker__leaves_and_the_others_continue(void **state)
{
	volatile int stop = 0;
	struct signal_hook tell = {.base = {.after = signal_after}, .at = 5, .stop = &stop};
	struct worker w[2] = {{.x_value = 1, .chief = true}, {.x_value = 3, .stop = &stop}};

	w[0].extra_hook = &tell.base;
	build_graph(&w[0], 0, 2, 0);
	build_graph(&w[1], 0, 2, 1);
	assert_true(run_workers(w, 2) > 0);
	assert_int_equal(w[0].steps, STEPS);
	assert_in_range(w[1].steps, 5, 7);
	test_server_stop(NULL);
}

static void worker_at_the_end_of_its_data__leaves_and_the_others_continue(void **state)
{
	struct worker w[2] = {{.x_value = 1, .chief = true}, {.x_value = 3, .has_data_for = 5}};

	build_graph(&w[0], 0, 2, 0);
	build_graph(&w[1], 0, 2, 1);
	assert_true(run_workers(w, 2) > 0);
	assert_int_equal(w[0].steps, STEPS);
	assert_int_equal(w[1].steps, 5);
	test_server_stop(NULL);
}

/* Started for one worker. The second joins at step 5, and by step 20 at the latest every step waits
 * for it. */
static void additional_worker__that_starts_late__joins(void **state)
{
	pthread_barrier_t begin;
	struct signal_hook tell = {.base = {.after = signal_after}, .at = 5, .begin = &begin};
	struct worker w[2] = {{.x_value = 1, .chief = true, .last = 100000},
			      {.x_value = 3, .begin = &begin, .last = 100000}};
	volatile int stop = 0;

	pthread_barrier_init(&begin, NULL, 2);
	w[0].extra_hook = &tell.base;
	w[0].stop = &stop;
	w[1].stop = &stop;
	w[1].ends_after = 10;
	build_graph(&w[0], 0, 1, 0);
	build_graph(&w[1], 0, 1, 1);
	run_workers(w, 2);
	assert_true(w[1].steps >= 10);
	/* While the second worker is a member, no step is made without it. */
	assert_true(w[1].last_step - w[1].first_step < w[1].steps + 2);
	pthread_barrier_destroy(&begin);
	test_server_stop(NULL);
}

/* Simulates a chief that dies during an update: takes gradients that the update had taken but not
 * applied. */
static void take_gradients(struct worker *w)
{
	struct mu_out one = mu_const_int(w->b, MU_INT32, 1);
	struct mu_out taken = mu_op(
	    w->b, "AccumulatorTakeGradient",
	    MU_IN(mu_op(w->b, "ConditionalAccumulator",
			MU_ATTRS(MU_A_TYPE("dtype", MU_FLOAT), MU_A_SHAPE("shape", &MU_SCALAR),
				 MU_A_STR("shared_name", "w/accumulator"))),
		  one),
	    MU_ATTRS(MU_A_TYPE("dtype", MU_FLOAT)));
	struct mu_session *s;

	assert_ok(mu_session_open(&s, test_server(), w->b, NULL, &err), &err);
	assert_ok(mu_session_do(s, taken, &err), &err);
	mu_session_close(s);
}

static void gradients_lost_by_an_update__are_added_again(void **state)
{
	volatile int stop = 0;
	struct worker first = {.x_value = 1, .chief = true, .stop = &stop},
		      next = {.x_value = 1, .chief = true}, other = {.x_value = 3};
	pthread_t chief, t;

	build_graph(&first, 2, 2, 0);
	build_graph(&next, 2, 2, 0);
	build_graph(&other, 2, 2, 1);
	first.ends_after = STEPS / 2;
	test_server();
	assert_int_equal(pthread_create(&chief, NULL, worker_thread, &first), 0);
	assert_int_equal(pthread_create(&t, NULL, worker_thread, &other), 0);
	pthread_join(chief, NULL);
	assert_ok(first.rc, &first.err);
	take_gradients(&first); /* waits until the other worker has added its gradients */
	assert_int_equal(pthread_create(&chief, NULL, worker_thread, &next), 0);
	pthread_join(chief, NULL);
	pthread_join(t, NULL);
	assert_ok(next.rc, &next.err);
	assert_ok(other.rc, &other.err);
	assert_int_equal(next.last_step, STEPS);
	assert_int_equal(other.last_step, STEPS);
	/* Each gradient counted once in each step. */
	assert_float_equal(read_weight(&next), 2 * (1 - powf(0.75f, STEPS)), 1e-5);
	mu_builder_free(first.b);
	mu_builder_free(next.b);
	mu_builder_free(other.b);
	test_server_stop(NULL);
}

static void more_backup_workers_than_workers__fail(void **state)
{
	struct mu_sync sync;
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	struct mu_optimizer sgd = {.rate = 1};

	mu_minimize_sync(b, &sgd, mu_const_float(b, 1), mu_global_step(b),
			 &(struct mu_sync_options){.backup = 2, .workers = 2}, &sync);
	assert_fails(mu_builder_check(b, &err), &err, MU_INVALID_ARGUMENT,
		     "2 workers, 2 of them backup");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(more_backup_workers_than_workers__fail),
	    cmocka_unit_test(two_workers__apply_the_average_gradient),
	    cmocka_unit_test(slow_worker__with_a_backup__does_not_delay_the_step),
	    cmocka_unit_test(worker_at_the_last_step__waits_until_the_chief_has_saved),
	    cmocka_unit_test(stopped_worker__leaves_and_the_others_continue),
	    cmocka_unit_test(worker_at_the_end_of_its_data__leaves_and_the_others_continue),
	    cmocka_unit_test(additional_worker__that_starts_late__joins),
	    cmocka_unit_test(gradients_lost_by_an_update__are_added_again),
	};

	return cmocka_run_group_tests(tests, NULL, test_server_stop);
}
