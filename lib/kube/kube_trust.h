/* SPDX-License-Identifier: Apache-2.0 */
/* What our end of a TLS connection believes and shows: authorities, and a certificate of our own.
 * Shared by a client's threads. */
#ifndef KUBE_TRUST_H
#define KUBE_TRUST_H

#include <openssl/ssl.h>
#include <sys/stat.h>

#include "lib/kube/kube_identity.h"

struct kube_trust {
	const struct kube_config *config; /* borrowed, as is the identity */
	struct kube_identity *identity;
	pthread_mutex_t lock; /* all below */
	SSL_CTX *now;
	SSL_SESSION *last; /* the server's newest: who shows it need not prove who we are again */
	unsigned certificate;  /* kube_identity_version of the one that is shown */
	double looked;         /* at the authorities' file; monotonic seconds */
	struct stat ca_as_was; /* a file that changes is read anew */
};
void kube_trust_init(struct kube_trust *t, const struct kube_config *config,
		     struct kube_identity *identity);
void kube_trust_fini(struct kube_trust *t);
/* For a new connection; *out is the caller's. */
int kube_trust_begin(struct kube_trust *t, SSL **out, struct mu_err *err);

#endif
