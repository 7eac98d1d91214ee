/* SPDX-License-Identifier: Apache-2.0 */
/* A small, seeded replacement of the fuzzer: `make test` runs each fuzz target with some thousand
 * mutated inputs. */
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

/* Calls one() with `rounds` mutated copies of the seed: flipped bits, changed bytes, truncation,
 * removed and repeated pieces.  Each copy is allocated with its exact size, so that a sanitizer
 * detects reads past its end. */
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
			case 4: /* remove a piece */
				memmove(copy + at, copy + at + 1, n - at - 1);
				n--;
				break;
			case 5: /* repeat a piece */
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
