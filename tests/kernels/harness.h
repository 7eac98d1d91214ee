/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one kernel without an executor: a node with attributes, input tensors and output tensors. */
#ifndef MU_TESTS_KERNELS_HARNESS_H
#define MU_TESTS_KERNELS_HARNESS_H

#include "task/kernels/engine/kernel_table.h"
#include "task/runtime/resources.h"
#include "task/runtime/runtime.h"

enum { HARNESS_MAX = 128 };

struct harness {
	struct runtime *rt;
	struct mu_graph *g;
	struct mu_node *node;
	const struct kernel *kernel;
	void *state;
	struct value in[HARNESS_MAX], out[HARNESS_MAX];
	unsigned n_in, n_out;
};

/* A runtime with this number of compute threads and without a network. */
int harness_runtime(unsigned threads, struct runtime **out, struct mu_err *err);
/* Finds the kernel and op definition of the node and prepares the kernel.  The graph keeps
 * ownership of the node. */
int harness_prepare(struct harness *h, struct runtime *rt, struct mu_node *n, struct mu_err *err);
void harness_input(struct harness *h, struct mu_tensor t); /* takes the reference */
void harness_input_ref(struct harness *h, struct variable *v);
/* Releases the outputs of the previous run. */
int harness_run(struct harness *h, struct mu_err *err);
void harness_clear_inputs(struct harness *h);
void harness_fini(struct harness *h);

#endif
