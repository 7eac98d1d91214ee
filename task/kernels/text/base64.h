/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 with the URL-safe alphabet. */
#ifndef MU_TASK_KERNELS_TEXT_BASE64_H
#define MU_TASK_KERNELS_TEXT_BASE64_H

#include "lib/base/buf.h"

void base64_encode(struct mu_buf *b, struct mu_span bytes, bool pad);
/* The padding is optional.  accept_standard: accepts + and / of the standard alphabet too. */
int base64_decode(struct mu_buf *b, struct mu_span text, bool accept_standard, struct mu_err *err);

#endif
