/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes and encodes characters. Input is untrusted: each malformed sequence is reported as one
 * UNICODE_MALFORMED. A malformed sequence is the longest prefix of a valid character, as in
 * browsers and ICU. */
#ifndef MU_TASK_KERNELS_TEXT_UNICODE_H
#define MU_TASK_KERNELS_TEXT_UNICODE_H

#include "lib/base/buf.h"

enum { UNICODE_LAST = 0x10ffff, UNICODE_REPLACEMENT = 0xfffd, UNICODE_MALFORMED = -1 };

struct unicode_encoding;
/* Looks an encoding up by name; case, dashes and underscores are ignored. NULL: unknown. */
const struct unicode_encoding *unicode_encoding_named(const char *name);
/* The encoding of a text, with its byte order.  A text in UTF-16 or UTF-32 can begin with a byte
 * order mark; *mark is its size in bytes.  Without a mark, the text is big-endian. */
const struct unicode_encoding *unicode_byte_order(const struct unicode_encoding *e,
						  struct mu_span text, size_t *mark);
/* Decodes the next character of a non-empty text, or UNICODE_MALFORMED.  Returns its size in bytes,
 * at least 1. */
size_t unicode_next(const struct unicode_encoding *e, struct mu_span text, int32_t *character);
/* Appends a character up to UNICODE_LAST.  A surrogate becomes U+FFFD in UTF-8. */
void unicode_put(const struct unicode_encoding *e, struct mu_buf *b, int32_t character);

static inline bool unicode_is_surrogate(int32_t character)
{
	return character >= 0xd800 && character < 0xe000;
}

#endif
