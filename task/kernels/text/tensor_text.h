/* SPDX-License-Identifier: Apache-2.0 */
/* Text of tensors in TensorFlow's format. */
#ifndef MU_TASK_KERNELS_TEXT_TENSOR_TEXT_H
#define MU_TASK_KERNELS_TEXT_TENSOR_TEXT_H

#include "lib/base/buf.h"
#include "lib/tensor/tensor.h"

/* Appends an element.  A real has the fewest digits that parse to the same number. */
void tensor_text_element(struct mu_buf *b, const struct mu_tensor *t, int64_t i);
/* Appends the first n elements (-1: all) until the text has max_bytes: "[1 2][3...]...". */
void tensor_text_first(struct mu_buf *b, const struct mu_tensor *t, int64_t n, size_t max_bytes);
/* Appends "[[1 2]\n [3 4]]", with strings in quotes.  A long dimension shows its first and last
 * edge_items elements (-1: all). */
void tensor_text_nested(struct mu_buf *b, const struct mu_tensor *t, int64_t edge_items);

#endif
