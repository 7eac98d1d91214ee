/* SPDX-License-Identifier: Apache-2.0 */
/* The work queue, with a clock that the test sets. */
#include "tests/test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "lib/base/clock.h"
#include "operator/controller/workqueue.h"
#include "tests/wait.h"
#include "tests/workqueue_next.h"

static double now;

static double test_clock(void)
{
	return now;
}

static void expect(struct workqueue *q, const char *key)
{
	MU_AUTO_FREE char *got = workqueue_try(q);

	if (!key) {
		assert_null(got);
		return;
	}
	assert_non_null(got);
	assert_string_equal(got, key);
}

static void key__added_twice__is_returned_once(void **state)
{
	struct workqueue q;

	workqueue_init(&q, test_clock);
	workqueue_add(&q, "a");
	workqueue_add(&q, "b");
	workqueue_add(&q, "a");
	expect(&q, "a");
	expect(&q, "b");
	expect(&q, NULL);
	workqueue_done(&q, "a");
	workqueue_done(&q, "b");
	assert_int_equal(q.items.count, 0);
	workqueue_fini(&q);
}

static void key__latency__is_measured_from_when_it_is_ready(void **state)
{
	MU_AUTO_BUF out = {0};
	struct workqueue q;

	now = 10;
	workqueue_init(&q, test_clock);
	workqueue_add(&q, "a");
	now = 13;
	expect(&q, "a");
	workqueue_metrics(&q, &out);
	assert_non_null(strstr(
	    out.data, "workqueue_queue_duration_seconds_bucket{name=\"jobs\",le=\"2.5\"} 0\n"));
	assert_non_null(strstr(
	    out.data, "workqueue_queue_duration_seconds_bucket{name=\"jobs\",le=\"5\"} 1\n"));
	workqueue_done(&q, "a");
	workqueue_fini(&q);
}

static void key__being_processed__waits_until_done(void **state)
{
	struct workqueue q;

	workqueue_init(&q, test_clock);
	workqueue_add(&q, "a");
	expect(&q, "a");
	workqueue_add(&q, "a");
	expect(&q, NULL);
	workqueue_done(&q, "a");
	expect(&q, "a");
	workqueue_done(&q, "a");
	expect(&q, NULL);
	workqueue_fini(&q);
}

static void key__that_fails_repeatedly__waits_longer_each_time(void **state)
{
	struct workqueue q;
	double wait = 0.005;

	now = 100;
	workqueue_init(&q, test_clock);
	workqueue_add(&q, "a");
	for (int i = 0; i < 25; i++) {
		expect(&q, "a");
		workqueue_add_rate_limited(&q, "a");
		workqueue_done(&q, "a");
		expect(&q, NULL);
		now += wait * 0.9;
		expect(&q, NULL);
		now += wait * 0.2;
		wait = wait * 2 > 60 ? 60 : wait * 2;
	}
	expect(&q, "a");
	workqueue_forget(&q, "a");
	workqueue_add_rate_limited(&q, "a");
	workqueue_done(&q, "a");
	now += 0.006;
	expect(&q, "a");
	workqueue_fini(&q);
}

static void keys__with_delays__are_returned_in_order_of_time(void **state)
{
	static const char *const keys[] = {"e", "a", "c", "b", "d"};
	struct workqueue q;

	now = 1;
	workqueue_init(&q, test_clock);
	for (int i = 0; i < 5; i++)
		workqueue_add_after(&q, keys[i], (double)(keys[i][0] - 'a' + 1));
	workqueue_add_after(&q, "e", 0.5); /* the earlier of two times is used */
	workqueue_add(&q, "c");            /* at once */
	expect(&q, "c");
	now = 1.6;
	expect(&q, "e");
	now = 10;
	expect(&q, "a");
	expect(&q, "b");
	expect(&q, "d");
	expect(&q, NULL);
	workqueue_fini(&q);
}

static void random_use__never_returns_a_key_to_two_workers(void **state)
{
	struct workqueue q;
	bool held[20] = {false};
	unsigned seed = 3;

	workqueue_init(&q, test_clock);
	for (int i = 0; i < 20000; i++) {
		int k = rand_r(&seed) % 20;
		char key[8];
		char *got;

		snprintf(key, sizeof(key), "k%d", k);
		now += 0.01;
		switch (rand_r(&seed) % 6) {
		case 0:
			workqueue_add(&q, key);
			break;
		case 1:
			workqueue_add_after(&q, key, rand_r(&seed) % 100 / 10.0);
			break;
		case 2:
			if (held[k])
				workqueue_add_rate_limited(&q, key);
			break;
		case 3:
			workqueue_forget(&q, key);
			break;
		case 4:
			got = workqueue_try(&q);
			if (got) {
				assert_false(held[atoi(got + 1)]);
				held[atoi(got + 1)] = true;
				free(got);
			}
			break;
		default:
			if (held[k]) {
				held[k] = false;
				workqueue_done(&q, key);
			}
		}
	}
	workqueue_fini(&q);
}

/* ---- many workers ---- */

enum { WORKERS = 6, ROUNDS = 400, KEYS_PER_ROUND = 4 };
static _Atomic int handled;

static void *worker(void *queue)
{
	unsigned seed = 7;
	char *key;

	while ((key = workqueue_get(queue))) {
		if (rand_r(&seed) % 2) /* simulates a wait for an answer */
			nanosleep(&(struct timespec){0, rand_r(&seed) % 100000}, NULL);
		atomic_fetch_add(&handled, 1);
		workqueue_done(queue, key);
		free(key);
	}
	return NULL;
}

static void await_handled(int n)
{
	double until = mu_clock() + TEST_TIMEOUT_S;

	while (atomic_load(&handled) < n && mu_clock() < until)
		nanosleep(&(struct timespec){0, 200000}, NULL);
	assert_int_equal(atomic_load(&handled), n);
}

/* If no worker wakes for a key, the key stays in the queue. */
static void keys__added_while_workers_sleep__are_all_returned(void **state)
{
	struct workqueue q;
	pthread_t workers[WORKERS];
	unsigned seed = 5;
	int n_added = 0;

	workqueue_init(&q, mu_clock);
	for (int i = 0; i < WORKERS; i++)
		assert_int_equal(pthread_create(&workers[i], NULL, worker, &q), 0);
	for (int round = 0; round < ROUNDS; round++) {
		int n = 1 + rand_r(&seed) % KEYS_PER_ROUND;

		for (int i = 0; i < n; i++) {
			char key[32];

			snprintf(key, sizeof(key), "k%d-%d", round, i);
			if (rand_r(&seed) % 2)
				workqueue_add(&q, key);
			else
				workqueue_add_after(&q, key, rand_r(&seed) % 4 / 1000.0);
		}
		n_added += n;
		await_handled(n_added);
	}
	workqueue_stop(&q);
	for (int i = 0; i < WORKERS; i++)
		pthread_join(workers[i], NULL);
	workqueue_fini(&q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(key__added_twice__is_returned_once),
	    cmocka_unit_test(key__latency__is_measured_from_when_it_is_ready),
	    cmocka_unit_test(key__being_processed__waits_until_done),
	    cmocka_unit_test(key__that_fails_repeatedly__waits_longer_each_time),
	    cmocka_unit_test(keys__with_delays__are_returned_in_order_of_time),
	    cmocka_unit_test(random_use__never_returns_a_key_to_two_workers),
	    cmocka_unit_test(keys__added_while_workers_sleep__are_all_returned),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
