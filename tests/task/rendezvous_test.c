/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "task/runtime/rendezvous.h"
#include "tests/test.h"

#define SELF  "/job:w/replica:0/task:0"
#define MINE  SELF "/device:CPU:0;0000000000000001;" SELF "/device:CPU:0;edge;0:0"
#define OTHER "/job:ps/replica:0/task:0/device:CPU:0;0000000000000002;" SELF "/device:CPU:0;e;0:0"

static struct mu_err err;
static struct rendezvous_table *table;
static struct rendezvous *r;

struct got {
	int calls, code, value;
	bool dead;
	char msg[sizeof((struct mu_err *)0)->msg];
};

static void on_tensor(void *arg, const struct mu_err *e, struct mu_tensor *t, bool dead)
{
	struct got *g = arg;

	g->calls++;
	g->code = e ? (int)e->code : 0;
	g->dead = dead;
	snprintf(g->msg, sizeof g->msg, "%s", e ? e->msg : "");
	if (!e && mu_tensor_is_set(t)) {
		g->value = MU_DATA(int32_t, t)[0];
		mu_tensor_unref(t);
	}
}

static struct mu_tensor number(int32_t v)
{
	struct mu_tensor t;

	assert_ok(mu_tensor_scalar(&t, MU_INT32, &v, &err), &err);
	return t;
}

/* The pending remote receive; the test completes it. */
static struct {
	rendezvous_done done;
	void *arg;
	char key[200];
} pending_remote;

static void remote_recv(void *ctx, struct rendezvous *step, const char *key, rendezvous_done done,
			void *arg)
{
	pending_remote.done = done;
	pending_remote.arg = arg;
	snprintf(pending_remote.key, sizeof pending_remote.key, "%s", key);
}

static int setup(void **state)
{
	const struct rendezvous_remote remote = {remote_recv, NULL};

	table = rendezvous_table_new(SELF, &remote);
	r = rendezvous_table_get(table, 7);
	memset(&pending_remote, 0, sizeof pending_remote);
	return 0;
}

static int teardown(void **state)
{
	rendezvous_unref(r);
	rendezvous_table_free(table);
	return 0;
}

static void send_and_recv__meet_in_either_order(void **state)
{
	struct got a = {0}, b = {0}, c = {0};

	rendezvous_recv(r, MINE, on_tensor, &a);
	assert_int_equal(a.calls, 0);
	assert_ok(rendezvous_send(r, MINE, number(1), false, &err), &err);
	assert_int_equal(a.value, 1);
	assert_ok(rendezvous_send(r, MINE, number(2), false, &err), &err);
	assert_ok(rendezvous_send(r, MINE, number(3), false, &err), &err);
	rendezvous_recv(r, MINE, on_tensor, &b);
	rendezvous_recv_local(r, MINE, on_tensor, &c);
	assert_int_equal(b.value, 2); /* in the order they were sent */
	assert_int_equal(c.value, 3);
}

static void dead_tensor__arrives_dead(void **state)
{
	struct got a = {0};

	assert_ok(rendezvous_send(r, MINE, (struct mu_tensor){0}, true, &err), &err);
	rendezvous_recv(r, MINE, on_tensor, &a);
	assert_true(a.calls == 1 && a.dead && a.code == 0);
}

static void abort__fails_pending_and_later_receives(void **state)
{
	struct got a = {0}, b = {0};
	struct mu_err why = {MU_UNAVAILABLE, "peer gone"}, later = {MU_CANCELLED, "no"};

	rendezvous_recv(r, MINE, on_tensor, &a);
	rendezvous_abort(r, &why);
	rendezvous_abort(r, &later); /* the first error is kept */
	assert_true(a.calls == 1 && a.code == MU_UNAVAILABLE);
	rendezvous_recv(r, MINE, on_tensor, &b);
	assert_true(b.calls == 1 && b.code == MU_UNAVAILABLE);
	assert_fails(rendezvous_send(r, MINE, number(1), false, &err), &err, MU_UNAVAILABLE,
		     "peer gone");
}

