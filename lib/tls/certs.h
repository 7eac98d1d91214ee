/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates for the tasks of one job: a CA made for this one signature, and a certificate that
 * serves on both ends of a connection.  The CA's key is gone when the call returns. */
#ifndef MU_LIB_TLS_CERTS_H
#define MU_LIB_TLS_CERTS_H

#include <stdint.h>

#include "lib/base/err.h"

struct mu_certs { /* PEM */
	char *ca, *crt, *key;
};

/* names: what clients will call the tasks by, host names (the first label may be "*") or addresses;
 * from, to: seconds since 1970. */
int mu_certs_make(struct mu_certs *out, const char *const *names, unsigned n_names, int64_t from,
		  int64_t to, struct mu_err *err);
void mu_certs_fini(struct mu_certs *c); /* the key is wiped */
/* tls.crt, tls.key and ca.crt in a folder that exists: each replaced as a whole, the key readable
 * by this user only.  ca: (optional) instead of c->ca, as while two are trusted. */
int mu_certs_write(const struct mu_certs *c, const char *ca, const char *folder,
		   struct mu_err *err);

#endif
