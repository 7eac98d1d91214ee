/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of test graphs on the runtime of the test group (one_runtime.h): run() waits for the end of
 * a step; open_step(), start_step() and close_step() let the test act in between. */
#ifndef MU_TESTS_TASK_RUN_STEP_H
#define MU_TESTS_TASK_RUN_STEP_H

#include <pthread.h>
#include <time.h>

#include "tests/task/build.h"
#include "tests/task/one_runtime.h"
#include "tests/wait.h"

static int64_t next_step = 1;

struct wait {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	int calls;
	struct mu_err err;
};

#define WAIT                                                                                       \
	{                                                                                          \
		PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0,                            \
		{                                                                                  \
			0                                                                          \
		}                                                                                  \
	}

static inline void on_done(void *arg, const struct mu_err *err)
{
	struct wait *w = arg;

	pthread_mutex_lock(&w->lock);
	w->calls++;
	if (err)
		w->err = *err;
	pthread_cond_signal(&w->cond);
	pthread_mutex_unlock(&w->lock);
}

static inline void wait_done(struct wait *w)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += TEST_TIMEOUT_S;
	pthread_mutex_lock(&w->lock);
	while (!w->calls)
		if (pthread_cond_timedwait(&w->cond, &w->lock, &until))
			break;
	assert_int_equal(w->calls, 1);
	pthread_mutex_unlock(&w->lock);
}

struct got {
	int calls;
	struct mu_err err;
	struct mu_tensor tensor;
	bool dead;
};

static inline void on_tensor(void *arg, const struct mu_err *err, struct mu_tensor *tensor,
			     bool dead)
{
	struct got *g = arg;

	g->calls++;
	if (err)
		g->err = *err;
	else
		g->tensor = *tensor;
	g->dead = dead;
}

/* Consumes g. */
static inline struct executor *compile(struct mu_graph *g)
{
	struct mu_err err = {0};
	struct executor *e = NULL;

	assert_ok(executor_new(rt, g, "", &e, &err), &err);
	return e;
}

/* A step and its executor. */
struct one_step {
	struct executor *executor;
	struct rendezvous *rendezvous;
	struct step *step;
	struct wait wait;
};

/* Consumes g. From here on the rendezvous of the step accepts sends and receives. */
static inline struct one_step open_step(struct mu_graph *g)
{
	struct executor *e = compile(g);

	return (struct one_step){e, rendezvous_table_get(rt->steps, next_step), NULL, WAIT};
}

static inline void start_step(struct one_step *s)
{
	s->step = executor_start(s->executor, s->rendezvous, NULL, NULL, on_done, &s->wait);
}

static inline void close_step(struct one_step *s)
{
	step_unref(s->step);
	rendezvous_unref(s->rendezvous);
	rendezvous_table_drop(rt->steps, next_step++, NULL);
	executor_unref(s->executor);
}

/* Runs a step to its end; got gets the tensor that is sent on edge "out". */
static inline void run(struct executor *e, struct wait *w, struct got *got)
{
	struct rendezvous *r = rendezvous_table_get(rt->steps, next_step);

	if (got)
		rendezvous_recv_local(r, EDGE_KEY("out"), on_tensor, got);
	struct step *s = executor_start(e, r, NULL, NULL, on_done, w);
	wait_done(w);
	step_unref(s);
	rendezvous_unref(r);
	rendezvous_table_drop(rt->steps, next_step++, NULL);
}

/* Runs a step that must succeed; returns the live tensor that is sent on edge "out". */
static inline struct mu_tensor run_tensor(struct executor *e)
{
	struct wait w = WAIT;
	struct got got = {0};

	run(e, &w, &got);
	if (w.err.code)
		fail_msg("%s", w.err.msg);
	assert_int_equal(got.calls, 1);
	assert_false(got.dead);
	return got.tensor;
}

static inline float run_scalar(struct executor *e)
{
	MU_AUTO_TENSOR t = run_tensor(e);

	assert_int_equal(t.dtype, MU_FLOAT);
	assert_int_equal(t.shape.count, 1);
	return MU_DATA(float, &t)[0];
}

#endif
