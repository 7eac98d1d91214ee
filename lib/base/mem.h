/* SPDX-License-Identifier: Apache-2.0 */
/* Memory: allocation that ends the process with one line on failure, and arenas.
 *
 * mu_xmalloc and related functions are for data whose size the program bounds.  If the size comes
 * from input (tensors, messages, files), use malloc or mu_tensor_* and check the result.
 */
#ifndef MU_LIB_BASE_MEM_H
#define MU_LIB_BASE_MEM_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

void *mu_xmalloc(size_t size);
void *mu_xcalloc(size_t count, size_t size); /* zeroed; checks count * size */
void *mu_xrealloc(void *p, size_t size);
char *mu_xstrdup(const char *s);
char *mu_xstrdup_or_null(const char *s); /* NULL for NULL and for "" */
char *mu_xstrndup(const char *s, size_t n);
char *mu_xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#define MU_NEW(type)                    ((type *)mu_xcalloc(1, sizeof(type)))
#define MU_NEW_ARRAY(type, n)           ((type *)mu_xcalloc((n), sizeof(type)))
#define MU_COUNT(array)                 (sizeof(array) / sizeof((array)[0]))
#define MU_CONTAINER(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/* MU_AUTO(x_free) struct x *p = NULL;  frees p at the end of the scope; mu_steal(&p) prevents that.
 * MU_AUTO_DEFINE(x_free, struct x) beside x_free's declaration defines the cleanup function. */
#define MU_AUTO(free_fn) __attribute__((cleanup(free_fn##_auto)))
#define MU_AUTO_DEFINE(free_fn, type)                                                              \
	static inline void free_fn##_auto(type **p)                                                \
	{                                                                                          \
		if (*p)                                                                            \
			free_fn(*p);                                                               \
	}
#define mu_steal(pp)                                                                               \
	({                                                                                         \
		__typeof__(*(pp)) mu_stolen_ = *(pp);                                              \
		*(pp) = NULL;                                                                      \
		mu_stolen_;                                                                        \
	})
static inline void mu_free_auto(void *pp)
{
	free(*(void **)pp);
}
#define MU_AUTO_FREE __attribute__((cleanup(mu_free_auto)))

/* An arena frees all its memory at once.  It is not thread-safe. */
struct mu_arena_block;
struct mu_arena {
	struct mu_arena_block *head;
	char *at, *end;
	size_t total; /* bytes allocated so far */
};

void mu_arena_init(struct mu_arena *a);
void mu_arena_fini(struct mu_arena *a);
#define MU_AUTO_ARENA __attribute__((cleanup(mu_arena_fini))) struct mu_arena /* a = {0} */
void *mu_arena_alloc(struct mu_arena *a, size_t size);  /* aligned to 16, not zeroed */
void *mu_arena_zalloc(struct mu_arena *a, size_t size); /* zeroed */
char *mu_arena_strndup(struct mu_arena *a, const char *s, size_t n);
char *mu_arena_strdup(struct mu_arena *a, const char *s);
char *mu_arena_printf(struct mu_arena *a, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
#define MU_ARENA_NEW(a, type)          ((type *)mu_arena_zalloc((a), sizeof(type)))
#define MU_ARENA_ARRAY(a, type, count) ((type *)mu_arena_zalloc((a), sizeof(type) * (count)))

#endif
