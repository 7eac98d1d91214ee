/* SPDX-License-Identifier: Apache-2.0 */
#include "task/kernels/text/keyed_hash.h"

#include <string.h>

/* Loads n bytes, at most eight, as a little-endian number. */
static uint64_t keyed_hash_load(const char *s, size_t n)
{
	uint64_t v = 0;

	memcpy(&v, s, n);
	return v;
}

static uint64_t keyed_hash_rotate(uint64_t v, int bits)
{
	return v << bits | v >> (64 - bits);
}

static void sip_rounds(uint64_t v[4], int n)
{
	while (n--) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = keyed_hash_rotate(v[1], 13) ^ v[0];
		v[3] = keyed_hash_rotate(v[3], 16) ^ v[2];
		v[0] = keyed_hash_rotate(v[0], 32) + v[3];
		v[2] += v[1];
		v[3] = keyed_hash_rotate(v[3], 21) ^ v[0];
		v[1] = keyed_hash_rotate(v[1], 17) ^ v[2];
		v[2] = keyed_hash_rotate(v[2], 32);
	}
}

static void sip_word(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	sip_rounds(v, 2);
	v[0] ^= word;
}

uint64_t keyed_hash(const uint64_t key[2], const char *s, size_t n)
{
	/* "somepseudorandomlygeneratedbytes" */
	uint64_t v[4] = {key[0] ^ 0x736f6d6570736575u, key[1] ^ 0x646f72616e646f6du,
			 key[0] ^ 0x6c7967656e657261u, key[1] ^ 0x7465646279746573u};
	size_t at = 0;

	for (; at + 8 <= n; at += 8)
		sip_word(v, keyed_hash_load(s + at, 8));
	sip_word(v, keyed_hash_load(s + at, n - at) | (uint64_t)n << 56);
	v[2] ^= 0xff;
	sip_rounds(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

uint64_t legacy_hash64(const char *s, size_t n)
{
	const uint64_t mul = 0xc6a4a7935bd1e995u;
	uint64_t h = 0xdecafcaffeu ^ n * mul;
	size_t at = 0;

	for (; at + 8 <= n; at += 8) {
		uint64_t k = keyed_hash_load(s + at, 8) * mul;
		h = (h ^ (k ^ k >> 47) * mul) * mul;
	}
	if (at < n)
		h = (h ^ keyed_hash_load(s + at, n - at)) * mul;
	h = (h ^ h >> 47) * mul;
	return h ^ h >> 47;
}
