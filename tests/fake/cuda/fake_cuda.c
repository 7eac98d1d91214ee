/* SPDX-License-Identifier: Apache-2.0 */
/* The driver: see fake_cuda.h.  A stream counts the recordings it was given and those it has
 * reached. An event names the last one of its own; who waits, waits for that, whatever the event is
 * used for afterwards. One lock for all of it: this is for being right, not fast. */
#include "tests/fake/cuda/fake_jobs.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FAULT = 700, MAX_ARGS = 4096 };

struct event {
	struct stream *stream; /* that it was last recorded on */
	unsigned long ticket;
};
struct device {
	size_t used;
	int fault;
};
struct block { /* before what was asked for */
	size_t size;
	int device;
};

struct fake_cuda fake_cuda;
struct fake_cuda_counts fake_counts;
static struct device devices[64];
static struct stream *gone; /* that were freed */
pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t fake_news = PTHREAD_COND_INITIALIZER;
static _Thread_local int current = -1;
static unsigned seed = 1;

void fake_cuda_reset(void)
{
	fake_cuda = (struct fake_cuda){
	    .devices = 2, .memory = 256 << 20, .major = 9, .minor = 0, .driver = 13000};
	memset(devices, 0, sizeof devices);
	fake_counts = (struct fake_cuda_counts){0};
}

void fake_cuda_count(struct fake_cuda_counts *out)
{
	pthread_mutex_lock(&fake_lock);
	*out = fake_counts;
	pthread_mutex_unlock(&fake_lock);
}

void fake_cuda_note(void (*how)(struct fake_cuda_counts *c))
{
	pthread_mutex_lock(&fake_lock);
	how(&fake_counts);
	pthread_mutex_unlock(&fake_lock);
}

void fake_cuda_one_plan(struct fake_cuda_counts *c)
{
	c->plans++;
}

void fake_cuda_note_library(int more)
{
	pthread_mutex_lock(&fake_lock);
	fake_counts.libraries += more;
	pthread_mutex_unlock(&fake_lock);
}

void fake_cuda_note_description(int more)
{
	pthread_mutex_lock(&fake_lock);
	fake_counts.descriptions += more;
	pthread_mutex_unlock(&fake_lock);
}

/* What an entry point answers before it does anything. */
int fake_cuda_answer(const char *call)
{
	int result = 0;

	pthread_mutex_lock(&fake_lock);
	if (fake_cuda.fail_call && strcmp(call, fake_cuda.fail_call) == 0 &&
	    --fake_cuda.fail_at <= 0) {
		result = fake_cuda.fail_result;
		fake_cuda.fail_call = NULL;
	}
	if (!result && current >= 0)
		result = devices[current].fault;
	pthread_mutex_unlock(&fake_lock);
	return result;
}
/* ---- devices ---- */

static int init(unsigned flags)
{
	return fake_cuda.init_result;
}

static int driver_version(int *version)
{
	*version = fake_cuda.driver;
	return 0;
}

static int device_count(int *count)
{
	*count = fake_cuda.devices;
	return 0;
}

static int device_get(int *device, int ordinal)
{
	*device = ordinal;
	return ordinal >= 0 && ordinal < fake_cuda.devices ? 0 : 101;
}

static int device_name(char *name, int len, int device)
{
	snprintf(name, (size_t)len, "Fake GPU %d", device);
	return 0;
}

static int device_bus_id(char *id, int len, int device)
{
	snprintf(id, (size_t)len, "0000:%02x:00.0", device);
	return 0;
}

static int device_attribute(int *value, int attribute, int device)
{
	*value = attribute == CUDA_MAJOR   ? fake_cuda.major
		 : attribute == CUDA_MINOR ? fake_cuda.minor
					   : 2;
	return 0;
}

static int context_retain(void **context, int device)
{
	FAKE_ANSWER();
	pthread_mutex_lock(&fake_lock);
	fake_counts.contexts++;
	pthread_mutex_unlock(&fake_lock);
	*context = &devices[device];
	return 0;
}

