/* SPDX-License-Identifier: Apache-2.0 */
/* IDX files, the format of MNIST, plain or gzipped. */
#ifndef MU_LIB_IO_IDX_H
#define MU_LIB_IO_IDX_H

#include "lib/tensor/tensor.h"

/* Reads the whole file as a tensor: uint8, int8, int16, int32, float or double.  Errors (wrong
 * magic, wrong size, corrupt gzip stream) name file and offset. */
int mu_idx_read(struct mu_tensor *out, const char *path, struct mu_err *err);

#endif
