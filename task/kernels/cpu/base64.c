/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 in the alphabet that is safe in URLs. */
#include <string.h>

#include "task/kernels/args.h"
#include "task/kernels/elems.h"
#include "task/kernels/kernel_table.h"

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static void encode_one(struct mu_buf *b, struct mu_span in, bool pad)
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

static int decode_one(struct mu_buf *b, struct mu_span in, struct mu_err *err)
{
	uint32_t bits = 0;
	size_t len = in.len;

	if (len % 4 == 0) /* two at most, and only where they fill up */
		for (int i = 0; i < 2 && len && in.data[len - 1] == '='; i++)
			len--;
	if (len % 4 == 1)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Base64 string length cannot be 1 modulo 4");
	for (size_t i = 0; i < len; i++) {
		const char *at = in.data[i] ? strchr(letters, in.data[i]) : NULL;
		if (!at)
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "Invalid character found in base64.");
		bits = bits << 6 | (uint32_t)(at - letters);
		if (i % 4) /* of every four, all but the first fill a byte */
			mu_buf_putc(b, (char)(bits >> (6 - 2 * (i % 4))));
	}
	return 0;
}

static int each(struct kernel_call *c, bool encode, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	bool pad = args_attr_bool(c->node, "pad", false);
	MU_AUTO_BUF b = {0};
	struct mu_tensor *out;
	int rc;

	if ((rc = args_type(c, 0, MU_STRING, err)) ||
	    (rc = kernel_out(c, 0, MU_STRING, &in->shape, &out, err)))
		return rc;
	for (int64_t i = 0; i < in->shape.count; i++) {
		mu_buf_clear(&b);
		if (encode)
			encode_one(&b, elems_span(in, i), pad);
		else if ((rc = decode_one(&b, elems_span(in, i), err)))
			return rc;
		mu_string_set(&MU_DATA(struct mu_string, out)[i], b.data ? b.data : "", b.len);
	}
	return 0;
}

static int encode(struct kernel_call *c, struct mu_err *err)
{
	return each(c, true, err);
}

static int decode(struct kernel_call *c, struct mu_err *err)
{
	return each(c, false, err);
}

static const struct kernel rows[] = {
    {"EncodeBase64", .run = encode},
    {"DecodeBase64", .run = decode},
};
KERNEL_TABLE(base64, rows)
