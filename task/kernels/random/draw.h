/* SPDX-License-Identifier: Apache-2.0 */
/* Random tensors from a given generator state: TensorFlow's numbers, for ops with their own
 * generator and for ops that take key and counter as inputs. */
#ifndef MU_TASK_KERNELS_RANDOM_DRAW_H
#define MU_TASK_KERNELS_RANDOM_DRAW_H

#include "task/kernels/random/philox.h"
#include "task/runtime/kernel.h"

/* The number of draws reserved for an element that may take more than one. */
enum { DRAWS_RESERVED = 256 };

struct distribution;
extern const struct distribution draw_uniform, draw_normal, draw_truncated;

/* The type and shape of the output: the shape is input i, the type is attribute dtype. */
int draw_output_shape(const struct kernel_call *c, unsigned i, enum mu_dtype *t,
		      struct mu_shape *shape, struct mu_err *err);
/* Output 0, float, double or a 16-bit float, as draws from `from` on. */
int draw_reals(struct kernel_call *c, const struct distribution *d, enum mu_dtype t,
	       const struct mu_shape *shape, const struct philox *from, struct mu_err *err);

/* The next numbers of a distribution for elements of type t: 2 of double, else 4; returns how many.
 * Type t is half, bfloat16, float or double. */
int draw_group(const struct distribution *d, enum mu_dtype t, struct philox *p, double out[4]);
/* Two numbers of the normal distribution. */
void draw_two_normals(struct philox *p, double out[2]);
/* The start of the random numbers for a key, a counter and an algorithm: inputs 1 to 3
 * (random/stateless.c). */
int random_from_key(const struct kernel_call *c, struct philox *out, struct mu_err *err);
/* The start for the variable in input 0, which advances by so many groups, and the algorithm in
 * input 1 (random/stateful.c). */
int random_from_variable(const struct kernel_call *c, uint64_t groups, struct philox *out,
			 struct mu_err *err);
/* The algorithms, as programs number them.  AUTO leaves it to the device, and ours all have Philox.
 */
enum { RANDOM_PHILOX = 1, RANDOM_THREEFRY = 2, RANDOM_AUTO = 3 };

/* Whole numbers of 32 or 64 bits: from `low` on, `span` of them; all that there are where span is
 * 0. */
struct draw_range {
	uint64_t low, span;
};
/* The range that two scalars give; an empty one is an error if n numbers are to be drawn. */
int draw_range(const struct kernel_call *c, unsigned low, unsigned high, int64_t n,
	       struct draw_range *out, struct mu_err *err);
int draw_ints(struct kernel_call *c, enum mu_dtype t, const struct mu_shape *shape,
	      struct draw_range range, const struct philox *from, struct mu_err *err);

#endif
