/* SPDX-License-Identifier: Apache-2.0 */
/* Mutual TLS from a folder with tls.crt, tls.key and ca.crt (PEM), such as a Kubernetes secret
 * volume.  Both ends of a connection present tls.crt and accept only a certificate that ca.crt
 * signed. Replaced files take effect for new connections. */
#ifndef MU_LIB_TLS_TLS_CONTEXT_H
#define MU_LIB_TLS_TLS_CONTEXT_H

#include <stddef.h>

#include "lib/base/err.h"

struct mu_tls_context;
enum mu_tls_file { MU_TLS_CA, MU_TLS_CERTIFICATE, MU_TLS_KEY };

/* The files must exist and belong together. */
int mu_tls_context_open(const char *folder, struct mu_tls_context **out, struct mu_err *err);
void mu_tls_context_free(struct mu_tls_context *t); /* t may be NULL */
const char *mu_tls_context_path(const struct mu_tls_context *t, enum mu_tls_file file);
/* Returns a new OpenSSL connection with the current files; NULL: OpenSSL has no memory. */
struct ssl_st *mu_tls_context_new_ssl(struct mu_tls_context *t);
/* Writes the reason of the last OpenSSL error to `out`, and clears the errors of this thread. */
void mu_tls_reason(char *out, size_t size);

#endif
