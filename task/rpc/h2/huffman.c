/* SPDX-License-Identifier: Apache-2.0 */
/* The Huffman code of RFC 7541, appendix B.  It is canonical: the lengths say all of it.  Codes of
 * one length are consecutive numbers in the order of their symbols, and follow those of the length
 * before. */
#include <pthread.h>

#include "task/rpc/h2/hpack.h"

enum { SYMBOLS = 257, LONGEST = 30, END = 256 };

static const uint8_t lengths[SYMBOLS] = {
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6,  10, 10, 12, 13, 6,  8,  11, 10, 10, 8,  11, 8,  6,  6,  6,
    5,  5,  5,  6,  6,  6,  6,  6,  6,  6,  7,  8,  15, 6,  12, 10, 13, 6,  7,  7,  7,  7,  7,  7,
    7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  8,  7,  8,  13, 19, 13, 14, 6,
    15, 5,  6,  5,  6,  5,  6,  6,  6,  5,  7,  7,  6,  6,  6,  5,  6,  7,  6,  5,  5,  6,  7,  7,
    7,  7,  7,  15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21,
    23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24,
    21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30};

static uint16_t symbols[SYMBOLS]; /* by length, then by number */
static uint16_t count[LONGEST + 1];

static void sort(void)
{
	unsigned n = 0;

	for (unsigned len = 1; len <= LONGEST; len++)
		for (unsigned s = 0; s < SYMBOLS; s++)
			if (lengths[s] == len) {
				symbols[n++] = (uint16_t)s;
				count[len]++;
			}
}

int huffman_read(struct mu_buf *out, struct mu_span coded)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	uint32_t code = 0, first = 0; /* the bits so far; the first code of this length */
	unsigned len = 0, at = 0;     /* their number; the first symbol of this length */
	bool ones = true;

	pthread_once(&once, sort);
	for (size_t i = 0; i < coded.len * 8; i++) {
		unsigned bit = (uint8_t)coded.data[i / 8] >> (7 - i % 8) & 1;

		code |= bit;
		ones &= bit;
		if (++len > LONGEST)
			return -1;
		if (code - first < count[len]) {
			unsigned s = symbols[at + code - first];

			if (s == END)
				return -1;
			mu_buf_putc(out, (char)s);
			code = first = 0;
			len = at = 0;
			ones = true;
			continue;
		}
		at += count[len];
		first = (first + count[len]) << 1;
		code <<= 1;
	}
	return len < 8 && ones ? 0 : -1; /* the last byte is filled up with ones */
}
