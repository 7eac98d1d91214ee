/* SPDX-License-Identifier: Apache-2.0 */
/* The URL, proxy and TLS settings of calls to an API server, and the credentials of each: a token,
 * a plug-in's credential or a certificate.  Internal to kube_client, whose threads share them. */
#ifndef MU_LIB_KUBE_KUBE_SERVER_H
#define MU_LIB_KUBE_KUBE_SERVER_H

#include <pthread.h>

#include "lib/kube/kube_config.h"
#include "lib/kube/kube_exec.h"
#include "lib/net/http_client.h"

struct kube_identity {
	const struct kube_config *config; /* borrowed */
	pthread_mutex_t lock;             /* guards the members below; held while a plug-in runs */
	char *token;                      /* of the token file */
	double token_read;                /* seconds, monotonic */
	struct kube_credential from_exec;
	bool cached; /* from_exec is a credential */
};

void kube_identity_init(struct kube_identity *id, const struct kube_config *config);
void kube_identity_fini(struct kube_identity *id);
/* Appends the header lines with the credentials.  token_rejected: the server rejected them. */
int kube_identity_headers(struct kube_identity *id, bool token_rejected, struct mu_buf *out,
			  struct mu_err *err);
/* Appends copies of the client certificate and its key, if there are any. */
void kube_identity_certificate(struct kube_identity *id, struct mu_buf *cert, struct mu_buf *key);

struct kube_server {
	const struct kube_config *config; /* borrowed */
	char *origin;                     /* "https://host:port/prefix" */
	char *connect_to, *host_line;     /* only with tls-server-name, which is then in the URL */
	char *proxy;                      /* NULL: the environment's; "": none */
	struct kube_identity identity;
};
int kube_server_init(struct kube_server *s, const struct kube_config *config, struct mu_err *err);
void kube_server_fini(struct kube_server *s);

/* Starts a call to `path` with the current credentials.  token_rejected: the last credentials were
 * rejected (401).  content_type, accept NULL: JSON.  `call` has all other options. */
int kube_server_begin(struct kube_server *s, struct mu_http_client *http, const char *path,
		      const char *content_type, const char *accept, bool token_rejected,
		      struct mu_http_call call, struct mu_http_transfer **out, struct mu_err *err);

#endif
