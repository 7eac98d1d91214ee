/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors on a GPU, and copies between host and device.  The host memory is pageable, so the driver
 * has read it when a copy to the device returns.  A copy to the host blocks until its end, so a
 * thread of the GPU runs it. */

#include "task/device/gpu_internal.h"

/* ---- tensors ---- */

struct buffer_owner { /* the device is first, for device_of_tensor */
	struct gpu *gpu;
	struct gpu_block *block;
};

static void release_block(struct mu_tbuf *b)
{
	struct buffer_owner *h = b->owner;

	gpu_memory_free(h->gpu, h->block);
	free(h);
	free(b);
}

static int new_tensor(struct gpu *g, enum mu_dtype dtype, const struct mu_shape *shape,
		      const char *holder, void *stream, struct mu_tensor *out, struct mu_err *err)
{
	size_t size = mu_dtype_size(dtype), bytes;
	struct gpu_block *b;
	int rc = gpu_enter(g, err);

	if (rc)
		return rc;
	if (!size)
		return mu_fail(err, MU_INTERNAL, "a GPU cannot hold %s", mu_dtype_name(dtype));
	if (__builtin_mul_overflow(size, (size_t)shape->count, &bytes))
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "a %s of shape %s is too large",
			       mu_dtype_name(dtype), mu_shape_str(shape));
	if (gpu_memory_alloc(g, bytes, holder, stream, &b, err))
		return mu_append(err, "; shape %s, %s", mu_shape_str(shape), mu_dtype_name(dtype));
	struct buffer_owner *h = MU_NEW(struct buffer_owner);
	*h = (struct buffer_owner){g, b};
	mu_tensor_wrap(out, dtype, shape, (void *)(uintptr_t)gpu_block_address(b), release_block,
		       h);
	out->buf->device = true;
	return 0;
}

int gpu_tensor_new(struct gpu *g, enum mu_dtype dtype, const struct mu_shape *shape,
		   const char *holder, struct mu_tensor *out, struct mu_err *err)
{
	return new_tensor(g, dtype, shape, holder, g->compute, out, err);
}

int gpu_tensor_copy(struct gpu *g, const struct mu_tensor *from, const char *holder,
		    struct mu_tensor *out, struct mu_err *err)
{
	struct mu_tensor t;
	int rc = gpu_tensor_new(g, from->dtype, &from->shape, holder ? holder : "a copy", &t, err);

	if (rc)
		return rc;
	rc = gpu_copy_within(g, gpu_address(&t), gpu_address(from), mu_tensor_bytes(from), err);
	if (rc)
		mu_tensor_unref(&t);
	else
		*out = t;
	return rc;
}

struct gpu *gpu_of_tensor(const struct mu_tensor *t)
{
	return t->buf && t->buf->release == release_block
		   ? ((struct buffer_owner *)t->buf->owner)->gpu
		   : NULL;
}

/* ---- copies to the device ---- */

int gpu_copy_to_device(struct gpu *g, const struct mu_tensor *from, const char *holder,
		       struct mu_tensor *out, struct mu_err *err)
{
	const size_t bytes = mu_tensor_bytes(from);
	struct mu_tensor to;
	int rc = new_tensor(g, from->dtype, &from->shape, holder, g->in, &to, err);

	if (rc)
		return rc;
	if (bytes)
		rc = gpu_check(g, g->api->copy_in(gpu_address(&to), from->data, bytes, g->in),
			       "copying in", err);
	if (!rc)
		rc = gpu_stream_wait(g, g->in, g->compute, err);
	if (rc) {
		g->api->stream_sync(g->in); /* before the compute stream frees the memory */
		mu_tensor_unref(&to);
		return rc;
	}
	*out = to;
	return 0;
}

/* ---- copies to the host ---- */

struct copy_out {
	struct copy_out *next;
	void *event; /* follows the kernels that were launched before */
	struct mu_tensor from, *out;
	device_done done;
	void *arg;
};

static int copy_out(struct gpu *g, struct copy_out *c, struct mu_tensor *to, struct mu_err *err)
{
	const size_t bytes = mu_tensor_bytes(&c->from);
	int rc;

	if ((rc = gpu_enter(g, err)) ||
	    (rc = mu_tensor_new(to, c->from.dtype, &c->from.shape, err)) ||
	    (rc = gpu_check(g, g->api->stream_wait(g->out, c->event, 0), "ordering its streams",
			    err)))
		return rc;
	if (bytes &&
	    (rc = gpu_check(g, g->api->copy_out(to->data, gpu_address(&c->from), bytes, g->out),
			    "copying out", err)))
		return rc;
	return gpu_check(g, g->api->stream_sync(g->out), "copying out", err);
}

static void *copies_run(void *arg)
{
	struct gpu *g = arg;
	struct gpu_copies *s = &g->copies;

	pthread_mutex_lock(&s->lock);
	for (;;) {
		struct copy_out *c = s->first;
		if (!c && s->stopping)
			break;
		if (!c) {
			pthread_cond_wait(&s->not_empty, &s->lock);
			continue;
		}
		s->first = c->next;
		if (!s->first)
			s->last = &s->first;
		pthread_mutex_unlock(&s->lock);
		struct mu_tensor to = {0};
		struct mu_err err;
		int rc = copy_out(g, c, &to, &err);
		if (rc)
			mu_tensor_unref(&to);
		else
			*c->out = to;
		g->api->event_free(c->event);
		mu_tensor_unref(&c->from);
		c->done(c->arg, rc ? &err : NULL);
		free(c);
		pthread_mutex_lock(&s->lock);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

int gpu_copies_start(struct gpu *g, struct mu_err *err)
{
	struct gpu_copies *s = &g->copies;

	s->last = &s->first;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->not_empty, NULL);
	int rc = pthread_create(&s->thread, NULL, copies_run, g);
	s->started = rc == 0;
	return rc ? mu_fail_errno(err, rc, "no thread for the copies of the GPU") : 0;
}

void gpu_copies_stop(struct gpu *g)
{
	struct gpu_copies *s = &g->copies;

	if (!s->started)
		return;
	pthread_mutex_lock(&s->lock);
	s->stopping = true;
	pthread_cond_signal(&s->not_empty);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->not_empty);
}

int gpu_copy_to_host(struct gpu *g, const struct mu_tensor *from, struct mu_tensor *out,
		     device_done done, void *arg, struct mu_err *err)
{
	struct gpu_copies *s = &g->copies;
	void *event;
	int rc = gpu_enter(g, err);

	if (rc || (rc = gpu_check(g, g->api->event_new(&event, CUDA_EVENT_NO_TIMING),
				  "making an event", err)))
		return rc;
	if ((rc = gpu_check(g, g->api->event_record(event, g->compute), "recording an event",
			    err))) {
		g->api->event_free(event);
		return rc;
	}
	struct copy_out *c = MU_NEW(struct copy_out);
	*c = (struct copy_out){NULL, event, mu_tensor_ref(from), out, done, arg};
	pthread_mutex_lock(&s->lock);
	*s->last = c;
	s->last = &c->next;
	pthread_cond_signal(&s->not_empty);
	pthread_mutex_unlock(&s->lock);
	return 0;
}
