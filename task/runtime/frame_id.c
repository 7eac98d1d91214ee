/* SPDX-License-Identifier: Apache-2.0 */
/* The id of a frame, which is part of the rendezvous keys in a loop.  All tasks that run parts of a
 * loop must compute the same id, also TensorFlow's.  So it is TensorFlow's: MurmurHash64A of the
 * loop's name, combined with the id and iteration of the outer frame. */
#include <endian.h>
#include <string.h>

#include "task/runtime/exec_graph.h"

static uint64_t murmur64(const char *data, size_t n, uint64_t seed)
{
	const uint64_t m = 0xc6a4a7935bd1e995u;
	uint64_t h = seed ^ (n * m), k;

	for (; n >= 8; n -= 8, data += 8) {
		memcpy(&k, data, 8);
		k = le64toh(k) * m;
		h = (h ^ ((k ^ (k >> 47)) * m)) * m;
	}
	if (n) {
		for (k = 0; n; n--)
			k = k << 8 | (uint8_t)data[n - 1];
		h = (h ^ k) * m;
	}
	h = (h ^ (h >> 47)) * m;
	return h ^ (h >> 47);
}

static uint64_t combine(uint64_t a, uint64_t b)
{
	return a ^ (b + 0x9e3779b97f4a7800u + (a << 10) + (a >> 4));
}

uint64_t frame_id(uint64_t outer, uint64_t iteration_number, const char *name)
{
	return combine(outer,
		       combine(iteration_number, murmur64(name, strlen(name), 0xdecafcaffeu)));
}
