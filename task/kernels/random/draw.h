/* SPDX-License-Identifier: Apache-2.0 */
/* Random tensors from a given generator state, with TensorFlow's numbers. Used by ops that own a
 * generator and by ops that take key and counter as inputs. */
#ifndef MU_TASK_KERNELS_RANDOM_DRAW_H
#define MU_TASK_KERNELS_RANDOM_DRAW_H

#include "task/kernels/random/philox.h"
#include "task/runtime/kernel.h"

/* The number of draws reserved for an element, which may need more than one draw. */
enum { DRAWS_RESERVED = 256 };

struct distribution;
extern const struct distribution draw_uniform, draw_normal, draw_truncated;

/* The type and shape of the output: the shape is input i, the type is attribute dtype. */
int draw_output_shape(const struct kernel_call *c, unsigned i, enum mu_dtype *t,
		      struct mu_shape *shape, struct mu_err *err);
/* Fills output 0 (float, double or a 16-bit float) with the draws from `from` on. */
int draw_reals(struct kernel_call *c, const struct distribution *d, enum mu_dtype t,
	       const struct mu_shape *shape, const struct philox *from, struct mu_err *err);

/* Draws the next numbers of a distribution for elements of type t: half, bfloat16, float or double.
 * Returns their number: 2 for double, else 4. */
int draw_group(const struct distribution *d, enum mu_dtype t, struct philox *p, double out[4]);
/* Draws two numbers of the normal distribution. */
void draw_two_normals(struct philox *p, double out[2]);
/* Reads the generator state from inputs 1 to 3: key, counter and algorithm (random/stateless.c). */
int random_from_key(const struct kernel_call *c, struct philox *out, struct mu_err *err);
/* Reads the generator state in the variable of input 0 and advances the variable by `groups`
 * groups. Input 1 is the algorithm (random/stateful.c). */
int random_from_variable(const struct kernel_call *c, uint64_t groups, struct philox *out,
			 struct mu_err *err);
/* TensorFlow's numbers of the algorithms.  AUTO is Philox on every device. */
enum { RANDOM_PHILOX = 1, RANDOM_THREEFRY = 2, RANDOM_AUTO = 3 };

/* A range of 32- or 64-bit integers: `span` numbers from `low` on.  Span 0 is the full range of the
 * type. */
struct draw_range {
	uint64_t low, span;
};
/* Reads the range from inputs `low` and `high`.  An empty range is an error if n is not 0. */
int draw_range(const struct kernel_call *c, unsigned low, unsigned high, int64_t n,
	       struct draw_range *out, struct mu_err *err);
int draw_ints(struct kernel_call *c, enum mu_dtype t, const struct mu_shape *shape,
	      struct draw_range range, const struct philox *from, struct mu_err *err);

#endif
