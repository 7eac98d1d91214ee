/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors on a GPU, and their way in and out.  What is not page-locked goes through a staging
 * piece, which the copy's end gives back; what comes out lies in one, and stays there when it is
 * large. */
#include <stdio.h>
#include <string.h>

#include "lib/base/pb.h"
#include "task/device/gpu_internal.h"

enum { SMALL = 64 << 10 }; /* copied once more rather than keeping a staging piece away */

/* ---- tensors ---- */

struct held {
	struct gpu *gpu;
	struct gpu_block *block;
};

static void release_block(struct mu_tbuf *b)
{
	struct held *h = b->owner;

	gpu_memory_give(h->gpu->memory, h->block, atomic_load(&h->gpu->launched));
	free(h);
	free(b);
}

static int new_tensor(struct gpu *g, enum mu_dtype dtype, const struct mu_shape *shape,
		      const char *holder, struct mu_tensor *out, uint64_t *after,
		      struct mu_err *err)
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
	b = gpu_memory_take(g->memory, bytes, holder, atomic_load(&g->over), after, err);
	if (!b)
		return mu_append(err, "; shape %s, %s", mu_shape_str(shape), mu_dtype_name(dtype));
	struct held *h = MU_NEW(struct held);
	*h = (struct held){g, b};
	mu_tensor_wrap(out, dtype, shape, (void *)(uintptr_t)gpu_block_address(b), release_block,
		       h);
	out->buf->device = true;
	return 0;
}

int gpu_tensor_new(struct gpu *g, enum mu_dtype dtype, const struct mu_shape *shape,
		   const char *holder, struct mu_tensor *out, struct mu_err *err)
{
	uint64_t after;

	return new_tensor(g, dtype, shape, holder, out, &after, err);
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
	return t->buf && t->buf->release == release_block ? ((struct held *)t->buf->owner)->gpu
							  : NULL;
}

/* ---- pieces of staging memory as tensors ---- */

struct staged {
	struct gpu *gpu;
	void *piece;
	size_t bytes;
};

static void release_staged(struct mu_tbuf *b)
{
	struct staged *s = b->owner;

	gpu_staging_give(s->gpu->staging, s->piece, s->bytes);
	free(s);
	free(b);
}

static bool is_staged_by(const struct gpu *g, const struct mu_tensor *t)
{
	return t->buf->release == release_staged && ((struct staged *)t->buf->owner)->gpu == g;
}

static int new_staged(struct gpu *g, enum mu_dtype dtype, const struct mu_shape *shape,
		      size_t bytes, struct mu_tensor *out, struct mu_err *err)
{
	void *piece;
	int rc = gpu_staging_take(g->staging, bytes, &piece, err);

	if (rc)
		return rc;
	struct staged *s = MU_NEW(struct staged);
	*s = (struct staged){g, piece, bytes};
	mu_tensor_wrap(out, dtype, shape, piece, release_staged, s);
	return 0;
}

/* ---- in ---- */

static void let_go(void *arg, const struct mu_err *err)
{
	struct mu_tensor *t = arg;

	mu_tensor_unref(t);
	free(t);
}

/* `second` does nothing more until all that is on `first` now has ended. */
static int stream_after(struct gpu *g, void *second, void *first, struct mu_err *err)
{
	void *event;
	int rc = gpu_event_take(g, &event, err);

	if (rc)
		return rc;
	if (!(rc = gpu_check(g, g->api->event_record(event, first), "recording an event", err)))
		rc = gpu_check(g, g->api->stream_wait(second, event, 0), "ordering its streams",
			       err);
	gpu_event_give(g, event); /* what was recorded is remembered by who waits */
	return rc;
}

/* The bytes where the device can fetch them while they last: a new reference to `from`, or a copy.
 */
static int lay_ready(struct gpu *g, const struct mu_tensor *from, size_t bytes,
		     struct mu_tensor *out, struct mu_err *err)
{
	int rc;

	if (is_staged_by(g, from)) {
		*out = mu_tensor_ref(from);
		return 0;
	}
	if (!(rc = new_staged(g, from->dtype, &from->shape, bytes, out, err)))
		memcpy(out->data, from->data, bytes);
	return rc;
}

static int copy_in(struct gpu *g, struct mu_tensor *to, const struct mu_tensor *ready, size_t bytes,
		   bool must_wait, struct mu_err *err)
{
	int rc = 0;

	if (must_wait)
		rc = stream_after(g, g->in.stream, g->compute.stream, err);
	if (!rc)
		rc =
		    gpu_check(g, g->api->copy_in(gpu_address(to), ready->data, bytes, g->in.stream),
			      "copying in", err);
	if (!rc)
		rc = stream_after(g, g->compute.stream, g->in.stream, err);
	return rc;
}

