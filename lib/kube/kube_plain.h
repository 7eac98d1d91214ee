/* SPDX-License-Identifier: Apache-2.0 */
/* Plain http:// addresses outside the API server: no credentials of ours ever go there, no proxy,
 * one second for everything, at most 64 KiB. */
#ifndef KUBE_PLAIN_H
#define KUBE_PLAIN_H

#include <stdatomic.h>
#include <stdbool.h>

#include "lib/base/buf.h"

/* GET, or POST of a body, which may be empty.  401 is UNAUTHENTICATED, 403 PERMISSION_DENIED, all
 * else but 2xx UNAVAILABLE.  bearer: a token for the server, or NULL.  *stopped ends it. */
int kube_plain_ask(const char *url, const char *bearer, const struct mu_span *post,
		   const _Atomic bool *stopped, struct mu_buf *out, struct mu_err *err);

#endif
