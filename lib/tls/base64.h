/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 of certificates and keys in configuration files. */
#ifndef MU_LIB_TLS_BASE64_H
#define MU_LIB_TLS_BASE64_H

#include "lib/base/buf.h"

/* Decodes less than size_max bytes of text, which may have line breaks.  `what` is
 * the name of the text in errors.  A NUL follows the result. */
int mu_base64_decode(const char *text, const char *what, size_t size_max, struct mu_buf *out,
		     struct mu_err *err);

#endif
