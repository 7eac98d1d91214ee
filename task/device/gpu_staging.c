/* SPDX-License-Identifier: Apache-2.0 */
/* Page-locked host memory, which the device copies from and to by itself.  It is dear to get, so
 * pieces are kept for the next copy of their size; sizes are powers of two. */
#include "task/device/gpu_internal.h"

enum { SMALLEST_BITS = 12, SIZES = 40 };
#define KEPT_BYTES ((size_t)1 << 30) /* beyond this, pieces go back to the driver */

struct piece {
	struct piece *next;
};
struct gpu_staging {
	struct gpu *gpu;
	pthread_mutex_t lock;
	struct piece *kept[SIZES];
	size_t bytes; /* kept */
};

static unsigned size_class(size_t bytes)
{
	unsigned bits = SMALLEST_BITS;

	while (bits < SIZES - 1 && (size_t)1 << bits < bytes)
		bits++;
	return bits;
}

struct gpu_staging *gpu_staging_new(struct gpu *g)
{
	struct gpu_staging *s = MU_NEW(struct gpu_staging);

	s->gpu = g;
	pthread_mutex_init(&s->lock, NULL);
	return s;
}

void gpu_staging_free(struct gpu_staging *s)
{
	if (!s)
		return;
	for (unsigned i = 0; i < SIZES; i++)
		while (s->kept[i]) {
			struct piece *p = s->kept[i];
			s->kept[i] = p->next;
			s->gpu->api->host_free(p);
		}
	pthread_mutex_destroy(&s->lock);
	free(s);
}

int gpu_staging_take(struct gpu_staging *s, size_t bytes, void **out, struct mu_err *err)
{
	unsigned c = size_class(bytes);
	int result;

	pthread_mutex_lock(&s->lock);
	struct piece *kept = s->kept[c];
	if (kept) {
		s->kept[c] = kept->next;
		s->bytes -= (size_t)1 << c;
	}
	pthread_mutex_unlock(&s->lock);
	*out = kept;
	if (kept)
		return 0;
	result = bytes > (size_t)1 << c ? CUDA_NO_MEMORY
					: s->gpu->api->host_alloc(out, (size_t)1 << c, 0);
	if (result == CUDA_NO_MEMORY)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED,
			       "no page-locked host memory for a copy of %zu bytes", bytes);
	return gpu_check(s->gpu, result, "making page-locked memory", err);
}

void gpu_staging_give(struct gpu_staging *s, void *p, size_t bytes)
{
	unsigned c = size_class(bytes);
	struct piece *piece = p;
	bool keep;

	pthread_mutex_lock(&s->lock);
	keep = s->bytes + ((size_t)1 << c) <= KEPT_BYTES;
	if (keep) {
		piece->next = s->kept[c];
		s->kept[c] = piece;
		s->bytes += (size_t)1 << c;
	}
	pthread_mutex_unlock(&s->lock);
	if (!keep && !gpu_enter(s->gpu, NULL))
		s->gpu->api->host_free(p);
}
