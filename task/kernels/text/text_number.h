/* SPDX-License-Identifier: Apache-2.0 */
/* Parses int32, int64, float or double from text; surrounding white space is allowed. */
#ifndef MU_TASK_KERNELS_TEXT_TEXT_NUMBER_H
#define MU_TASK_KERNELS_TEXT_TEXT_NUMBER_H

#include <stdbool.h>

#include "lib/tensor/tensor.h"

/* Parses the text as element `at` of data. Returns false without a write if the text is no number,
 * is out of range or has other characters. The text needs no NUL at its end. */
bool text_number(struct mu_span text, enum mu_dtype type, void *data, int64_t at);

#endif
