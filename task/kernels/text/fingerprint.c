/* SPDX-License-Identifier: Apache-2.0 */
/* FarmHash's fingerprints of 64 and 128 bits, for little-endian machines. */
#include "task/kernels/text/fingerprint.h"

#include <string.h>

static const uint64_t K0 = 0xc3a5c85c97cb3127u, K1 = 0xb492b66fbe98f273u, K2 = 0x9ae16a3b2f90404fu;

static uint64_t load64(const char *s)
{
	uint64_t v;

	memcpy(&v, s, sizeof v);
	return v;
}

static uint64_t load32(const char *s)
{
	uint32_t v;

	memcpy(&v, s, sizeof v);
	return v;
}

static uint64_t fingerprint_rotate(uint64_t v, int bits)
{
	return v >> bits | v << (64 - bits);
}

static uint64_t fingerprint_mix(uint64_t v)
{
	return v ^ v >> 47;
}

static uint64_t fold(uint64_t u, uint64_t v, uint64_t mul)
{
	return fingerprint_mix((v ^ fingerprint_mix((u ^ v) * mul)) * mul) * mul;
}

static uint64_t hash_up_to_16(const char *s, size_t n)
{
	uint64_t mul = K2 + n * 2;

	if (n >= 8) {
		uint64_t a = load64(s) + K2, b = load64(s + n - 8);
		return fold(fingerprint_rotate(b, 37) * mul + a,
			    (fingerprint_rotate(a, 25) + b) * mul, mul);
	}
	if (n >= 4)
		return fold(n + (load32(s) << 3), load32(s + n - 4), mul);
	if (!n)
		return K2;
	uint32_t a = (uint8_t)s[0], b = (uint8_t)s[n >> 1], c = (uint8_t)s[n - 1];
	return fingerprint_mix((a + (b << 8)) * K2 ^ ((uint32_t)n + (c << 2)) * K0) * K2;
}

static uint64_t hash_up_to_64(const char *s, size_t n)
{
	uint64_t mul = K2 + n * 2, a = load64(s) * (n <= 32 ? K1 : K2), b = load64(s + 8);
	uint64_t c = load64(s + n - 8) * mul, d = load64(s + n - 16) * K2;
	uint64_t y = fingerprint_rotate(a + b, 43) + fingerprint_rotate(c, 30) + d;
	uint64_t z = fold(y, a + fingerprint_rotate(b + K2, 18) + c, mul);

	if (n <= 32)
		return z;
	uint64_t e = load64(s + 16) * mul, f = load64(s + 24);
	uint64_t g = (y + load64(s + n - 32)) * mul, h = (z + load64(s + n - 24)) * mul;
	return fold(fingerprint_rotate(e + f, 43) + fingerprint_rotate(g, 30) + h,
		    e + fingerprint_rotate(f + a, 18) + g, mul);
}

struct hash_state {
	uint64_t x, y, z, v[2], w[2];
};

static void weak_hash_32(uint64_t out[2], const char *s, uint64_t a, uint64_t b)
{
	uint64_t last = load64(s + 24), c;

	a += load64(s);
	b = fingerprint_rotate(b + a + last, 21);
	c = a;
	a += load64(s + 8) + load64(s + 16);
	out[0] = a + last;
	out[1] = b + fingerprint_rotate(a, 44) + c;
}

/* Mixes a block of 64 bytes into the state.  weight: the factor of v[0] and w[1]; 9 for the last
 * block. */
static void mix_block_64(struct hash_state *t, const char *s, uint64_t mul, uint64_t weight)
{
	t->x = fingerprint_rotate(t->x + t->y + t->v[0] + load64(s + 8), 37) * mul;
	t->y = fingerprint_rotate(t->y + t->v[1] + load64(s + 48), 42) * mul;
	t->x ^= t->w[1] * weight;
	t->y += t->v[0] * weight + load64(s + 40);
	t->z = fingerprint_rotate(t->z + t->w[0], 33) * mul;
	weak_hash_32(t->v, s, t->v[1] * mul, t->x + t->w[0]);
	weak_hash_32(t->w, s + 32, t->z + t->w[1], t->y + load64(s + 16));
	uint64_t swap = t->z;
	t->z = t->x;
	t->x = swap;
}