static void recv__from_another_task__is_a_remote_receive(void **state)
{
	struct got a = {0};
	struct mu_tensor t = number(9);

	rendezvous_recv(r, OTHER, on_tensor, &a);
	assert_string_equal(pending_remote.key, OTHER);
	pending_remote.done(pending_remote.arg, NULL, &t, false);
	assert_true(a.calls == 1 && a.value == 9);
}

static void abort__during_a_remote_receive__ends_it_once_and_drops_the_late_tensor(void **state)
{
	struct got a = {0};
	struct mu_tensor t = number(9);
	struct mu_err why = {MU_CANCELLED, "stop"};

	rendezvous_recv(r, OTHER, on_tensor, &a);
	rendezvous_abort(r, &why);
	assert_true(a.calls == 1 && a.code == MU_CANCELLED);
	pending_remote.done(pending_remote.arg, NULL, &t, false);
	assert_int_equal(a.calls, 1);
}

static void step__after_its_drop__is_not_created_again(void **state)
{
	struct got a = {0}, b = {0};

	rendezvous_recv(r, MINE, on_tensor, &a);
	rendezvous_table_drop(table, 7, NULL);
	assert_true(a.calls == 1 && a.code == MU_CANCELLED);
	struct rendezvous *late = rendezvous_table_get(table, 7);
	rendezvous_recv(late, MINE, on_tensor, &b);
	assert_true(b.calls == 1 && b.code == MU_ABORTED);
	assert_non_null(strstr(b.msg, "Step 7 has ended"));
	rendezvous_unref(late);
}

static void key__parsed__has_its_parts(void **state)
{
	struct rendezvous_key k;

	assert_ok(rendezvous_key_parse(&k, "/a;00000000000000ff;/b;edge_1_x;0:0", &err), &err);
	assert_true(mu_span_is(k.src_device, "/a") && mu_span_is(k.dst_device, "/b"));
	assert_true(mu_span_is(k.edge, "edge_1_x") && mu_span_is(k.frame_iter, "0:0"));
	assert_int_equal(k.src_incarnation, 255);
	static const char *const bad[] = {"", ";;;;", "/a;0;/b;e", "/a;xyz;/b;e;0:0",
					  "/a;00000000000000000ff;/b;e;0:0"};
	for (unsigned i = 0; i < MU_COUNT(bad); i++)
		assert_fails(rendezvous_key_parse(&k, bad[i], &err), &err, MU_INVALID_ARGUMENT,
			     "Invalid rendezvous key");
}

/* Senders, receivers and an abort run concurrently: each receive ends exactly once. */
static _Atomic int n_ended;

static void count(void *arg, const struct mu_err *e, struct mu_tensor *t, bool dead)
{
	if (!e)
		mu_tensor_unref(t);
	atomic_fetch_add(&n_ended, 1);
}

enum { PER_THREAD = 2000 };

static void *receiver(void *arg)
{
	char key[64];

	for (int i = 0; i < PER_THREAD; i++) {
		snprintf(key, sizeof key, SELF "/x;1;b;e%d;0:0", i);
		rendezvous_recv(r, key, count, NULL);
	}
	return NULL;
}

static void *sender(void *arg)
{
	char key[64];

	for (int i = 0; i < PER_THREAD; i++) {
		snprintf(key, sizeof key, SELF "/x;1;b;e%d;0:0", i);
		rendezvous_send(r, key, number(i), false, NULL);
		if (i == PER_THREAD / 2)
			rendezvous_abort(r, &(struct mu_err){MU_ABORTED, "half way"});
	}
	return NULL;
}

static void receives__of_concurrent_threads__end_once(void **state)
{
	pthread_t t[4];

	n_ended = 0;
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&t[i], NULL, i % 2 ? sender : receiver, NULL), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(n_ended, 2 * PER_THREAD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	    T(send_and_recv__meet_in_either_order),
	    T(dead_tensor__arrives_dead),
	    T(abort__fails_pending_and_later_receives),
	    T(recv__from_another_task__is_a_remote_receive),
	    T(abort__during_a_remote_receive__ends_it_once_and_drops_the_late_tensor),
	    T(step__after_its_drop__is_not_created_again),
	    T(key__parsed__has_its_parts),
	    T(receives__of_concurrent_threads__end_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
