/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel table of a file: one KERNEL_TABLE at its end, named after the file and listed in
 * engine/cpu_tables.def, or for GPUs in engine/gpu_tables.def.  A row names one op, or several,
 * separated by spaces.
 *
 *	static const struct kernel rows[] = {{"Split SplitV", .run = split}, …};
 *	KERNEL_TABLE(array_join, rows)
 */
#ifndef MU_TASK_KERNELS_ENGINE_KERNEL_TABLE_H
#define MU_TASK_KERNELS_ENGINE_KERNEL_TABLE_H

#include "task/runtime/kernel.h"

struct kernel_table {
	const void *rows; /* each begins with its struct kernel */
	size_t row_size;
	unsigned count;
};

#define KERNEL_TABLE_DECLARE(name) extern const struct kernel_table kernel_table_##name;
#define KERNEL_TABLE(name, rows)                                                                   \
	KERNEL_TABLE_DECLARE(name)                                                                 \
	const struct kernel_table kernel_table_##name = {rows, sizeof *(rows), MU_COUNT(rows)};

/* Defines the kernel `name`, which returns `call`: a function of several ops with the arguments for
 * this one. */
#define KERNEL_RUN(name, call)                                                                     \
	static int name(struct kernel_call *c, struct mu_err *err)                                 \
	{                                                                                          \
		return call;                                                                       \
	}

/* The kernels in this program, for runtime_new. */
extern const struct kernel_registry task_kernels;

/* The CPU device's kernel of an op; NULL: none. */
const struct kernel *cpu_kernel_find(const char *op);
/* The function that runs node n by kernel k: k->run, or one that widens 16-bit floats for it and
 * narrows its outputs. */
kernel_fn *cpu_kernel_run(const struct kernel *k, const struct mu_node *n);

/* The way a GPU device runs a node: not at all; on the host, with its tensors in host memory; by a
 * GPU kernel. */
enum kernel_gpu { KERNEL_GPU_NONE, KERNEL_GPU_HOST, KERNEL_GPU_NATIVE };
enum kernel_gpu kernel_on_gpu(const struct mu_node *n);

/* A bool attribute that a graph pass sets: the node fails for a singular matrix, as in the client's
 * version of TensorFlow. */
#define SINGULAR_ERROR_ATTR "_singular_error"

/* All rows of the CPU device, in the tables' order; NULL past the end. */
const struct kernel *cpu_kernel_at(unsigned i);

#endif
