/* SPDX-License-Identifier: Apache-2.0 */
/* Vocabularies: text files with one entry per line. */
#ifndef MU_TASK_KERNELS_IO_VOCABULARY_FILE_H
#define MU_TASK_KERNELS_IO_VOCABULARY_FILE_H

#include "task/runtime/kernel.h"

/* Reads the file that input `in` names.  *n: number of lines, at most vocab_size, which must all
 * exist; -1: all lines of the file. */
int vocabulary_read(const struct kernel_call *c, unsigned in, int64_t vocab_size, struct mu_buf *b,
		    int64_t *n, struct mu_err *err);
/* Reads the next line, without its line end; returns false at the end of the text. */
bool vocabulary_line(const struct mu_buf *b, size_t *at, struct mu_span *out);
/* Reads the keys and values of a table from the file that input 1 names.  The attributes key_index,
 * value_index, vocab_size, delimiter and offset choose lines, line numbers or columns. */
int vocabulary_pairs(const struct kernel_call *c, enum mu_dtype key, enum mu_dtype value,
		     struct mu_tensor *keys, struct mu_tensor *values, struct mu_err *err);

#endif
