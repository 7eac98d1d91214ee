/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion of elements of any real type to doubles and to text. */
#ifndef MU_LIB_TENSOR_NUMBER_H
#define MU_LIB_TENSOR_NUMBER_H

#include "lib/tensor/tensor.h"

/* True for integers, floating-point numbers and bools. */
bool mu_dtype_is_number(enum mu_dtype t);
/* Returns element i of a tensor of such a type, rounded to a double. */
double mu_tensor_number(const struct mu_tensor *t, int64_t i);
/* Appends element i in decimal: integers exactly, others with six digits. */
void mu_tensor_put_number(struct mu_buf *b, const struct mu_tensor *t, int64_t i);

#endif