static int context_release(int device)
{
	pthread_mutex_lock(&fake_lock);
	fake_counts.contexts--;
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

static int context_set(void *context)
{
	current = (int)((struct device *)context - devices);
	return 0;
}

/* ---- memory ---- */

static int memory_info(size_t *free_bytes, size_t *total)
{
	*total = fake_cuda.memory;
	*free_bytes = fake_cuda.memory - devices[current].used;
	return 0;
}

static int memory_alloc(cuda_ptr *at, size_t bytes)
{
	struct block *b;

	FAKE_ANSWER();
	pthread_mutex_lock(&fake_lock);
	b = devices[current].used + bytes <= fake_cuda.memory
		? aligned_alloc(256, 256 + (bytes + 255) / 256 * 256)
		: NULL;
	if (b) {
		*b = (struct block){bytes, current};
		devices[current].used += bytes;
		fake_counts.allocations++;
		fake_counts.device_bytes += bytes;
		if (fake_counts.device_bytes > fake_counts.most_bytes)
			fake_counts.most_bytes = fake_counts.device_bytes;
		memset((char *)b + 256, 0xa5, bytes); /* never zero by chance */
		*at = (cuda_ptr)(uintptr_t)b + 256;
	}
	pthread_mutex_unlock(&fake_lock);
	return b ? 0 : CUDA_NO_MEMORY;
}

static int memory_free(cuda_ptr at)
{
	struct block *b = (struct block *)(uintptr_t)(at - 256);

	pthread_mutex_lock(&fake_lock);
	devices[b->device].used -= b->size;
	fake_counts.device_bytes -= b->size;
	pthread_mutex_unlock(&fake_lock);
	free(b);
	return 0;
}

static int host_alloc(void **at, size_t bytes, unsigned flags)
{
	size_t *p;

	FAKE_ANSWER();
	p = malloc(64 + bytes);
	if (!p)
		return CUDA_NO_MEMORY;
	*p = bytes;
	*at = (char *)p + 64;
	pthread_mutex_lock(&fake_lock);
	fake_counts.host_bytes += bytes;
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

static int host_free(void *at)
{
	size_t *p = (size_t *)(void *)((char *)at - 64);

	pthread_mutex_lock(&fake_lock);
	fake_counts.host_bytes -= *p;
	pthread_mutex_unlock(&fake_lock);
	free(p);
	return 0;
}

/* ---- streams ---- */

static void dawdle(void)
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

/* With the lock held for RECORD and WAIT, without it for the rest. */
static void do_job(struct stream *s, const struct job *j, int device)
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
	case RECORD:
		s->reached = j->ticket;
		break;
	case WAIT:
		while (j->awaited && j->awaited->reached < j->ticket)
			pthread_cond_wait(&fake_news, &fake_lock);
		break;
	}
	if (fault) {
		pthread_mutex_lock(&fake_lock);
		devices[device].fault = fault;
		pthread_mutex_unlock(&fake_lock);
	}
}

struct started {
	struct stream *stream;
	int device;
};

static void *run(void *arg)
{
	struct started at = *(struct started *)arg;
	struct stream *s = at.stream;

	free(arg);
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
		s->busy = true;
		bool locked = j->deed == RECORD || j->deed == WAIT, dead = devices[at.device].fault;
		if (!locked) {
			pthread_mutex_unlock(&fake_lock);
			dawdle();
		}
		if (locked || !dead)
			do_job(s, j, at.device);
		if (!locked)
			pthread_mutex_lock(&fake_lock);
		s->busy = false;
		free(j);
		pthread_cond_broadcast(&fake_news);
	}
	pthread_mutex_unlock(&fake_lock);
	host_kernels_thread_ends();
	return NULL;
}

static int stream_new(void **stream, unsigned flags)
{
	struct started *start;
	struct stream *s;

	FAKE_ANSWER();
	s = calloc(1, sizeof *s);
	s->last = &s->first;
	start = malloc(sizeof *start);
	*start = (struct started){s, current};
	pthread_mutex_lock(&fake_lock);
	fake_counts.streams++;
	pthread_mutex_unlock(&fake_lock);
	pthread_create(&s->thread, NULL, run, start);
	*stream = s;
	return 0;
}

