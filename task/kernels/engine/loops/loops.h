/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loops of elementwise ops and optimizer updates, compiled once for each level of vector
 * instructions.  cpu_kernels_select picks one set at start; kernels call through `loops`.
 *
 * Loops over elements may run in place: out == a or out == b.
 */
#ifndef MU_TASK_KERNELS_ENGINE_LOOPS_LOOPS_H
#define MU_TASK_KERNELS_ENGINE_LOOPS_LOOPS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/tensor/dtype.h"
#include "task/kernels/engine/loops/tiles.h"

enum unary_op {
#define UNARY(op, types, expr)     UN_##op,
#define PREDICATE(op, types, expr) UN_##op,
#include "task/kernels/engine/loops/loops.def"
#undef UNARY
#undef PREDICATE
	UN_COUNT
};

enum binary_op {
#define BINARY(op, types, expr)  BIN_##op,
#define COMPARE(op, types, expr) BIN_##op,
#include "task/kernels/engine/loops/loops.def"
#undef BINARY
#undef COMPARE
	BIN_COUNT
};

enum binary_form { BOTH_RUN, LEFT_SCALAR, RIGHT_SCALAR };

enum reduce_op { RED_SUM, RED_PROD, RED_MAX, RED_MIN, RED_AND, RED_OR, RED_COUNT };

typedef void unary_loop(void *out, const void *a, int64_t n);
typedef void binary_loop(void *out, const void *a, const void *b, int64_t n, enum binary_form f);

struct reduce_loops {
	void (*start)(void *out, int64_t n);              /* the neutral element */
	void (*row)(void *out, const void *a, int64_t n); /* out[0] = out[0] op a[0] op … */
	void (*add)(void *out, const void *a, int64_t n); /* out[i] = out[i] op a[i] */
};

/* Optimizer updates of n elements: at[0] is the variable, at[s] slot s; NULL where there is none.
 * k has the constants that optimizers.def names. */
enum optimizer_kind {
#define OPTIMIZER(kind, name, constants, ...) OPTIMIZER_##kind,
#include "task/kernels/engine/loops/optimizers.def"
	OPTIMIZER_COUNT
};
typedef void update_loop(void *const *at, const void *grad, int64_t n, const double *k);

/* A row of outputs of 2 by 2 windows with stride 2, over two rows of the input. */
struct pool_loops {
	void (*max)(void *out, const void *top, const void *bottom, int64_t columns,
		    int64_t channels);
	void (*average)(void *out, const void *top, const void *bottom, int64_t columns,
			int64_t channels);
	/* Writes the gradient to each window's first largest element, and zeros to the others. */
	void (*max_back)(void *out_top, void *out_bottom, const void *top, const void *bottom,
			 const void *grad, int64_t columns, int64_t channels);
};

/* The taps of a convolution's window that are inside the input, and the steps between them. */
struct conv_taps {
	int64_t channels, rows, columns, x_row, x_column, w_row, w_column;
};
/* x and w are at the first tap. Computes y, or adds to the gradients x or w. */
typedef void depthwise_loop(const struct conv_taps *t, void *x, void *w, void *y);

/* out = softmax(in), a row of n; stats: the largest element and the sum of e^(x - largest), of the
 * element type.  Not in place. */
typedef void softmax_loop(void *out, const void *in, int64_t n, void *stats);

/* transpose_2d() of elements of 4 bytes, and of 8. */
enum { TRANSPOSE_4, TRANSPOSE_8, TRANSPOSE_SIZES };
typedef void transpose_loop(void *to, int64_t to_step, const void *from, int64_t from_step,
			    int64_t m, int64_t n);

struct loops {
	const char *variant; /* "cpu-generic", "cpu-avx2", "cpu-avx512" */
	unary_loop *unary[UN_COUNT][MU_DT_COUNT];
	binary_loop *binary[BIN_COUNT][MU_DT_COUNT];
	struct reduce_loops reduce[RED_COUNT][MU_DT_COUNT];
	update_loop *update[MU_DT_COUNT][OPTIMIZER_COUNT]; /* float and double */
	struct tile_loops tile[MU_DT_COUNT];               /* float and double */
	struct pool_loops pool[MU_DT_COUNT];               /* float and double */
	depthwise_loop *depthwise[MU_DT_COUNT][3];         /* by enum conv_direction */
	softmax_loop *softmax[MU_DT_COUNT];                /* float and double */
	transpose_loop *transpose[TRANSPOSE_SIZES];
};

extern const struct loops *loops; /* the selected set; cpu-generic before cpu_kernels_select */

/* Runs loops->binary[op][t]; 16-bit floats are computed as floats, a block at a time.  `out` has
 * the type of the elements.  Returns false, without effect, if the op has no loop for t. */
bool loops_binary(enum binary_op op, enum mu_dtype t, void *out, const void *a, const void *b,
		  int64_t n, enum binary_form f);
/* True if loops_binary has a loop for this op and type. */
bool loops_binary_known(enum binary_op op, enum mu_dtype t);

/* Selects a variant: "cpu-generic", "cpu-avx2" or "cpu-avx512"; NULL or "" the best one for this
 * processor.  INVALID_ARGUMENT for an unknown name, FAILED_PRECONDITION if the processor lacks the
 * instructions.  Sets OpenBLAS's core type accordingly.  Call before the first step. */
int cpu_kernels_select(const char *variant, struct mu_err *err);
const char *cpu_kernels_variant(void); /* the selected variant */
const char *cpu_kernels_best(void);    /* the best variant for this processor */

#endif
