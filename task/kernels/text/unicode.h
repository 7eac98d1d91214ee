/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding and encoding of characters in the encodings that programs name. Input is untrusted:
 * malformed bytes are reported piece by piece. A piece is the longest prefix of a valid character,
 * as browsers and ICU count. */
#ifndef MU_TASK_KERNELS_TEXT_UNICODE_H
#define MU_TASK_KERNELS_TEXT_UNICODE_H

#include "lib/base/buf.h"

enum { UNICODE_LAST = 0x10ffff, UNICODE_REPLACEMENT = 0xfffd, UNICODE_MALFORMED = -1 };

struct unicode_encoding;
/* Looks an encoding up by name; case, dashes and underscores are ignored. NULL: unknown. */
const struct unicode_encoding *unicode_encoding_named(const char *name);
/* The encoding of this text: UTF-16 and UTF-32 without a byte order may begin with a mark of that
 * many bytes, which says it; without one, the highest byte comes first. */
const struct unicode_encoding *unicode_byte_order(const struct unicode_encoding *e,
						  struct mu_span text, size_t *mark);
/* The next character of a text that is not empty, or UNICODE_MALFORMED; returns how many bytes it
 * took, one or more. */
size_t unicode_next(const struct unicode_encoding *e, struct mu_span text, int32_t *character);
/* Appends a character up to UNICODE_LAST.  A surrogate becomes U+FFFD in UTF-8. */
void unicode_put(const struct unicode_encoding *e, struct mu_buf *b, int32_t character);

static inline bool unicode_is_surrogate(int32_t character)
{
	return character >= 0xd800 && character < 0xe000;
}

#endif
