/* SPDX-License-Identifier: Apache-2.0 */
/* Compares a GPU kernel with the CPU kernel. The executor runs both, so that copies, memory spaces
 * and the exec graph are those of a real step. The GPU is a fake CUDA in host memory. */
#ifndef MU_TESTS_KERNELS_GPU_COMPARE_H
#define MU_TESTS_KERNELS_GPU_COMPARE_H

#include <string.h>

#include "task/kernels/engine/gpu_table.h"
#include "tests/test.h"

#define CPU "/job:test/replica:0/task:0/device:CPU:0"
#define GPU "/job:test/replica:0/task:0/device:GPU:0"

enum { MAX_OUT = 8, MAX_IN = 20 };

struct attr {
	const char *name;
	/* A_FLOAT: in thousandths.  A_INTS and A_TEXTS: "1,2" */
	enum { A_TYPE, A_BOOL, A_INT, A_TEXT, A_TEXTS, A_INTS, A_FLOAT } kind;
	long value;
	const char *text;
};

extern struct mu_err err;

/* The plug-in that MUSTER_GPU_TEST names, or else the fake one. Prints the reason and returns NULL
 * if it is not available. */
const struct cuda_plugin *gpu_plugin_to_test(void);

int setup(void **state); /* for each test */
int teardown(void **state);

struct mu_shape dims_of(int rank, const int64_t *dims);
/* A tensor of pseudo-random numbers in [low, low + span). */
struct mu_tensor filled(enum mu_dtype t, const struct mu_shape *s, double low, double span,
			unsigned seed);
struct mu_tensor ints(enum mu_dtype t, int64_t n, const int64_t *v); /* n = -1: a scalar */
void put(struct mu_tensor *t, int64_t i, double v);
double get(const struct mu_tensor *t, int64_t i);
double tolerance(enum mu_dtype t);

/* Runs op(in…) on this device; out: the output tensors. */
int run_op(const char *device, const char *op, const struct attr *attrs, const struct mu_tensor *in,
	   unsigned n_in, struct mu_tensor *out, unsigned *n_out);
/* Runs op(in…) on both devices. Results must agree within slack times the type's tolerance. If the
 * CPU rejects the inputs, the GPU must return the same error code. */
void compare(const char *op, const struct attr *attrs, const struct mu_tensor *in, unsigned n_in,
	     double slack);

/* Compares op(variables…, in…) on both devices: results, variables afterwards, or the error. Each
 * variable is passed by handle or by reference, as the op requires, and starts with the given
 * value. */
int compare_update(const char *op, const struct attr *attrs, const struct mu_tensor *values,
		   unsigned n_values, const struct mu_tensor *in, unsigned n_in, double slack);
/* Runs op(variables…, in…) on one device; out: the values of the variables afterwards. */
int run_update(const char *device, const char *op, const struct attr *attrs,
	       const struct mu_tensor *values, unsigned n_values, const struct mu_tensor *in,
	       unsigned n_in, struct mu_tensor *out);

#endif