static int stream_free(void *stream)
{
	struct stream *s = stream;

	pthread_mutex_lock(&fake_lock);
	s->stopping = true;
	fake_counts.streams--;
	pthread_cond_broadcast(&fake_news);
	pthread_mutex_unlock(&fake_lock);
	pthread_join(s->thread, NULL);
	/* its record stays: events name it, and other streams may be about to look whether it has
	 * reached them */
	pthread_mutex_lock(&fake_lock);
	s->next = gone;
	gone = s;
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

/* With the lock. */
static void append(void *stream, const struct job *like, const void *args, size_t size)
{
	struct stream *s = stream;
	struct job *j = malloc(sizeof *j + size);
	struct job ***last = s->recording ? &s->recording->last : &s->last;

	*j = *like;
	j->next = NULL;
	j->args_size = size;
	if (size)
		memcpy(j->args, args, size);
	**last = j;
	*last = &j->next;
	pthread_cond_broadcast(&fake_news);
}

static int put(void *stream, const struct job *like)
{
	pthread_mutex_lock(&fake_lock);
	append(stream, like, NULL, 0);
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

static int stream_sync(void *stream)
{
	struct stream *s = stream;

	pthread_mutex_lock(&fake_lock);
	while (s->first || s->busy)
		pthread_cond_wait(&fake_news, &fake_lock);
	pthread_mutex_unlock(&fake_lock);
	return fake_cuda_answer("stream_sync");
}

static int copy(const char *call, void *to, const void *from, size_t bytes, void *stream,
		unsigned long *count)
{
	struct job j = {.deed = COPY, .to = to, .from = from, .bytes = bytes};
	int result = fake_cuda_answer(call);

	if (result)
		return result;
	pthread_mutex_lock(&fake_lock);
	++*count;
	append(stream, &j, NULL, 0);
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

static int copy_in(cuda_ptr to, const void *from, size_t bytes, void *stream)
{
	return copy("copy_in", (void *)(uintptr_t)to, from, bytes, stream, &fake_counts.copies_in);
}

static int copy_out(void *to, cuda_ptr from, size_t bytes, void *stream)
{
	return copy("copy_out", to, (const void *)(uintptr_t)from, bytes, stream,
		    &fake_counts.copies_out);
}

static int copy_within(cuda_ptr to, cuda_ptr from, size_t bytes, void *stream)
{
	unsigned long none = 0;

	return copy("copy_within", (void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes,
		    stream, &none);
}

static int fill(cuda_ptr to, unsigned char byte, size_t bytes, void *stream)
{
	FAKE_ANSWER();
	pthread_mutex_lock(&fake_lock);
	fake_counts.fills++;
	pthread_mutex_unlock(&fake_lock);
	return put(
	    stream,
	    &(struct job){.deed = FILL, .to = (void *)(uintptr_t)to, .byte = byte, .bytes = bytes});
}

/* ---- events ---- */

static int event_new(void **event, unsigned flags)
{
	FAKE_ANSWER();
	*event = calloc(1, sizeof(struct event));
	pthread_mutex_lock(&fake_lock);
	fake_counts.events++;
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

static int event_free(void *event)
{
	pthread_mutex_lock(&fake_lock);
	fake_counts.events--;
	pthread_mutex_unlock(&fake_lock);
	free(event);
	return 0;
}

static int event_record(void *event, void *stream)
{
	struct event *e = event;

	FAKE_ANSWER();
	pthread_mutex_lock(&fake_lock);
	*e = (struct event){stream, ++((struct stream *)stream)->recorded};
	append(stream, &(struct job){.deed = RECORD, .ticket = e->ticket}, NULL, 0);
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

static int stream_wait(void *stream, void *event, unsigned flags)
{
	struct event *e = event;

	FAKE_ANSWER();
	pthread_mutex_lock(&fake_lock);
	append(stream, &(struct job){.deed = WAIT, .awaited = e->stream, .ticket = e->ticket}, NULL,
	       0);
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

static int event_query(void *event)
{
	struct event *e = event;

	pthread_mutex_lock(&fake_lock);
	bool reached = !e->stream || e->stream->reached >= e->ticket;
	pthread_mutex_unlock(&fake_lock);
	return reached ? fake_cuda_answer("event_query") : CUDA_NOT_READY;
}

static int event_sync(void *event)
{
	struct event *e = event;

	pthread_mutex_lock(&fake_lock);
	for (struct event at = *e; at.stream && at.stream->reached < at.ticket;)
		pthread_cond_wait(&fake_news, &fake_lock);
	pthread_mutex_unlock(&fake_lock);
	return fake_cuda_answer("event_sync");
}

/* ---- kernels ---- */

static int module_load(void **module, const void *image)
{
	FAKE_ANSWER();
	*module = (void *)(uintptr_t)image;
	return 0;
}

static int module_unload(void *module)
{
	return 0;
}

static int module_function(void **function, void *module, const char *name)
{
	*function = (void *)(uintptr_t)host_kernel_find(name);
	return *function ? 0 : CUDA_NOT_FOUND;
}

static int launch(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
		  unsigned bz, unsigned shared, void *stream, void **args, void **extra)
{
	const struct host_kernel *k = function;

	FAKE_ANSWER();
	if (!gx || !bx || bx > 1024 || gy != 1 || gz != 1 || by != 1 || bz != 1 ||
	    k->size > MAX_ARGS)
		return INVALID_VALUE;
	pthread_mutex_lock(&fake_lock);
	fake_counts.launches += !((struct stream *)stream)->recording;
	append(stream, &(struct job){.deed = LAUNCH, .kernel = k, .blocks = gx, .threads = bx},
	       args[0], k->size);
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

void fake_cuda_put(void *stream, const struct host_kernel *k, const void *args)
{
	pthread_mutex_lock(&fake_lock);
	append(stream, &(struct job){.deed = LAUNCH, .kernel = k, .blocks = 1, .threads = 1}, args,
	       k->size);
	pthread_mutex_unlock(&fake_lock);
}

static int error_text(int result, const char **text)
{
	*text = result == FAULT            ? "an illegal memory access was encountered"
		: result == CUDA_NO_MEMORY ? "out of memory"
					   : "made up";
	return 0;
}

const struct cuda_plugin *fake_cuda_plugin(void)
{
#define ENTRY(field, symbol, args)       .field = field,
#define GRAPH_ENTRY(field, symbol, args) .field = fake_##field,
	static const struct cuda_api api = {CUDA_PLAIN_API(ENTRY) CUDA_GRAPH_API(GRAPH_ENTRY)};
	static const struct cuda_plugin plugin = {CUDA_PLUGIN_VERSION, &api, &fake_blas, &fake_dnn,
						  "kernels"};

	return &plugin;
}
