/* SPDX-License-Identifier: Apache-2.0 */
/* A short, seeded stand-in for the fuzzer, so that `make test` feeds every reader of outside bytes
 * some thousand broken inputs too. */
#ifndef MU_TESTS_FUZZ_MUTATE_H
#define MU_TESTS_FUZZ_MUTATE_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef int (*fuzz_one)(const uint8_t *data, size_t size);

static inline uint32_t mutate_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

/* Calls one() with `rounds` changed copies of the seed: flipped bits, changed bytes, cuts, pieces
 * put twice.  Each copy is malloc'ed at its exact size, so a sanitizer sees reads past its end. */
static inline void mutate_run(fuzz_one one, const void *seed, size_t size, unsigned rounds)
{
	uint64_t state = 20170401;

	for (unsigned r = 0; r < rounds; r++) {
		size_t n = size;
		uint8_t *copy = malloc(2 * size + 1);
		memcpy(copy, seed, size);
		for (unsigned k = mutate_random(&state) % 4 + 1; k-- && n;) {
			size_t at = mutate_random(&state) % n;
			switch (mutate_random(&state) % 6) {
			case 0:
				copy[at] ^= (uint8_t)(1 << mutate_random(&state) % 8);
				break;
			case 1:
				copy[at] = (uint8_t)mutate_random(&state);
				break;
			case 2:
				copy[at] =
				    "\xff\x00\x80\x7f{}[]:,\"&*-"[mutate_random(&state) % 14];
				break;
			case 3:
				n = at;
				break;
			case 4: /* leave a piece out */
				memmove(copy + at, copy + at + 1, n - at - 1);
				n--;
				break;
			case 5: /* put a piece twice */
				if (n + (n - at) <= 2 * size) {
					memmove(copy + n, copy + at, n - at);
					n += n - at;
				}
				break;
			}
		}
		uint8_t *exact = malloc(n ? n : 1);
		memcpy(exact, copy, n);
		one(exact, n);
		free(exact);
		free(copy);
	}
}

#endif
