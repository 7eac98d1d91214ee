/* SPDX-License-Identifier: Apache-2.0 */
/* Bearer tokens of jobs.
 *
 * The token of a job is HMAC-SHA256(key of the operator, UID of the job).  The operator derives it
 * when needed and does not store it.  A task has only the SHA-256 of the token, which is enough to
 * check a token but not to create one. */
#ifndef MU_LIB_TLS_TOKEN_H
#define MU_LIB_TLS_TOKEN_H

#include <stdbool.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

enum { MU_TOKEN_SIZE = 65 }; /* 32 bytes in hexadecimal, and a NUL */

/* out is "" on failure. */
int mu_token_derive(struct mu_span key, const char *subject, char out[MU_TOKEN_SIZE],
		    struct mu_err *err);
int mu_token_digest(struct mu_span token, char out[MU_TOKEN_SIZE], struct mu_err *err);
/* True if digest is the token's digest.  The comparison takes constant time. */
bool mu_token_matches(struct mu_span token, const char *digest);
/* True if text has 64 hexadecimal digits in lower case. */
bool mu_token_is_digest(const char *text);

#endif
