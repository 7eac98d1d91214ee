/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are read from front to back, unpacked on the way. */
#ifndef MU_IO_UNPACK_H
#define MU_IO_UNPACK_H

#include <stdio.h>

#include "lib/base/buf.h"

/* packing: "" (as it lies there), "GZIP" or "ZLIB"; anything else is INVALID_ARGUMENT.  What is
 * packed cannot be sought in, but ftello says how far it was read; a stream that is broken or cut
 * short is a read error (EBADMSG). */
int mu_unpack_open(FILE **out, const char *path, struct mu_span packing, struct mu_err *err);

#endif
