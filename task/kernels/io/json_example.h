/* SPDX-License-Identifier: Apache-2.0 */
/* Converts a tf.Example in the JSON format of protocol buffers: field names in camelCase or
 * as in the proto file, numbers as numbers or strings, bytes in base64.
 *
 * -0 becomes 0.  Integers of 2^53 or more are rejected unless they are strings, because the JSON
 * parser stores numbers as doubles.
 *
 *	{"features": {"feature": {"a": {"int64List": {"value": ["1", 2]}}, …}}}
 */
#ifndef MU_TASK_KERNELS_IO_JSON_EXAMPLE_H
#define MU_TASK_KERNELS_IO_JSON_EXAMPLE_H

#include "lib/base/buf.h"

/* Appends the bytes of the message. After a failure the appended bytes are incomplete. */
int json_example(struct mu_buf *out, struct mu_span text, struct mu_err *err);

#endif
