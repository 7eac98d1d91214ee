/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates for the tasks of one job: a CA and a certificate for servers and clients.  The CA
 * signs only this certificate; its key is discarded. */
#ifndef MU_LIB_TLS_CERTS_H
#define MU_LIB_TLS_CERTS_H

#include <stdint.h>

#include "lib/base/err.h"

struct mu_certs { /* PEM */
	char *ca, *crt, *key;
};

/* names: host names (the first label may be "*") or IP addresses of the tasks.  from, to: validity,
 * in seconds since 1970. */
int mu_certs_make(struct mu_certs *out, const char *const *names, unsigned n_names, int64_t from,
		  int64_t to, struct mu_err *err);
void mu_certs_fini(struct mu_certs *c); /* the key is wiped */

#endif
