/* SPDX-License-Identifier: Apache-2.0 */
/* Parses int32, int64, float or double from text; surrounding white space is allowed. */
#ifndef MU_TASK_KERNELS_TEXT_TEXT_NUMBER_H
#define MU_TASK_KERNELS_TEXT_TEXT_NUMBER_H

#include <stdbool.h>

#include "lib/tensor/tensor.h"

/* Element `at` of data, of that type; false, and nothing written, when the text is none, is out of
 * range or goes on behind the number.  Nothing behind the text is read. */
bool text_number(struct mu_span text, enum mu_dtype type, void *data, int64_t at);

#endif
