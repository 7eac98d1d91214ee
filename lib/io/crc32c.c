/* SPDX-License-Identifier: Apache-2.0 */
/* The CRC instruction has a latency of three cycles and a throughput of one.  So long inputs are
 * processed in three interleaved lanes.  A table that advances a checksum over a lane of zeros
 * combines the three checksums. */
#include "lib/io/crc32c.h"

#include <pthread.h>
#include <string.h>
#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__aarch64__)
#include <arm_acle.h>
#include <sys/auxv.h>
#endif

#define POLY 0x82f63b78u /* reflected */
enum { LANE = 1024 };

static uint32_t table[8][256];      /* slicing by eight */
static uint32_t lane_shift[4][256]; /* crc of x followed by LANE zero bytes, byte by byte of x */
static uint32_t (*crc_instruction)(uint32_t crc, const unsigned char *p, size_t n);

static uint32_t crc_by_table(uint32_t crc, const unsigned char *p, size_t n)
{
	for (; n >= 8; p += 8, n -= 8) {
		uint64_t w;
		memcpy(&w, p, 8);
		w ^= crc;
		crc = table[7][w & 0xff] ^ table[6][w >> 8 & 0xff] ^ table[5][w >> 16 & 0xff] ^
		      table[4][w >> 24 & 0xff] ^ table[3][w >> 32 & 0xff] ^
		      table[2][w >> 40 & 0xff] ^ table[1][w >> 48 & 0xff] ^ table[0][w >> 56];
	}
	while (n--)
		crc = table[0][(crc ^ *p++) & 0xff] ^ crc >> 8;
	return crc;
}

static uint32_t shift_lane(uint32_t crc)
{
	return lane_shift[0][crc & 0xff] ^ lane_shift[1][crc >> 8 & 0xff] ^
	       lane_shift[2][crc >> 16 & 0xff] ^ lane_shift[3][crc >> 24];
}

#if defined(__x86_64__)
#define TARGET_CRC __attribute__((target("sse4.2")))
#define CRC8(c, v) _mm_crc32_u64((c), (v))
#define CRC1(c, v) _mm_crc32_u8((uint32_t)(c), (v))
#elif defined(__aarch64__)
#define TARGET_CRC __attribute__((target("+crc")))
#define CRC8(c, v) __crc32cd((uint32_t)(c), (v))
#define CRC1(c, v) __crc32cb((uint32_t)(c), (v))
#endif

#ifdef TARGET_CRC
TARGET_CRC static uint32_t crc_by_instruction(uint32_t crc, const unsigned char *p, size_t n)
{
	uint64_t a = crc, w;

	for (; n >= 3 * LANE; p += 3 * LANE, n -= 3 * LANE) {
		uint64_t b = 0, c = 0, w1, w2;
		for (size_t i = 0; i < LANE; i += 8) {
			memcpy(&w, p + i, 8);
			memcpy(&w1, p + LANE + i, 8);
			memcpy(&w2, p + 2 * LANE + i, 8);
			a = CRC8(a, w);
			b = CRC8(b, w1);
			c = CRC8(c, w2);
		}
		a = shift_lane(shift_lane((uint32_t)a) ^ (uint32_t)b) ^ (uint32_t)c;
	}
	for (; n >= 8; p += 8, n -= 8) {
		memcpy(&w, p, 8);
		a = CRC8(a, w);
	}
	while (n--)
		a = CRC1(a, *p++);
	return (uint32_t)a;
}

static int has_instruction(void)
{
#if defined(__x86_64__)
	return __builtin_cpu_supports("sse4.2");
#else
	return (getauxval(AT_HWCAP) & (1 << 7)) != 0; /* HWCAP_CRC32 */
#endif
}
#endif

static void make_tables(void)
{
	static const unsigned char zeros[LANE];

	for (uint32_t i = 0; i < 256; i++) {
		uint32_t c = i;
		for (int k = 0; k < 8; k++)
			c = c & 1 ? c >> 1 ^ POLY : c >> 1;
		table[0][i] = c;
	}
	for (uint32_t i = 0; i < 256; i++)
		for (int k = 1; k < 8; k++)
			table[k][i] = table[0][table[k - 1][i] & 0xff] ^ table[k - 1][i] >> 8;
	for (uint32_t i = 0; i < 256; i++)
		for (int k = 0; k < 4; k++)
			lane_shift[k][i] = crc_by_table(i << (8 * k), zeros, LANE);
	crc_instruction = crc_by_table;
#ifdef TARGET_CRC
	if (has_instruction())
		crc_instruction = crc_by_instruction;
#endif
}

static void prepare_once(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, make_tables);
}

uint32_t mu_crc32c_table(uint32_t crc, const void *p, size_t n)
{
	prepare_once();
	return ~crc_by_table(~crc, p, n);
}

uint32_t mu_crc32c(uint32_t crc, const void *p, size_t n)
{
	prepare_once();
	return ~crc_instruction(~crc, p, n);
}

/* ---- concatenation ---- */

/* Returns a * b modulo the polynomial; the highest bit is the lowest power. */
static uint32_t multiply(uint32_t a, uint32_t b)
{
	uint32_t product = 0;

	for (; a; a <<= 1) {
		if (a & 1u << 31)
			product ^= b;
		b = b & 1 ? b >> 1 ^ POLY : b >> 1;
	}
	return product;
}

/* n zero bytes after a multiply it by x^(8n).  The initial and final inversions of a and b cancel
 * out. */
uint32_t mu_crc32c_join(uint32_t a, uint32_t b, uint64_t n)
{
	uint32_t power = 1u << 23; /* x^8 */

	for (; n; n >>= 1) {
		if (n & 1)
			a = multiply(a, power);
		power = multiply(power, power);
	}
	return a ^ b;
}
