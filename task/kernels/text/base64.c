/* SPDX-License-Identifier: Apache-2.0 */
#include "task/kernels/text/base64.h"

#include <string.h>

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void base64_encode(struct mu_buf *b, struct mu_span in, bool pad)
{
	for (size_t i = 0; i < in.len; i += 3) {
		size_t n = in.len - i < 3 ? in.len - i : 3;
		uint32_t bits = 0;
		for (size_t k = 0; k < 3; k++)
			bits = bits << 8 | (k < n ? (unsigned char)in.data[i + k] : 0);
		for (size_t k = 0; k < 4; k++)
			if (k <= n)
				mu_buf_putc(b, letters[bits >> (18 - 6 * k) & 63]);
			else if (pad)
				mu_buf_putc(b, '=');
	}
}

int base64_decode(struct mu_buf *b, struct mu_span in, bool accept_standard, struct mu_err *err)
{
	uint32_t bits = 0;
	size_t len = in.len;

	if (len % 4 == 0) /* at most two padding characters */
		for (int i = 0; i < 2 && len && in.data[len - 1] == '='; i++)
			len--;
	if (len % 4 == 1)
		return mu_invalid(err, "Base64 string length cannot be 1 modulo 4");
	for (size_t i = 0; i < len; i++) {
		char c = accept_standard && in.data[i] == '+'   ? '-'
			 : accept_standard && in.data[i] == '/' ? '_'
								: in.data[i];
		const char *at = c ? strchr(letters, c) : NULL;
		if (!at)
			return mu_invalid(err, "Invalid character found in base64.");
		bits = bits << 6 | (uint32_t)(at - letters);
		if (i % 4) /* all but the first of four characters complete a byte */
			mu_buf_putc(b, (char)(bits >> (6 - 2 * (i % 4))));
	}
	return 0;
}
