/* SPDX-License-Identifier: Apache-2.0 */
/* Opens files for sequential reading, with decompression. */
#ifndef MU_LIB_IO_DECOMPRESS_H
#define MU_LIB_IO_DECOMPRESS_H

#include <stdio.h>

#include "lib/base/buf.h"

/* compression: "" (none), "GZIP" or "ZLIB"; anything else is INVALID_ARGUMENT.  Compressed files
 * are not seekable, but ftello works.  A corrupt or truncated stream is a read error (EBADMSG). */
int mu_decompress_open(FILE **out, const char *path, struct mu_span compression,
		       struct mu_err *err);
/* Sets *window to zlib's windowBits for a compression; 0: none. */
int mu_compression_window(struct mu_span compression, int *window, struct mu_err *err);

/* Appends the decompressed form of bytes in memory; at most `limit` bytes.  A corrupt stream is
 * DATA_LOSS; a truncated stream returns its complete bytes, as in TensorFlow. */
int mu_decompress_bytes(struct mu_buf *out, struct mu_span in, struct mu_span compression,
			size_t limit, struct mu_err *err);

#endif
