/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs: what was put on a stream while it recorded, copied to a stream as often as wanted.  A
 * piece is set in what was made of the graph, not in the graph; another kernel or grid is refused,
 * and so is what the driver holds for unsafe while a thread records. */
#include <stdlib.h>
#include <string.h>

#include "tests/fake/cuda/fake_jobs.h"

/* What this thread records on; whether something has come to pass that may not meanwhile. */
static _Thread_local struct {
	struct stream *stream;
	bool spoilt;
} recording;

bool fake_capture_spoil(void)
{
	recording.spoilt = recording.stream != NULL;
	return recording.spoilt;
}

static struct graph *graph_new(void)
{
	struct graph *g = calloc(1, sizeof *g);

	g->last = &g->first;
	g->device = fake_current();
	fake_counts.graphs++;
	return g;
}

int fake_graph_free(void *graph)
{
	struct graph *g = graph;

	pthread_mutex_lock(&fake_lock);
	fake_counts.graphs--;
	pthread_mutex_unlock(&fake_lock);
	for (struct job *j = g->first, *next; j; j = next) {
		next = j->next;
		free(j);
	}
	free(g);
	return 0;
}

int fake_graph_exec_free(void *exec)
{
	return fake_graph_free(exec);
}

int fake_capture_begin(void *stream, int mode)
{
	struct stream *s = stream;

	FAKE_ANSWER_TO("capture_begin");
	if (!fake_stream_is_here(s))
		return INVALID_HANDLE;
	if (s->recording || recording.stream || mode != CUDA_CAPTURE_THREAD_LOCAL)
		return INVALID_VALUE;
	recording.stream = s;
	recording.spoilt = false;
	pthread_mutex_lock(&fake_lock);
	s->recording = graph_new();
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

int fake_capture_see(void *stream, int *status, uint64_t *id, void **graph, void *const **last,
		     size_t *n_last)
{
	static _Thread_local void *piece;
	struct stream *s = stream;

	FAKE_ANSWER_TO("capture_see");
	if (!fake_stream_is_here(s))
		return INVALID_HANDLE;
	piece = NULL;
	*status = s->recording ? CUDA_CAPTURE_ACTIVE : 0;
	for (struct job *j = s->recording ? s->recording->first : NULL; j; j = j->next)
		piece = j;
	*id = 1;
	*graph = s->recording;
	*last = &piece;
	*n_last = piece ? 1 : 0;
	return 0;
}

/* Ends it in any case; what fails is not handed out. */
int fake_capture_end(void *stream, void **graph)
{
	struct stream *s = stream;
	struct graph *g = s->recording;
	int result = fake_cuda_answer_here("capture_end");

	if (!g)
		return INVALID_VALUE;
	if (recording.stream != s)
		return CAPTURE_WRONG_THREAD;
	if (!result && recording.spoilt)
		result = CAPTURE_INVALIDATED;
	recording.stream = NULL;
	pthread_mutex_lock(&fake_lock);
	s->recording = NULL;
	pthread_mutex_unlock(&fake_lock);
	if (result)
		fake_graph_free(g);
	else
		*graph = g;
	return result;
}

static void copy_jobs(const struct graph *from, struct job ***last)
{
	for (const struct job *j = from->first; j; j = j->next) {
		struct job *copy = malloc(sizeof *copy + j->args_size);
		memcpy(copy, j, sizeof *j + j->args_size);
		copy->next = NULL;
		**last = copy;
		*last = &copy->next;
	}
}

int fake_graph_make(void **exec, void *graph, unsigned long long flags)
{
	FAKE_ANSWER_TO("graph_make");
	pthread_mutex_lock(&fake_lock);
	struct graph *x = graph_new();
	x->of = graph;
	copy_jobs(graph, &x->last);
	pthread_mutex_unlock(&fake_lock);
	*exec = x;
	return 0;
}

int fake_graph_set(void *exec, void *node, const struct cuda_kernel_piece *to)
{
	struct graph *x = exec;
	struct job *at = x->first;
	const struct job *j = x->of->first;

	FAKE_ANSWER_TO("graph_set");
	if (x->device != fake_current())
		return INVALID_HANDLE;
	for (; j && j != node; j = j->next)
		at = at->next;
	const struct function *f = to->kernel;
	if (!j || j->deed != LAUNCH || !f || f->device != x->device || f->kernel != j->kernel ||
	    to->blocks[0] != j->blocks || to->threads[0] != j->threads || !to->args || to->extra ||
	    to->by_library || !fake_shape_is_possible(f, to->blocks, to->threads, to->shared))
		return INVALID_VALUE;
	pthread_mutex_lock(&fake_lock);
	memcpy(at->args, to->args[0], at->args_size);
	fake_counts.pieces_set++;
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

int fake_graph_launch(void *exec, void *stream)
{
	struct stream *s = stream;

	FAKE_ANSWER_TO("graph_launch");
	if (!fake_stream_is_here(s) || ((struct graph *)exec)->device != s->device || s->recording)
		return INVALID_HANDLE;
	pthread_mutex_lock(&fake_lock);
	copy_jobs(exec, &s->last);
	fake_counts.graph_launches++;
	pthread_cond_broadcast(&fake_news);
	pthread_mutex_unlock(&fake_lock);
	return 0;
}
