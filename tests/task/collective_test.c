/* SPDX-License-Identifier: Apache-2.0 */
#include "task/runtime/collective.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/base/timer.h"
#include "task/kernels/control/collective.h"
#include "tests/test.h"

#define WORKER(i) "/job:worker/replica:0/task:" #i "/device:CPU:0"

static struct mu_err err;
static struct mu_timer *timer;
static struct collectives *cs;
static const char *unreachable_device; /* the device whose probe fails */

struct got {
	_Atomic int calls;
	int code, n;
	int32_t values[8];
	char msg[sizeof((struct mu_err *)0)->msg];
};

static void on_done(void *arg, const struct mu_err *e, struct mu_tensor *t, bool dead)
{
	struct got *g = arg;

	g->code = e ? (int)e->code : 0;
	snprintf(g->msg, sizeof g->msg, "%s", e ? e->msg : "");
	if (!e) {
		g->n = (int)t->shape.count;
		memcpy(g->values, t->data, sizeof(int32_t) * (size_t)g->n);
		mu_tensor_unref(t);
	}
	g->calls++;
}

static bool send_to_leader(void *ctx, int64_t id, const struct collective_part *part,
			   rendezvous_done done, void *arg)
{
	return false;
}

static void cancel_send(void *ctx, int64_t id)
{
}

static void probe(void *ctx, const char *device,
		  void (*failed)(void *arg, const char *device, const struct mu_err *err),
		  void *arg)
{
	struct mu_err why;

	mu_fail(&why, MU_UNAVAILABLE, "connection refused");
	if (unreachable_device && !strcmp(unreachable_device, device))
		failed(arg, device, &why);
}

static int setup(void **state)
{
	timer = mu_timer_new();
	cs = collectives_new(NULL, timer,
			     &(struct collective_hooks){.combine = collective_combine,
							.send = send_to_leader,
							.cancel_send = cancel_send,
							.probe = probe});
	unreachable_device = NULL;
	return 0;
}

static int teardown(void **state)
{
	mu_timer_free(timer);
	collectives_free(cs);
	return 0;
}

/* A part in a group of two: an int32 vector of one element. */
static struct collective_part part_of(const char *device, enum collective_kind kind, int32_t value)
{
	struct collective_part p = {.kind = kind,
				    .group_size = 2,
				    .group_key = 1,
				    .instance_key = 7,
				    .device = device,
				    .sends = true,
				    .dtype = MU_INT32,
				    .shape = mu_shape_vec(1)};

	assert_ok(mu_tensor_new(&p.tensor, MU_INT32, &p.shape, &err), &err);
	MU_DATA(int32_t, &p.tensor)[0] = value;
	return p;
}

/* Joins with the part and releases its tensor. */
static struct collective_call *join_part(struct collective_part p, struct got *g)
{
	struct collective_call *call = collective_call_new(cs, &p, on_done, g);

	mu_tensor_unref(&p.tensor);
	collective_join(call);
	return call;
}

static void join(const char *device, enum collective_kind kind, int32_t value, struct got *g)
{
	collective_call_unref(join_part(part_of(device, kind, value), g));
}

static void wait_for(struct got *g)
{
	for (int i = 0; i < 3000 && !g->calls; i++)
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	assert_int_equal(g->calls, 1);
}

static void collective__with_all_members_joined__gives_each_the_result(void **state)
{
	struct got a = {0}, b = {0};

	join(WORKER(0), COLLECTIVE_ADD, 3, &a);
	assert_int_equal(a.calls, 0);
	join(WORKER(1), COLLECTIVE_ADD, 4, &b);
	assert_int_equal(a.calls, 1);
	assert_int_equal(b.calls, 1);
	assert_int_equal(a.values[0], 7);
	assert_int_equal(b.values[0], 7);
}

