/* SPDX-License-Identifier: Apache-2.0 */
/* A lane is a stream with a thread beside it.  The thread takes the events that were recorded on
 * the stream in turn, waits for each, and calls whoever asked: it looks a while before it sleeps,
 * since waking up takes longer than most copies. */
#include "lib/base/clock.h"
#include "task/device/gpu_internal.h"

enum { LOOK_NS = 50000 };

struct gpu_ending {
	struct gpu_ending *next;
	void *event;
	gpu_done done;
	void *arg;
	uint64_t launched; /* before the event */
};

static int wait_for(const struct cuda_api *api, void *event)
{
	int64_t end = mu_clock_ns() + LOOK_NS;
	int result;

	while ((result = api->event_query(event)) == CUDA_NOT_READY && mu_clock_ns() < end)
		;
	return result == CUDA_NOT_READY ? api->event_sync(event) : result;
}

static void note_over(struct gpu *g, uint64_t launched)
{
	uint64_t was = atomic_load(&g->over);

	while (was < launched && !atomic_compare_exchange_weak(&g->over, &was, launched))
		;
}

static void end(struct gpu_lane *l, struct gpu_ending *e)
{
	struct mu_err err;
	int rc = gpu_enter(l->gpu, &err);

	if (!rc)
		rc = gpu_check(l->gpu, wait_for(l->gpu->api, e->event), "waiting for its work",
			       &err);
	if (!rc)
		note_over(l->gpu, e->launched);
	gpu_event_give(l->gpu, e->event);
	e->done(e->arg, rc ? &err : NULL);
	free(e);
}

static void *run(void *arg)
{
	struct gpu_lane *l = arg;

	pthread_mutex_lock(&l->lock);
	for (;;) {
		struct gpu_ending *e = l->first;
		if (!e && l->stopping)
			break;
		if (!e) {
			pthread_cond_wait(&l->more, &l->lock);
			continue;
		}
		l->first = e->next;
		if (!l->first)
			l->last = &l->first;
		pthread_mutex_unlock(&l->lock);
		end(l, e);
		pthread_mutex_lock(&l->lock);
	}
	pthread_mutex_unlock(&l->lock);
	return NULL;
}

int gpu_lane_open(struct gpu_lane *l, struct gpu *g, struct mu_err *err)
{
	int rc = gpu_check(g, g->api->stream_new(&l->stream, CUDA_STREAM_NON_BLOCKING),
			   "making a stream", err);

	if (!rc)
		l->gpu = g;
	return rc;
}

int gpu_lane_start(struct gpu_lane *l, struct gpu *g, struct mu_err *err)
{
	int rc = gpu_lane_open(l, g, err);

	if (rc)
		return rc;
	l->last = &l->first;
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->more, NULL);
	rc = pthread_create(&l->thread, NULL, run, l);
	l->started = rc == 0;
	return rc ? mu_fail_errno(err, rc, "no thread for a stream of the GPU") : 0;
}

void gpu_lane_stop(struct gpu_lane *l)
{
	if (l->started) {
		pthread_mutex_lock(&l->lock);
		l->stopping = true;
		pthread_cond_signal(&l->more);
		pthread_mutex_unlock(&l->lock);
		pthread_join(l->thread, NULL);
		pthread_mutex_destroy(&l->lock);
		pthread_cond_destroy(&l->more);
	}
	if (l->stream)
		l->gpu->api->stream_free(l->stream);
	*l = (struct gpu_lane){0};
}

int gpu_lane_tell(struct gpu_lane *l, uint64_t launched, gpu_done done, void *arg,
		  struct mu_err *err)
{
	struct gpu *g = l->gpu;
	void *event;
	int rc = gpu_event_take(g, &event, err);

	if (rc)
		return rc;
	rc = gpu_check(g, g->api->event_record(event, l->stream), "recording an event", err);
	if (rc) {
		gpu_event_give(g, event);
		return rc;
	}
	struct gpu_ending *e = MU_NEW(struct gpu_ending);
	*e = (struct gpu_ending){NULL, event, done, arg, launched};
	pthread_mutex_lock(&l->lock);
	*l->last = e;
	l->last = &e->next;
	pthread_cond_signal(&l->more);
	pthread_mutex_unlock(&l->lock);
	return 0;
}
