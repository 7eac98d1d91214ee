/* SPDX-License-Identifier: Apache-2.0 */
/* Converts rows of bytes to rows of floats.
 *
 * Where division gives exactly the values of the 256-entry table, 16 bytes are converted at a time.
 * This is the case for every scale that is a float. A table look-up per byte takes three times as
 * long.
 */
#include "client/data/dataset.h"

typedef uint8_t bytes16 __attribute__((vector_size(16), aligned(1), may_alias));
typedef uint16_t words8 __attribute__((vector_size(16), may_alias));
typedef int32_t ints4 __attribute__((vector_size(16), may_alias));
typedef float floats4 __attribute__((vector_size(16), may_alias));
typedef float unaligned_floats4 __attribute__((vector_size(16), aligned(4), may_alias));

/* Returns scale as a float if i / scale is exactly byte_values[i] for each byte i, else 0. */
static float exact_divisor(const float *byte_values, double scale)
{
	float divisor = (float)scale;

	for (int i = 0; i < 256; i++)
		if ((float)i / divisor != byte_values[i])
			return 0;
	return divisor;
}

void bytes_table_init(struct mu_dataset *d, double scale)
{
	d->byte_values = MU_NEW_ARRAY(float, 256);
	for (int i = 0; i < 256; i++)
		d->byte_values[i] = (float)(i / scale);
	d->divisor = exact_divisor(d->byte_values, scale);
}

static floats4 divide(ints4 x, floats4 divisor_vector)
{
	return __builtin_convertvector(x, floats4) / divisor_vector;
}

static void store8(float *to, words8 x, floats4 divisor_vector)
{
	const words8 zero = {0};

	*(unaligned_floats4 *)to = divide(
	    (ints4)__builtin_shufflevector(x, zero, 0, 8, 1, 9, 2, 10, 3, 11), divisor_vector);
	*(unaligned_floats4 *)(to + 4) = divide(
	    (ints4)__builtin_shufflevector(x, zero, 4, 12, 5, 13, 6, 14, 7, 15), divisor_vector);
}

void bytes_to_floats(const struct mu_dataset *d, const uint8_t *from, float *to)
{
	const floats4 divisor_vector = {d->divisor, d->divisor, d->divisor, d->divisor};
	const bytes16 zero = {0};
	int64_t i = 0;

	for (; d->divisor > 0 && i + 16 <= d->features; i += 16) {
		bytes16 x = *(const bytes16 *)(from + i);

		store8(to + i,
		       (words8)__builtin_shufflevector(x, zero, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20,
						       5, 21, 6, 22, 7, 23),
		       divisor_vector);
		store8(to + i + 8,
		       (words8)__builtin_shufflevector(x, zero, 8, 24, 9, 25, 10, 26, 11, 27, 12,
						       28, 13, 29, 14, 30, 15, 31),
		       divisor_vector);
	}
	for (; i < d->features; i++)
		to[i] = d->byte_values[from[i]];
}
