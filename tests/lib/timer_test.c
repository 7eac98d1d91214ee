/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/timer.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "tests/test.h"
#include "tests/wait.h"

enum { LONG_MS = 60000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int fired[8], n_fired;
static pid_t thread;

static void fire(void *arg)
{
	pthread_mutex_lock(&lock);
	thread = gettid();
	fired[n_fired++] = (int)(intptr_t)arg;
	pthread_cond_signal(&changed);
	pthread_mutex_unlock(&lock);
}

static uint64_t add(struct mu_timer *t, long ms, int number)
{
	return mu_timer_add(t, ms, fire, (void *)(intptr_t)number);
}

static void wait_for(int n)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += TEST_TIMEOUT_S;
	pthread_mutex_lock(&lock);
	while (n_fired < n)
		if (pthread_cond_timedwait(&changed, &lock, &until))
			break;
	assert_int_equal(n_fired, n);
	pthread_mutex_unlock(&lock);
}

static void timer__of_the_maximum_time__does_not_fire(void **state)
{
	struct mu_timer *t = mu_timer_new();

	n_fired = 0;
	add(t, LONG_MAX, 1);
	add(t, 50, 2);
	wait_for(1);
	assert_int_equal(fired[0], 2);
	mu_timer_free(t);
}

/* The later timer fires although the thread still waits for the time of the cancelled one. */
static void timer__after_a_cancelled_one__fires(void **state)
{
	struct mu_timer *t = mu_timer_new();
	uint64_t first;
	int fired_before;

	n_fired = 0;
	first = add(t, 200, 1);
	fired_before = mu_timer_cancel(t, first) ? 0 : 1;
	add(t, 300, 2);
	wait_for(fired_before + 1);
	assert_int_equal(fired[fired_before], 2);
	mu_timer_free(t);
}

static void timer__due_before_the_pending_ones__fires_in_time(void **state)
{
	struct mu_timer *t = mu_timer_new();

	n_fired = 0;
	add(t, 1, 1); /* the thread has just started */
	wait_for(1);
	add(t, 1, 2); /* the thread waits without a timeout */
	wait_for(2);
	add(t, LONG_MS, 9);
	add(t, 1, 3); /* the thread waits with a long timeout */
	wait_for(3);
	assert_int_equal(fired[2], 3);
	mu_timer_free(t);
}

/* Returns the number of voluntary context switches of the timer thread. */
static long voluntary_switches(void)
{
	char path[64], line[128];
	long n = -1;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", (int)thread);
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		sscanf(line, "voluntary_ctxt_switches: %ld", &n);
	fclose(f);
	assert_true(n >= 0);
	return n;
}

static void timers__cancelled_in_time__do_not_wake_the_thread(void **state)
{
	enum { STEPS = 200 };
	struct mu_timer *t = mu_timer_new();
	const struct timespec moment = {.tv_nsec = 200000};
	long before;

	n_fired = 0;
	add(t, 0, 1);
	wait_for(1);
	before = voluntary_switches();
	for (int i = 0; i < STEPS; i++) {
		uint64_t id = add(t, LONG_MS, 3);

		nanosleep(&moment, NULL); /* gives the thread time to wake */
		assert_true(mu_timer_cancel(t, id));
	}
	assert_in_range(voluntary_switches() - before, 0, STEPS / 10);
	assert_int_equal(n_fired, 1);
	mu_timer_free(t);
}

static void free_and_fire(void *arg)
{
	mu_timer_free(arg);
	fire(NULL);
}

static void timer__freed_by_its_own_callback__ends_its_thread(void **state)
{
	struct mu_timer *t = mu_timer_new();

	n_fired = 0;
	mu_timer_add(t, LONG_MS, fire, NULL);
	mu_timer_add(t, 0, free_and_fire, t);
	wait_for(1);
	WAIT_UNTIL(tgkill(getpid(), thread, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(timer__of_the_maximum_time__does_not_fire),
	    cmocka_unit_test(timer__after_a_cancelled_one__fires),
	    cmocka_unit_test(timer__due_before_the_pending_ones__fires_in_time),
	    cmocka_unit_test(timers__cancelled_in_time__do_not_wake_the_thread),
	    cmocka_unit_test(timer__freed_by_its_own_callback__ends_its_thread),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