static void gather__of_two_tasks__is_in_task_order(void **state)
{
	struct got a = {0}, b = {0};

	join(WORKER(10), COLLECTIVE_GATHER, 10, &a);
	join(WORKER(9), COLLECTIVE_GATHER, 9, &b);
	assert_int_equal(a.n, 2);
	assert_int_equal(a.values[0], 9);
	assert_int_equal(a.values[1], 10);
}

static void broadcast__from_a_sender__reaches_the_receiver(void **state)
{
	struct collective_part receiver = {.kind = COLLECTIVE_BROADCAST,
					   .group_size = 2,
					   .group_key = 1,
					   .instance_key = 7,
					   .device = WORKER(0),
					   .dtype = MU_INT32,
					   .shape = mu_shape_vec(1)};
	struct got a = {0}, b = {0};

	collective_call_unref(join_part(receiver, &a));
	join(WORKER(1), COLLECTIVE_BROADCAST, 5, &b);
	assert_int_equal(a.values[0], 5);
	assert_int_equal(b.values[0], 5);
}

static void member__one_step_ahead__waits_for_the_next_round(void **state)
{
	struct got first = {0}, second = {0}, other = {0}, last = {0};

	join(WORKER(0), COLLECTIVE_ADD, 1, &first);
	join(WORKER(0), COLLECTIVE_ADD, 2, &second);
	join(WORKER(1), COLLECTIVE_ADD, 10, &other);
	assert_int_equal(first.values[0], 11);
	assert_int_equal(second.calls, 0);
	join(WORKER(1), COLLECTIVE_ADD, 20, &last);
	assert_int_equal(second.values[0], 22);
}

static void mismatched_parts__fail_for_all_members(void **state)
{
	struct collective_part larger = {.kind = COLLECTIVE_ADD,
					 .group_size = 2,
					 .group_key = 1,
					 .instance_key = 7,
					 .device = WORKER(1),
					 .sends = true,
					 .dtype = MU_INT32,
					 .shape = mu_shape_vec(2)};
	struct got a = {0}, b = {0}, c = {0}, d = {0};

	join(WORKER(0), COLLECTIVE_ADD, 1, &a);
	assert_ok(mu_tensor_new(&larger.tensor, MU_INT32, &larger.shape, &err), &err);
	collective_call_unref(join_part(larger, &b));
	assert_int_equal(a.code, MU_INVALID_ARGUMENT);
	assert_int_equal(b.code, MU_INVALID_ARGUMENT);
	assert_non_null(strstr(a.msg, "Shape mismatch"));
	collective_report_failure(cs, WORKER(1), &err); /* caused by the mismatch: ignored */
	join(WORKER(0), COLLECTIVE_ADD, 1, &c);
	join(WORKER(1), COLLECTIVE_MAX, 1, &d);
	assert_int_equal(c.code, MU_INVALID_ARGUMENT);
}

static void cancelled_member__fails_the_round(void **state)
{
	struct collective_part p = part_of(WORKER(0), COLLECTIVE_ADD, 1);
	struct got a = {0}, b = {0};
	struct collective_call *call;

	p.group_size = 3;
	call = join_part(p, &a);
	p = part_of(WORKER(1), COLLECTIVE_ADD, 1);
	p.group_size = 3;
	collective_call_unref(join_part(p, &b));
	collective_cancel(call);
	collective_cancel(call);
	collective_call_unref(call);
	assert_int_equal(a.calls, 1);
	assert_int_equal(a.code, MU_CANCELLED);
	assert_int_equal(b.code, MU_ABORTED);
}

static void cancel_before_the_join__ends_the_call(void **state)
{
	struct collective_part p = part_of(WORKER(0), COLLECTIVE_ADD, 1);
	struct got a = {0}, b = {0};
	struct collective_call *call = collective_call_new(cs, &p, on_done, &a);

	mu_tensor_unref(&p.tensor);
	collective_cancel(call);
	collective_join(call);
	collective_call_unref(call);
	assert_int_equal(a.calls, 1);
	join(WORKER(1), COLLECTIVE_ADD, 1, &b);
	assert_int_equal(b.calls, 0);
	join(WORKER(0), COLLECTIVE_ADD, 1, &(struct got){0});
	assert_int_equal(b.calls, 1);
}

