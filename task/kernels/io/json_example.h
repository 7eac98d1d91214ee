/* SPDX-License-Identifier: Apache-2.0 */
/* A tf.Example written as JSON, as protocol buffers are: names in either style, numbers as numbers
 * or strings, bytes in base64.
 *
 * Minus zero is zero, and whole numbers beyond 2^53 are rejected unless they are strings: both
 * would have lost something on their way here.
 *
 *	{"features": {"feature": {"a": {"int64List": {"value": ["1", 2]}}, …}}}
 */
#ifndef MU_TASK_KERNELS_IO_JSON_EXAMPLE_H
#define MU_TASK_KERNELS_IO_JSON_EXAMPLE_H

#include "lib/base/buf.h"

/* Appends the bytes of the message. After a failure the appended bytes are incomplete. */
int json_example(struct mu_buf *out, struct mu_span text, struct mu_err *err);

#endif
