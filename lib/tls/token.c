/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/tls/token.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>

#include "lib/base/mem.h"

enum { HASH_BYTES = 32 };
/* A prefix that separates tokens from other values derived from the same key. */
#define PURPOSE "muster.dev/task-token/"

static void to_hex(const unsigned char *bytes, char out[MU_TOKEN_SIZE])
{
	static const char digits[] = "0123456789abcdef";

	for (int i = 0; i < HASH_BYTES; i++) {
		out[2 * i] = digits[bytes[i] >> 4];
		out[2 * i + 1] = digits[bytes[i] & 15];
	}
	out[2 * HASH_BYTES] = 0;
}

int mu_token_derive(struct mu_span key, const char *subject, char out[MU_TOKEN_SIZE],
		    struct mu_err *err)
{
	MU_AUTO_FREE char *text = mu_xasprintf(PURPOSE "%s", subject);
	unsigned char hash[EVP_MAX_MD_SIZE];
	unsigned n = 0;

	out[0] = 0;
	if (!HMAC(EVP_sha256(), key.data, (int)key.len, (const unsigned char *)text, strlen(text),
		  hash, &n) ||
	    n != HASH_BYTES)
		return mu_fail(err, MU_INTERNAL, "HMAC-SHA256 failed");
	to_hex(hash, out);
	OPENSSL_cleanse(hash, sizeof(hash));
	return 0;
}

int mu_token_digest(struct mu_span token, char out[MU_TOKEN_SIZE], struct mu_err *err)
{
	unsigned char hash[EVP_MAX_MD_SIZE];
	unsigned n = 0;

	out[0] = 0;
	if (!EVP_Digest(token.data, token.len, hash, &n, EVP_sha256(), NULL) || n != HASH_BYTES)
		return mu_fail(err, MU_INTERNAL, "SHA-256 failed");
	to_hex(hash, out);
	return 0;
}

bool mu_token_matches(struct mu_span token, const char *digest)
{
	char actual[MU_TOKEN_SIZE];

	return mu_token_is_digest(digest) && mu_token_digest(token, actual, NULL) == 0 &&
	       CRYPTO_memcmp(actual, digest, MU_TOKEN_SIZE - 1) == 0;
}

bool mu_token_is_digest(const char *text)
{
	return strlen(text) == MU_TOKEN_SIZE - 1 &&
	       strspn(text, "0123456789abcdef") == MU_TOKEN_SIZE - 1;
}
