/* SPDX-License-Identifier: Apache-2.0 */
/* Lookup tables that are filled from a dataset. */
#ifndef MU_TASK_KERNELS_STATE_TABLE_H
#define MU_TASK_KERNELS_STATE_TABLE_H

#include "task/runtime/kernel.h"

/* Sets *out to true if the table of input 0 is initialized. */
int table_is_filled(const struct kernel_call *c, bool *out, struct mu_err *err);
/* Adds keys and their values, one row for each key, to the table of input 0. */
int table_add_pairs(const struct kernel_call *c, const struct mu_tensor *keys,
		    const struct mu_tensor *values, struct mu_err *err);
/* Marks the table of input 0 as complete. */
int table_set_filled(const struct kernel_call *c, struct mu_err *err);

#endif
