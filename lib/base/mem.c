/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/mem.h"

#include <stdio.h>
#include <string.h>

static void *abort_if_null(void *p, size_t size)
{
	if (!p && size) {
		fprintf(stderr, "muster: out of memory asking for %zu bytes\n", size);
		abort();
	}
	return p;
}

void *mu_xmalloc(size_t size)
{
	return abort_if_null(malloc(size), size);
}

void *mu_xcalloc(size_t count, size_t size)
{
	return abort_if_null(calloc(count, size), count ? size : 0);
}

void *mu_xrealloc(void *p, size_t size)
{
	return abort_if_null(realloc(p, size), size);
}

char *mu_xstrdup(const char *s)
{
	return mu_xstrndup(s, strlen(s));
}

char *mu_xstrdup_or_null(const char *s)
{
	return s && *s ? mu_xstrdup(s) : NULL;
}

char *mu_xstrndup(const char *s, size_t n)
{
	char *p = mu_xmalloc(n + 1);

	if (n)
		memcpy(p, s, n);
	p[n] = '\0';
	return p;
}

char *mu_xasprintf(const char *fmt, ...)
{
	va_list ap;
	char *p = NULL;

	va_start(ap, fmt);
	if (vasprintf(&p, fmt, ap) < 0)
		abort_if_null(NULL, 1);
	va_end(ap);
	return p;
}

struct mu_arena_block {
	struct mu_arena_block *next;
	_Alignas(16) char data[];
};

/* Block sizes double from 4 KiB, so that big arenas have few blocks.  A larger request gets a
 * separate block. */
enum { FIRST_BLOCK = 4096, LARGEST_BLOCK = 1 << 20 };

void mu_arena_init(struct mu_arena *a)
{
	memset(a, 0, sizeof *a);
}

void mu_arena_fini(struct mu_arena *a)
{
	while (a->head) {
		struct mu_arena_block *next = a->head->next;
		free(a->head);
		a->head = next;
	}
	mu_arena_init(a);
}

static char *new_block(struct mu_arena *a, size_t size)
{
	struct mu_arena_block *b = mu_xmalloc(sizeof *b + size);

	b->next = a->head;
	a->head = b;
	return b->data;
}

void *mu_arena_alloc(struct mu_arena *a, size_t size)
{
	size = size ? (size + 15) & ~(size_t)15 : 16; /* never NULL, and always distinct */
	if (size > (size_t)(a->end - a->at)) {
		size_t block = a->total < FIRST_BLOCK     ? FIRST_BLOCK
			       : a->total < LARGEST_BLOCK ? a->total
							  : LARGEST_BLOCK;
		block = (block + 15) & ~(size_t)15;
		if (size > block / 2) {
			a->total += size;
			return new_block(a, size);
		}
		a->at = new_block(a, block);
		a->end = a->at + block;
	}
	void *p = a->at;
	a->at += size;
	a->total += size;
	return p;
}

void *mu_arena_zalloc(struct mu_arena *a, size_t size)
{
	void *p = mu_arena_alloc(a, size);

	return memset(p, 0, size);
}

char *mu_arena_strndup(struct mu_arena *a, const char *s, size_t n)
{
	char *p = mu_arena_alloc(a, n + 1);

	if (n)
		memcpy(p, s, n);
	p[n] = '\0';
	return p;
}

char *mu_arena_strdup(struct mu_arena *a, const char *s)
{
	return mu_arena_strndup(a, s, strlen(s));
}

char *mu_arena_printf(struct mu_arena *a, const char *fmt, ...)
{
	va_list ap, ap_copy;

	va_start(ap, fmt);
	va_copy(ap_copy, ap);
	int n = vsnprintf(NULL, 0, fmt, ap);
	char *p = mu_arena_alloc(a, (size_t)n + 1);
	vsnprintf(p, (size_t)n + 1, fmt, ap_copy);
	va_end(ap_copy);
	va_end(ap);
	return p;
}
