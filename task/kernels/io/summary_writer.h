/* SPDX-License-Identifier: Apache-2.0 */
/* Writing to the event file of a summary writer, for ops of several families. */
#ifndef MU_TASK_KERNELS_IO_SUMMARY_WRITER_H
#define MU_TASK_KERNELS_IO_SUMMARY_WRITER_H

#include "lib/base/buf.h"
#include "task/runtime/kernel.h"

/* Writes the Summary for the step that is input 1 to the writer of input 0. */
int summary_writer_put(struct kernel_call *c, const struct mu_buf *summary, struct mu_err *err);

#endif
