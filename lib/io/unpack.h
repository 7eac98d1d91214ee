/* SPDX-License-Identifier: Apache-2.0 */
/* Opens files for sequential reading, with decompression. */
#ifndef MU_IO_UNPACK_H
#define MU_IO_UNPACK_H

#include <stdio.h>

#include "lib/base/buf.h"

/* packing: "" (none), "GZIP" or "ZLIB"; anything else is INVALID_ARGUMENT.  Compressed files are
 * not seekable, but ftello works.  A corrupt or truncated stream is a read error (EBADMSG). */
int mu_unpack_open(FILE **out, const char *path, struct mu_span packing, struct mu_err *err);

#endif
