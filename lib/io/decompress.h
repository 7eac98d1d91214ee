/* SPDX-License-Identifier: Apache-2.0 */
/* Opens files for sequential reading, with decompression. */
#ifndef MU_IO_DECOMPRESS_H
#define MU_IO_DECOMPRESS_H

#include <stdio.h>

#include "lib/base/buf.h"

/* compression: "" (none), "GZIP" or "ZLIB"; anything else is INVALID_ARGUMENT.  Compressed files
 * are not seekable, but ftello works.  A corrupt or truncated stream is a read error (EBADMSG). */
int mu_decompress_open(FILE **out, const char *path, struct mu_span compression,
		       struct mu_err *err);
/* zlib's windowBits for a compression, 0 for none. */
int mu_compression_window(struct mu_span compression, int *window, struct mu_err *err);

#endif
