/* SPDX-License-Identifier: Apache-2.0 */
/* A growable byte buffer.  A NUL follows its last byte once memory is allocated. */
#ifndef MU_LIB_BASE_BUF_H
#define MU_LIB_BASE_BUF_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"

struct mu_buf {
	char *data;
	size_t len, cap;
};

/* A borrowed sequence of bytes. */
struct mu_span {
	const char *data;
	size_t len;
};

bool mu_ends_with(const char *s, const char *suffix);

#define MU_SPAN(literal) ((struct mu_span){(literal), sizeof(literal) - 1})

void mu_buf_fini(struct mu_buf *b);
void mu_buf_clear(struct mu_buf *b);             /* keeps the memory */
void mu_buf_reserve(struct mu_buf *b, size_t n); /* room for n more bytes and a NUL */
void mu_buf_put(struct mu_buf *b, const void *p, size_t n);
void mu_buf_puts(struct mu_buf *b, const char *s);
void mu_buf_putc(struct mu_buf *b, char c);
void mu_buf_printf(struct mu_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void mu_buf_vprintf(struct mu_buf *b, const char *fmt, va_list ap)
    __attribute__((format(printf, 2, 0)));
char *mu_buf_take(struct mu_buf *b); /* returns the NUL-terminated memory (never NULL), empties b */

/* Reads a whole file of at most `limit` bytes. */
int mu_buf_read_file(struct mu_buf *b, const char *path, size_t limit, struct mu_err *err);
/* As mu_buf_read_file; "-" is the standard input. */
int mu_buf_read_input(struct mu_buf *b, const char *path, size_t limit, struct mu_err *err);
/* Replaces the file atomically: writes and syncs a temporary file, renames it, syncs the folder. */
int mu_write_file(const char *path, const void *data, size_t len, struct mu_err *err);
/* Writes the file in place, without waiting for the disk. */
int mu_write_unsynced(const char *path, const void *data, size_t len, struct mu_err *err);

struct mu_span mu_span_of(const char *s);
struct mu_span mu_buf_span(const struct mu_buf *b);
bool mu_span_eq(struct mu_span a, struct mu_span b);
/* Orders byte strings as memcmp does; a prefix of the other comes first. */
int mu_span_compare(struct mu_span a, struct mu_span b);
bool mu_span_is(struct mu_span a, const char *s);
/* Returns the index of text in a NULL-terminated list; -1 if it is NULL or not in the list. */
int mu_word_index(const char *text, const char *const *words);
#define MU_AUTO_BUF __attribute__((cleanup(mu_buf_fini))) struct mu_buf

#endif
