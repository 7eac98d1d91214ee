/* SPDX-License-Identifier: Apache-2.0 */
/* Summary messages and the event file of a summary writer, for ops of several families. */
#ifndef MU_TASK_KERNELS_IO_SUMMARY_WRITER_H
#define MU_TASK_KERNELS_IO_SUMMARY_WRITER_H

#include "lib/base/buf.h"
#include "task/runtime/kernel.h"

/* Field numbers of Summary and Summary.Value. */
enum {
	SUMMARY_VALUE = 1,
	VALUE_TAG = 1,
	VALUE_SIMPLE = 2,
	VALUE_AUDIO = 6,
	VALUE_NODE_NAME = 7,
	VALUE_TENSOR = 8,
	VALUE_METADATA = 9,
};

/* Appends the tensor to the body of a Summary.Value. */
void summary_put_tensor(struct mu_buf *value, const struct mu_tensor *t);
/* Appends a histogram to the body of a Summary.  Values that are not finite are an error; its
 * message contains `name`, the name of the node. */
int summary_put_histogram(struct mu_buf *summary, const char *name, struct mu_span tag,
			  const struct mu_tensor *values, struct mu_err *err);
/* Writes the Summary to the writer of input 0; input 1 is the step. */
int summary_writer_put(struct kernel_call *c, const struct mu_buf *summary, struct mu_err *err);

#endif