static void complete_a_round(void)
{
	struct got a = {0}, b = {0};

	join(WORKER(0), COLLECTIVE_ADD, 1, &a);
	join(WORKER(1), COLLECTIVE_ADD, 1, &b);
	assert_int_equal(b.code, 0);
}

static void member__of_an_unreachable_task__fails_the_round(void **state)
{
	struct got a = {0};

	complete_a_round();
	unreachable_device = WORKER(1);
	join(WORKER(0), COLLECTIVE_ADD, 1, &a);
	wait_for(&a);
	assert_int_equal(a.code, MU_UNAVAILABLE);
	assert_non_null(strstr(a.msg, "task:1"));
	unreachable_device = NULL;
	complete_a_round();
}

static void member__of_a_failed_step__fails_the_round_of_later_members(void **state)
{
	struct mu_err why;
	struct got a = {0};

	complete_a_round();
	mu_fail(&why, MU_INVALID_ARGUMENT, "division by zero");
	collective_report_failure(cs, WORKER(1), &why);
	join(WORKER(0), COLLECTIVE_ADD, 1, &a);
	wait_for(&a);
	assert_int_equal(a.code, MU_ABORTED);
	assert_non_null(strstr(a.msg, "division by zero"));
	mu_fail(&why, MU_ABORTED, "the consequence");
	collective_report_failure(cs, WORKER(0), &why);
	complete_a_round();
}

static void failure__caused_by_another__is_ignored(void **state)
{
	struct got a = {0}, b = {0};
	struct mu_err why;

	complete_a_round();
	mu_fail(&why, MU_INTERNAL, "first");
	collective_report_failure(cs, WORKER(1), &why);
	join(WORKER(0), COLLECTIVE_ADD, 1, &a);
	wait_for(&a);
	collective_report_failure(cs, WORKER(0), &why);
	join(WORKER(1), COLLECTIVE_ADD, 1, &b);
	nanosleep(&(struct timespec){.tv_sec = 2}, NULL);
	assert_int_equal(b.calls, 0);
	join(WORKER(0), COLLECTIVE_ADD, 1, &(struct got){0});
	assert_int_equal(b.code, 0);
}

static void timeout__fails_the_round(void **state)
{
	struct collective_part p = part_of(WORKER(0), COLLECTIVE_ADD, 1);
	struct got a = {0};

	p.timeout_ms = 10;
	collective_call_unref(join_part(p, &a));
	wait_for(&a);
	assert_int_equal(a.code, MU_DEADLINE_EXCEEDED);
}

static void group_size_out_of_range__is_rejected(void **state)
{
	struct collective_part p = part_of(WORKER(0), COLLECTIVE_ADD, 1);
	struct got a = {0};

	p.group_size = INT64_MAX;
	collective_call_unref(join_part(p, &a));
	assert_int_equal(a.code, MU_INVALID_ARGUMENT);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(collective__with_all_members_joined__gives_each_the_result),
	    TEST(gather__of_two_tasks__is_in_task_order),
	    TEST(broadcast__from_a_sender__reaches_the_receiver),
	    TEST(member__one_step_ahead__waits_for_the_next_round),
	    TEST(mismatched_parts__fail_for_all_members),
	    TEST(cancelled_member__fails_the_round),
	    TEST(cancel_before_the_join__ends_the_call),
	    TEST(member__of_an_unreachable_task__fails_the_round),
	    TEST(member__of_a_failed_step__fails_the_round_of_later_members),
	    TEST(failure__caused_by_another__is_ignored),
	    TEST(timeout__fails_the_round),
	    TEST(group_size_out_of_range__is_rejected),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
