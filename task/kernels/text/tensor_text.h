/* SPDX-License-Identifier: Apache-2.0 */
/* Text of tensors in TensorFlow's format. */
#ifndef MU_TASK_KERNELS_TEXT_TENSOR_TEXT_H
#define MU_TASK_KERNELS_TEXT_TENSOR_TEXT_H

#include "lib/base/buf.h"
#include "lib/tensor/tensor.h"

/* One element; reals with the fewest digits that give the same number again. */
void tensor_text_element(struct mu_buf *b, const struct mu_tensor *t, int64_t i);
/* "[1 2][3...]...": the first n elements (-1: all), until the text has `longest` bytes. */
void tensor_text_first(struct mu_buf *b, const struct mu_tensor *t, int64_t n, size_t longest);
/* "[[1 2]\n [3 4]]": strings in quotes, of a long dimension its first and last `ends` (-1: all). */
void tensor_text_nested(struct mu_buf *b, const struct mu_tensor *t, int64_t ends);

#endif
