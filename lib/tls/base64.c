/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/tls/base64.h"

#include <openssl/evp.h>
#include <string.h>

int mu_base64_decode(const char *text, const char *what, size_t size_max, struct mu_buf *out,
		     struct mu_err *err)
{
	EVP_ENCODE_CTX *ctx = EVP_ENCODE_CTX_new();
	size_t size = strlen(text);
	int n = 0, tail = 0;
	bool is_valid;

	mu_buf_clear(out);
	mu_buf_reserve(out, size);
	EVP_DecodeInit(ctx);
	is_valid = size < size_max &&
		   EVP_DecodeUpdate(ctx, (unsigned char *)out->data, &n,
				    (const unsigned char *)text, (int)size) >= 0 &&
		   EVP_DecodeFinal(ctx, (unsigned char *)out->data + n, &tail) == 1 && n + tail > 0;
	EVP_ENCODE_CTX_free(ctx);
	if (!is_valid)
		return mu_fail(err, MU_INVALID_ARGUMENT, "%s is not valid base64", what);
	out->len = (size_t)(n + tail);
	out->data[out->len] = 0;
	return 0;
}
