/* SPDX-License-Identifier: Apache-2.0 */
/* Reads whole files, which may be gzipped. */
#ifndef MU_LIB_IO_GZ_H
#define MU_LIB_IO_GZ_H

#include "lib/base/buf.h"

/* Appends the file's bytes, decompressed if gzipped; at most `limit` bytes.  A corrupt or truncated
 * stream is DATA_LOSS with the offset in decompressed bytes. */
int mu_gz_read_file(struct mu_buf *out, const char *path, size_t limit, struct mu_err *err);

#endif
