/* SPDX-License-Identifier: Apache-2.0 */
/* Vocabularies: text files with one entry per line. */
#ifndef MU_TASK_KERNELS_IO_VOCABULARY_FILE_H
#define MU_TASK_KERNELS_IO_VOCABULARY_FILE_H

#include "task/runtime/kernel.h"

/* The whole file that input `in` names. */
int vocabulary_read(const struct kernel_call *c, unsigned in, struct mu_buf *b, struct mu_err *err);
/* The next line of the text, without its end; false behind the last. */
bool vocabulary_line(const struct mu_buf *b, size_t *at, struct mu_span *out);
/* A table's keys and values as the node's attributes key_index, value_index, vocab_size, delimiter
 * and offset take them from the file that input 1 names: whole lines, line numbers, or columns. */
int vocabulary_pairs(const struct kernel_call *c, enum mu_dtype key, enum mu_dtype value,
		     struct mu_tensor *keys, struct mu_tensor *values, struct mu_err *err);

#endif
