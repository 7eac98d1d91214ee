/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files that may be gzipped. */
#ifndef MU_IO_GZ_H
#define MU_IO_GZ_H

#include "lib/base/buf.h"

/* Appends the file's bytes, unpacked when they are gzipped; at most `limit` of them.  A broken or
 * cut stream is DATA_LOSS with the offset, in unpacked bytes. */
int mu_gz_read_file(struct mu_buf *out, const char *path, size_t limit, struct mu_err *err);

#endif
