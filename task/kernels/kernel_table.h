/* SPDX-License-Identifier: Apache-2.0 */
/* How a kernel file offers its kernels: one KERNEL_TABLE at its end, listed in cpu/tables.def.
 *
 *	static const struct kernel rows[] = {{"Relu", .run = relu}, …};
 *	KERNEL_TABLE(activations, rows)
 */
#ifndef MU_TASK_KERNELS_KERNEL_TABLE_H
#define MU_TASK_KERNELS_KERNEL_TABLE_H

#include "task/runtime/kernel.h"

struct kernel_table {
	const struct kernel *rows;
	unsigned count;
};

#define KERNEL_TABLE_DECLARE(name) extern const struct kernel_table kernel_table_##name;
#define KERNEL_TABLE(name, rows)                                                                   \
	KERNEL_TABLE_DECLARE(name)                                                                 \
	const struct kernel_table kernel_table_##name = {rows, MU_COUNT(rows)};

/* All kernels of the CPU device, in the tables' order; NULL past the end. */
const struct kernel *cpu_kernel_at(unsigned i);

#endif
