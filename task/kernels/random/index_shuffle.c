/* SPDX-License-Identifier: Apache-2.0 */
/* RandomIndexShuffle: the position of an index in a random permutation of [0, max_index].
 *
 * A block cipher of the Simon family permutes the numbers of an even number of bits. Encrypting an
 * index until the result is at most max_index permutes [0, max_index]. */
#include <math.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/kernel_table.h"

enum {
	MIN_BLOCK_BITS = 16,
	MAX_ROUNDS = 1024,
	MAX_WALK = 1 << 20, /* encryptions of an index that is not in [0, max_index] */
};

struct cipher {
	int bits; /* of a half block, 8 to 32 */
	int rounds;
	uint32_t mask, key[MAX_ROUNDS];
};

static uint32_t rotate_left(const struct cipher *s, uint32_t x, int by)
{
	return ((uint64_t)x << by | x >> (s->bits - by)) & s->mask;
}

static void cipher_init(struct cipher *s, int bits, int rounds, const uint32_t seed[3])
{
	uint64_t z = 0x7369f885192c0ef5;

	s->bits = bits;
	s->rounds = rounds;
	s->mask = (uint32_t)(((uint64_t)1 << bits) - 1);
	for (int i = 0; i < 3; i++)
		s->key[i] = seed[i] & s->mask;
	z &= s->mask;
	for (int i = 3; i < rounds; i++, z >>= 1)
		s->key[i] = (0xfffffffc & s->mask) ^ (uint32_t)(z & 1) ^ s->key[i - 3] ^
			    rotate_left(s, s->key[i - 1], bits - 3) ^
			    rotate_left(s, s->key[i - 1], bits - 4);
}

static uint32_t cipher_mix(const struct cipher *s, uint32_t x)
{
	return (rotate_left(s, x, 1) & rotate_left(s, x, 8 % s->bits)) ^ rotate_left(s, x, 2);
}

static uint64_t encrypt(const struct cipher *s, uint64_t value)
{
	uint32_t left = (uint32_t)(value >> s->bits) & s->mask, right = (uint32_t)value & s->mask;

	for (int i = 0; i < s->rounds; i += 2) {
		left ^= cipher_mix(s, right) ^ s->key[i];
		right ^= cipher_mix(s, left) ^ s->key[i + 1];
	}
	return (uint64_t)left << s->bits | right;
}

static int shuffle_index(uint64_t index, const uint32_t seed[3], uint64_t max_index, int rounds,
			 uint64_t *out, struct mu_err *err)
{
	struct cipher s;

	*out = 0;
	if (!max_index)
		return 0;
	int bits = (int)ceil(log2((double)max_index));
	bits += bits % 2;
	cipher_init(&s, (bits < MIN_BLOCK_BITS ? MIN_BLOCK_BITS : bits) / 2, rounds, seed);
	for (int i = 0; i < MAX_WALK; i++) {
		index = encrypt(&s, index);
		if (index <= max_index) {
			*out = index;
			return 0;
		}
	}
	return mu_invalid(err, "index must be in [0, max_index], max_index is %llu",
			  (unsigned long long)max_index);
}

/* Element i, or the element of a scalar, as the bits of a 64-bit number. */
static uint64_t number_at(const struct mu_tensor *t, int64_t i)
{
	i = t->shape.rank ? i : 0;
	switch (t->dtype) {
	case MU_INT32:
		return (uint64_t)MU_DATA(int32_t, t)[i];
	case MU_UINT32:
		return MU_DATA(uint32_t, t)[i];
	default:
		return MU_DATA(uint64_t, t)[i];
	}
}

static int random_index_shuffle(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *index = kernel_in(c, 0), *seed = kernel_in(c, 1),
			       *max = kernel_in(c, 2);
	int64_t rounds = args_attr_int(c->node, "rounds", 4), n = seed->shape.count / 3;
	struct mu_tensor *out;
	uint64_t result;

	n = index->shape.count > n ? index->shape.count : n;
	n = max->shape.count > n ? max->shape.count : n;
	if (rounds < 4 || rounds % 2 || rounds > MAX_ROUNDS)
		return mu_invalid(err, "Rounds must be an even integer >= 4, but got %lld.",
				  (long long)rounds);
	if (index->shape.rank > 1 || (index->shape.rank && index->shape.count != n))
		return mu_invalid(err, "Index bust be a scalar or vector.");
	if (seed->shape.rank < 1 || seed->shape.rank > 2 ||
	    seed->shape.dim[seed->shape.rank - 1] != 3 ||
	    (seed->shape.rank == 2 && seed->shape.dim[0] != n))
		return mu_invalid(err,
				  "Seed must be a vector of size [3] or a matrix of size [%lld, 3] "
				  "but got %s.",
				  (long long)n, mu_shape_str(&seed->shape));
	if (max->shape.rank > 1 || (max->shape.rank && max->shape.count != n))
		return mu_invalid(err,
				  "Maxval must be a scalar or a vector of the same size as index "
				  "but got %s",
				  mu_shape_str(&max->shape));
	if (!index->shape.rank && seed->shape.rank == 1 && !max->shape.rank)
		MU_RETURN_IF_ERROR(kernel_out_scalar(c, 0, index->dtype, &out, err));
	else
		MU_RETURN_IF_ERROR(kernel_out_vec(c, 0, index->dtype, n, &out, err));
	for (int64_t i = 0; i < n; i++) {
		uint32_t key[3];
		for (int k = 0; k < 3; k++)
			key[k] = (uint32_t)number_at(seed, (seed->shape.rank == 2 ? 3 * i : 0) + k);
		MU_RETURN_IF_ERROR(shuffle_index(number_at(index, i), key, number_at(max, i),
						 (int)rounds, &result, err));
		if (mu_dtype_size(out->dtype) == sizeof(uint32_t))
			MU_DATA(uint32_t, out)[i] = (uint32_t)result;
		else
			MU_DATA(uint64_t, out)[i] = result;
	}
	return 0;
}

static const struct kernel rows[] = {
    {"RandomIndexShuffle", .run = random_index_shuffle},
};
KERNEL_TABLE(random_index_shuffle, rows)
