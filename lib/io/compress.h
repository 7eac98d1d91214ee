/* SPDX-License-Identifier: Apache-2.0 */
/* Creates files for sequential writing, with compression. */
#ifndef MU_LIB_IO_COMPRESS_H
#define MU_LIB_IO_COMPRESS_H

#include <stdio.h>

#include "lib/base/buf.h"

/* compression: as for mu_decompress_open.  fclose writes the end of the file, so callers must
 * check its result. */
int mu_compress_create(FILE **out, const char *path, struct mu_span compression,
		       struct mu_err *err);

#endif
