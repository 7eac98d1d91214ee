/* SPDX-License-Identifier: Apache-2.0 */
/* The credentials of each request: a token, a plug-in's credential, a certificate or a password.
 * Internal to kube_client; shared by its threads. */
#ifndef KUBE_IDENTITY_H
#define KUBE_IDENTITY_H

#include <pthread.h>

#include "lib/kube/kube_config.h"
#include "lib/kube/kube_exec.h"

struct kube_identity {
	const struct kube_config *config; /* borrowed */
	pthread_mutex_t lock;             /* all below; held while a plug-in runs */
	char *token;                      /* of the token file */
	double token_read;                /* seconds, monotonic */
	struct kube_credential from_exec;
	bool asked; /* the plug-in has answered once */
};

void kube_identity_init(struct kube_identity *id, const struct kube_config *config);
void kube_identity_fini(struct kube_identity *id);
/* Appends the header lines with the credentials.  `anew`: the last ones were rejected. */
int kube_identity_headers(struct kube_identity *id, bool anew, struct mu_buf *out,
			  struct mu_err *err);
/* Appends copies of the client certificate and its key, if there are any. */
void kube_identity_certificate(struct kube_identity *id, struct mu_buf *cert, struct mu_buf *key);

#endif
