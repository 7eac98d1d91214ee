/* SPDX-License-Identifier: Apache-2.0 */
#include "task/kernels/engine/gpu_table.h"
#include "task/kernels/engine/kernel_table.h"

const struct kernel_registry task_kernels = {
    .find = cpu_kernel_find, .function = cpu_kernel_run, .find_device = gpu_kernel_find};
