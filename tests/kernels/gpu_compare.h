/* SPDX-License-Identifier: Apache-2.0 */
/* A GPU kernel beside the CPU's, through the executor, so that copies, where inputs lie and the
 * plan are what they are in a step; on a CUDA in host memory. */
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
	/* A_FLOAT: thousandths.  A_INTS, A_TEXTS: "1,2" */
	enum { A_TYPE, A_BOOL, A_INT, A_TEXT, A_TEXTS, A_INTS, A_FLOAT } kind;
	long value;
	const char *text;
};

extern struct mu_err err;

/* The GPU that MUSTER_GPU_TEST names, else the fake one; NULL: not available, the reason is
 * printed. */
const struct cuda_plugin *gpu_plugin_to_test(void);

int setup(void **state); /* of each test */
int teardown(void **state);

struct mu_shape dims_of(int rank, const int64_t *dims);
/* Numbers of [low, low + span). */
struct mu_tensor filled(enum mu_dtype t, const struct mu_shape *s, double low, double span,
			unsigned seed);
struct mu_tensor ints(enum mu_dtype t, int64_t n, const int64_t *v); /* n -1: a scalar */
void put(struct mu_tensor *t, int64_t i, double v);
double get(const struct mu_tensor *t, int64_t i);
double tolerance(enum mu_dtype t);

/* op(in…) on this device; out: what it gives. */
int run_op(const char *device, const char *op, const struct attr *attrs, const struct mu_tensor *in,
	   unsigned n_in, struct mu_tensor *out, unsigned *n_out);
/* Runs it on both: results are within slack times the type's tolerance, what the CPU refuses the
 * GPU refuses too. */
void compare(const char *op, const struct attr *attrs, const struct mu_tensor *in, unsigned n_in,
	     double slack);

/* Compares op(variables…, in…) on both devices: results, variables afterwards, or the error. Each
 * variable is passed by handle or by reference, as the op requires, and starts with the given
 * value. */
int compare_update(const char *op, const struct attr *attrs, const struct mu_tensor *values,
		   unsigned n_values, const struct mu_tensor *in, unsigned n_in, double slack);
/* The same on one device; out: the variables. */
int run_update(const char *device, const char *op, const struct attr *attrs,
	       const struct mu_tensor *values, unsigned n_values, const struct mu_tensor *in,
	       unsigned n_in, struct mu_tensor *out);

#endif