uint64_t fingerprint64(const char *s, size_t n)
{
	enum { SEED = 81 };
	struct hash_state t = {.y = SEED * K1 + 113};

	if (n <= 16)
		return hash_up_to_16(s, n);
	if (n <= 64)
		return hash_up_to_64(s, n);
	t.x = SEED * K2 + load64(s);
	t.z = fingerprint_mix(t.y * K2 + 113) * K2;
	const char *end = s + (n - 1) / 64 * 64, *last = s + n - 64;
	for (; s != end; s += 64)
		mix_block_64(&t, s, K1, 1);
	uint64_t mul = K1 + ((t.z & 0xff) << 1);
	t.w[0] += (n - 1) & 63;
	t.v[0] += t.w[0];
	t.w[0] += t.v[0];
	mix_block_64(&t, last, mul, 9);
	return fold(fold(t.v[0], t.w[0], mul) + fingerprint_mix(t.y) * K0 + t.z,
		    fold(t.v[1], t.w[1], mul) + t.x, mul);
}

/* ---- 128 bits (CityHash 1.1) ---- */

static uint64_t fold_pair(uint64_t u, uint64_t v)
{
	return fold(u, v, 0x9ddfea08eb382d69u);
}

static void hash_up_to_127(const char *s, size_t n, uint64_t a, uint64_t b, uint64_t out[2])
{
	uint64_t c, d;

	if (n <= 16) {
		a = fingerprint_mix(a * K1) * K1;
		c = b * K1 + hash_up_to_16(s, n);
		d = fingerprint_mix(a + (n >= 8 ? load64(s) : c));
	} else {
		c = fold_pair(load64(s + n - 8) + K1, a);
		d = fold_pair(b + n, c + load64(s + n - 16));
		a += d;
		for (int64_t left = (int64_t)n - 16; left > 0; left -= 16, s += 16) {
			a = (a ^ fingerprint_mix(load64(s) * K1) * K1) * K1;
			b ^= a;
			c = (c ^ fingerprint_mix(load64(s + 8) * K1) * K1) * K1;
			d ^= c;
		}
	}
	a = fold_pair(a, c);
	b = fold_pair(d, b);
	out[0] = a ^ b;
	out[1] = fold_pair(b, a);
}

static void hash_from_128(const char *s, size_t n, uint64_t low, uint64_t high, uint64_t out[2])
{
	struct hash_state t = {.x = low, .y = high, .z = n * K1};

	t.v[0] = fingerprint_rotate(t.y ^ K1, 49) * K1 + load64(s);
	t.v[1] = fingerprint_rotate(t.v[0], 42) * K1 + load64(s + 8);
	t.w[0] = fingerprint_rotate(t.y + t.z, 35) * K1 + t.x;
	t.w[1] = fingerprint_rotate(t.x + load64(s + 88), 53) * K1;
	for (; n >= 128; n -= 128, s += 128) {
		mix_block_64(&t, s, K1, 1);
		mix_block_64(&t, s + 64, K1, 1);
	}
	t.x += fingerprint_rotate(t.v[0] + t.z, 49) * K0;
	t.y = t.y * K0 + fingerprint_rotate(t.w[1], 37);
	t.z = t.z * K0 + fingerprint_rotate(t.w[0], 27);
	t.w[0] *= 9;
	t.v[0] *= K0;
	for (size_t done = 0; done < n;) {
		done += 32;
		t.y = fingerprint_rotate(t.x + t.y, 42) * K0 + t.v[1];
		t.w[0] += load64(s + n - done + 16);
		t.x = t.x * K0 + t.w[0];
		t.z += t.w[1] + load64(s + n - done);
		t.w[1] += t.v[0];
		weak_hash_32(t.v, s + n - done, t.v[0] + t.z, t.v[1]);
		t.v[0] *= K0;
	}
	t.x = fold_pair(t.x, t.v[0]);
	t.y = fold_pair(t.y + t.z, t.w[0]);
	out[0] = fold_pair(t.x + t.v[1], t.w[1]) + t.y;
	out[1] = fold_pair(t.x + t.w[1], t.y + t.v[1]);
}

void fingerprint128(const char *s, size_t n, uint64_t out[2])
{
	uint64_t low = K0, high = K1;

	if (n >= 16) { /* the first 16 bytes are the seed */
		low = load64(s);
		high = load64(s + 8) + K0;
		s += 16;
		n -= 16;
	}
	(n < 128 ? hash_up_to_127 : hash_from_128)(s, n, low, high, out);
}

uint64_t fingerprint64_join(uint64_t a, uint64_t b)
{
	static const uint64_t mul = 0xc6a4a7935bd1e995u;
	uint64_t v = a ^ mul ^ fingerprint_mix(b * mul) * mul;

	return fingerprint_mix(fingerprint_mix(v * mul) * mul);
}
