/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MU_TASK_KERNELS_TEXT_LETTER_CASE_H
#define MU_TASK_KERNELS_TEXT_LETTER_CASE_H

#include "lib/base/buf.h"
#include "lib/base/err.h"

/* Appends the text, in UTF-8, in upper or lower case.  Malformed bytes become U+FFFD. */
int letter_case_put(struct mu_buf *b, struct mu_span s, bool upper, struct mu_err *err);

#endif
