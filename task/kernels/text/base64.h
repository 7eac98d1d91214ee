/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 in the alphabet that is safe in URLs. */
#ifndef MU_TASK_KERNELS_TEXT_BASE64_H
#define MU_TASK_KERNELS_TEXT_BASE64_H

#include "lib/base/buf.h"

void base64_encode(struct mu_buf *b, struct mu_span bytes, bool pad);
/* Padded or not.  `usual`: the other alphabet's + and / are taken as well. */
int base64_decode(struct mu_buf *b, struct mu_span text, bool usual, struct mu_err *err);

#endif
