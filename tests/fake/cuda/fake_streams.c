/* SPDX-License-Identifier: Apache-2.0 */
/* Streams and events. A stream counts enqueued and completed event records. An event stores its
 * last record. A wait is for that record, even if the event is recorded again later. */
#include "tests/fake/cuda/fake_jobs.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FAULT = 700 };

struct event {
	struct stream *stream; /* stream of the last record */
	unsigned long ticket;
	int device;
	bool freed; /* the struct stays, so that use after free is reported */
	struct event *next;
};

struct stream *fake_streams;
static struct event *events;
static unsigned seed = 1;

/* ---- stream commands ---- */

static void random_delay(void)
{
	unsigned most = fake_cuda.slow;

	if (!most)
		return;
	pthread_mutex_lock(&fake_lock);
	seed = seed * 1103515245u + 12345u;
	struct timespec t = {0, (long)(seed >> 8) % (long)most * 1000};
	pthread_mutex_unlock(&fake_lock);
	nanosleep(&t, NULL);
}

static int launch_now(const struct job *j)
{
	if (fake_cuda.fault_kernel && strcmp(j->kernel->name, fake_cuda.fault_kernel) == 0)
		return FAULT;
	host_kernel_run(j->kernel, j->blocks, j->threads, j->args);
	return 0;
}

/* Holds the lock for RECORD and WAIT only. */
static void do_job(struct stream *s, const struct job *j)
{
	int fault = 0;

	switch (j->deed) {
	case LAUNCH:
		fault = launch_now(j);
		break;
	case COPY:
		memcpy(j->to, j->from, j->bytes);
		break;
	case FILL:
		memset(j->to, j->byte, j->bytes);
		break;
	case FREE:
		fake_block_free(j->to);
		break;
	case RECORD:
		s->reached = j->ticket;
		break;
	case WAIT:
		while (j->awaited && j->awaited->reached < j->ticket)
			pthread_cond_wait(&fake_news, &fake_lock);
		break;
	}
	if (fault)
		fake_fault(s->device, fault);
}

static void *run(void *arg)
{
	struct stream *s = arg;

	pthread_mutex_lock(&fake_lock);
	while (s->first || !s->stopping) {
		struct job *j = s->first;
		if (!j) {
			pthread_cond_wait(&fake_news, &fake_lock);
			continue;
		}
		s->first = j->next;
		if (!s->first)
			s->last = &s->first;
		s->current = j;
		bool locked = j->deed == RECORD || j->deed == WAIT,
		     dead = fake_has_fault(s->device);
		if (!locked) {
			pthread_mutex_unlock(&fake_lock);
			random_delay();
		}
		if (locked || !dead || j->deed == FREE)
			do_job(s, j);
		if (!locked)
			pthread_mutex_lock(&fake_lock);
		s->current = NULL;
		free(j);
		pthread_cond_broadcast(&fake_news);
	}
	pthread_mutex_unlock(&fake_lock);
	host_kernels_thread_ends();
	return NULL;
}

/* ---- streams ---- */

bool fake_stream_is_here(const struct stream *s)
{
	pthread_mutex_lock(&fake_lock);
	bool here = s && !s->stopping && s->device == fake_current();
	pthread_mutex_unlock(&fake_lock);
	return here;
}

int fake_stream_new(void **stream, unsigned flags)
{
	struct stream *s;

	FAKE_ANSWER_TO("stream_new");
	if (flags != CUDA_STREAM_NON_BLOCKING)
		return INVALID_VALUE;
	s = calloc(1, sizeof *s);
	s->last = &s->first;
	s->device = fake_current();
	pthread_mutex_lock(&fake_lock);
	fake_counts.streams++;
	s->next = fake_streams;
	fake_streams = s;
	pthread_create(&s->thread, NULL, run, s);
	pthread_mutex_unlock(&fake_lock);
	*stream = s;
	return 0;
}

int fake_stream_free(void *stream)
{
	struct stream *s = stream;

	if (!fake_stream_is_here(s))
		return INVALID_HANDLE;
	pthread_mutex_lock(&fake_lock);
	s->stopping = true;
	fake_counts.streams--;
	pthread_cond_broadcast(&fake_news);
	pthread_mutex_unlock(&fake_lock);
	pthread_join(s->thread, NULL);
	return 0;
}

void fake_append(struct stream *s, const struct job *like, const void *args, size_t size)
{
	struct job *j = malloc(sizeof *j + size);

	*j = *like;
	j->next = NULL;
	j->args_size = size;
	if (size)
		memcpy(j->args, args, size);
	*s->last = j;
	s->last = &j->next;
	pthread_cond_broadcast(&fake_news);
}

int fake_stream_sync(void *stream)
{
	struct stream *s = stream;

	if (!fake_stream_is_here(s))
		return INVALID_HANDLE;
	pthread_mutex_lock(&fake_lock);
	while (s->first || s->current)
		pthread_cond_wait(&fake_news, &fake_lock);
	pthread_mutex_unlock(&fake_lock);
	return fake_cuda_answer_here("stream_sync");
}

/* ---- events ---- */

static bool is_there(const struct event *e)
{
	pthread_mutex_lock(&fake_lock);
	bool there = e && !e->freed;
	pthread_mutex_unlock(&fake_lock);
	return there;
}

int fake_event_new(void **event, unsigned flags)
{
	struct event *e;

	FAKE_ANSWER_TO("event_new");
	e = calloc(1, sizeof *e);
	e->device = fake_current();
	pthread_mutex_lock(&fake_lock);
	fake_counts.events++;
	e->next = events;
	events = e;
	pthread_mutex_unlock(&fake_lock);
	*event = e;
	return 0;
}

int fake_event_free(void *event)
{
	struct event *e = event;

	if (!is_there(e))
		return INVALID_HANDLE;
	pthread_mutex_lock(&fake_lock);
	fake_counts.events--;
	e->freed = true;
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

int fake_event_record(void *event, void *stream)
{
	struct event *e = event;
	struct stream *s = stream;

	FAKE_ANSWER_TO("event_record");
	if (!is_there(e) || !fake_stream_is_here(s) || e->device != s->device)
		return INVALID_HANDLE;
	pthread_mutex_lock(&fake_lock);
	e->stream = s;
	e->ticket = ++s->recorded;
	fake_append(s, &(struct job){.deed = RECORD, .ticket = e->ticket}, NULL, 0);
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

int fake_stream_wait(void *stream, void *event, unsigned flags)
{
	struct event *e = event;
	struct stream *s = stream;

	FAKE_ANSWER_TO("stream_wait");
	if (!is_there(e) || !fake_stream_is_here(s))
		return INVALID_HANDLE;
	pthread_mutex_lock(&fake_lock);
	fake_append(s, &(struct job){.deed = WAIT, .awaited = e->stream, .ticket = e->ticket}, NULL,
		    0);
	pthread_mutex_unlock(&fake_lock);
	return 0;
}