int gpu_bring_in(struct gpu *g, const struct mu_tensor *from, const char *holder,
		 struct mu_tensor *out, struct mu_err *err)
{
	MU_AUTO_TENSOR ready = {0};
	struct mu_tensor to;
	size_t bytes = mu_tensor_bytes(from);
	uint64_t after;
	int rc = new_tensor(g, from->dtype, &from->shape, holder, &to, &after, err);

	if (rc)
		return rc;
	if (bytes && !(rc = lay_ready(g, from, bytes, &ready, err)))
		rc = copy_in(g, &to, &ready, bytes, after != 0, err);
	if (rc) {
		mu_tensor_unref(&to);
		return rc;
	}
	*out = to;
	if (!bytes)
		return 0;
	struct mu_tensor *kept = MU_NEW(struct mu_tensor);
	*kept = mu_tensor_ref(&ready);
	if (gpu_stream_on_completion(&g->in, 0, let_go, kept, NULL)) {
		g->api->stream_sync(g->in.stream);
		let_go(kept, NULL);
	}
	return 0;
}

/* ---- out ---- */

struct leaving {
	struct mu_tensor from, staged, *out;
	gpu_done done;
	void *arg;
};

static void left(void *arg, const struct mu_err *err)
{
	struct leaving *l = arg;
	struct mu_err why;

	if (!err && l->staged.buf->size <= SMALL) {
		if (mu_tensor_new(l->out, l->staged.dtype, &l->staged.shape, &why))
			err = &why;
		else
			memcpy(l->out->data, l->staged.data, l->staged.buf->size);
	} else if (!err) {
		*l->out = mu_tensor_ref(&l->staged);
	}
	mu_tensor_unref(&l->from);
	mu_tensor_unref(&l->staged);
	l->done(l->arg, err);
	free(l);
}

int gpu_bring_out(struct gpu *g, const struct mu_tensor *from, struct mu_tensor *out, gpu_done done,
		  void *arg, struct mu_err *err)
{
	struct leaving l = {.out = out, .done = done, .arg = arg};
	size_t bytes = mu_tensor_bytes(from);
	uint64_t launched = atomic_load(&g->launched);
	int rc = gpu_enter(g, err);

	if (rc || (rc = new_staged(g, from->dtype, &from->shape, bytes, &l.staged, err)))
		return rc;
	if (bytes && !(rc = stream_after(g, g->out.stream, g->compute.stream, err)))
		rc = gpu_check(
		    g, g->api->copy_out(l.staged.data, gpu_address(from), bytes, g->out.stream),
		    "copying out", err);
	if (!rc) {
		struct leaving *kept = mu_xmalloc(sizeof *kept);
		l.from = mu_tensor_ref(from);
		memcpy(kept, &l, sizeof l);
		if (!(rc = gpu_stream_on_completion(&g->out, launched, left, kept, err)))
			return 0;
		free(kept);
	}
	g->api->stream_sync(g->out.stream); /* nothing may still be on its way to what is let go */
	mu_tensor_unref(&l.from);
	mu_tensor_unref(&l.staged);
	return rc;
}

/* ---- options ---- */

int gpu_options_read(struct gpu_options *o, struct mu_span config, struct mu_err *err)
{
	enum { GPU_OPTIONS = 6, FRACTION = 1, ALLOW_GROWTH = 4, VISIBLE = 5 };
	struct gpu_options got = *o;
	struct mu_pb all = mu_pb_of(config), m;
	struct mu_pb_field f;

	while (mu_pb_next(&all, &f)) {
		if (f.number != GPU_OPTIONS || f.type != MU_PB_BYTES)
			continue;
		m = mu_pb_of(f.bytes);
		while (mu_pb_next(&m, &f)) {
			if (f.number == FRACTION && f.type == MU_PB_FIXED64)
				got.fraction = mu_pb_double(&f);
			else if (f.number == ALLOW_GROWTH && f.type == MU_PB_VARINT)
				got.growth = f.value != 0;
			else if (f.number == VISIBLE && f.bytes.len < sizeof got.visible)
				snprintf(got.visible, sizeof got.visible, "%.*s", (int)f.bytes.len,
					 f.bytes.data);
			else if (f.number == VISIBLE)
				return mu_fail(err, MU_INVALID_ARGUMENT,
					       "'visible_device_list' is longer than %zu bytes",
					       sizeof got.visible - 1);
		}
		if (m.bad)
			return mu_fail(err, MU_INVALID_ARGUMENT, "gpu_options are truncated");
	}
	if (!(got.fraction >= 0 && got.fraction <= 1))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "per_process_gpu_memory_fraction is %g; it is between 0 and 1",
			       got.fraction);
	*o = got;
	return 0;
}
