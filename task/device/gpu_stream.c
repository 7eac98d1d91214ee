/* SPDX-License-Identifier: Apache-2.0 */
/* A CUDA stream with a completion thread.  The thread waits for each event that was recorded on the
 * stream, in order, and calls the function that was given with it. */
#include "task/device/gpu_internal.h"

struct gpu_completion {
	struct gpu_completion *next;
	void *event;
	gpu_done done;
	void *arg;
	uint64_t launched; /* before the event */
};

static void note_over(struct gpu *g, uint64_t launched)
{
	uint64_t was = atomic_load(&g->over);

	while (was < launched && !atomic_compare_exchange_weak(&g->over, &was, launched))
		;
}

static void complete(struct gpu_stream *s, struct gpu_completion *c)
{
	struct mu_err err;
	int rc = gpu_enter(s->gpu, &err);

	if (!rc)
		rc = gpu_check(s->gpu, s->gpu->api->event_sync(c->event), "waiting for its work",
			       &err);
	if (!rc)
		note_over(s->gpu, c->launched);
	gpu_event_give(s->gpu, c->event);
	c->done(c->arg, rc ? &err : NULL);
	free(c);
}

static void *run(void *arg)
{
	struct gpu_stream *s = arg;

	pthread_mutex_lock(&s->lock);
	for (;;) {
		struct gpu_completion *c = s->first;
		if (!c && s->stopping)
			break;
		if (!c) {
			pthread_cond_wait(&s->more, &s->lock);
			continue;
		}
		s->first = c->next;
		if (!s->first)
			s->last = &s->first;
		pthread_mutex_unlock(&s->lock);
		complete(s, c);
		pthread_mutex_lock(&s->lock);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

int gpu_stream_open(struct gpu_stream *s, struct gpu *g, struct mu_err *err)
{
	int rc = gpu_check(g, g->api->stream_new(&s->stream, CUDA_STREAM_NON_BLOCKING),
			   "making a stream", err);

	if (!rc)
		s->gpu = g;
	return rc;
}

int gpu_stream_start(struct gpu_stream *s, struct gpu *g, struct mu_err *err)
{
	int rc = gpu_stream_open(s, g, err);

	if (rc)
		return rc;
	s->last = &s->first;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->more, NULL);
	rc = pthread_create(&s->thread, NULL, run, s);
	s->started = rc == 0;
	return rc ? mu_fail_errno(err, rc, "no thread for a stream of the GPU") : 0;
}

void gpu_stream_stop(struct gpu_stream *s)
{
	if (s->started) {
		pthread_mutex_lock(&s->lock);
		s->stopping = true;
		pthread_cond_signal(&s->more);
		pthread_mutex_unlock(&s->lock);
		pthread_join(s->thread, NULL);
		pthread_mutex_destroy(&s->lock);
		pthread_cond_destroy(&s->more);
	}
	if (s->stream)
		s->gpu->api->stream_free(s->stream);
	*s = (struct gpu_stream){0};
}

int gpu_stream_on_completion(struct gpu_stream *s, uint64_t launched, gpu_done done, void *arg,
			     struct mu_err *err)
{
	struct gpu *g = s->gpu;
	void *event;
	int rc = gpu_event_take(g, &event, err);

	if (rc)
		return rc;
	rc = gpu_check(g, g->api->event_record(event, s->stream), "recording an event", err);
	if (rc) {
		gpu_event_give(g, event);
		return rc;
	}
	struct gpu_completion *c = MU_NEW(struct gpu_completion);
	*c = (struct gpu_completion){NULL, event, done, arg, launched};
	pthread_mutex_lock(&s->lock);
	*s->last = c;
	s->last = &c->next;
	pthread_cond_signal(&s->more);
	pthread_mutex_unlock(&s->lock);
	return 0;
}
