/* SPDX-License-Identifier: Apache-2.0 */
/* The URL, proxy and TLS settings of calls to an API server.  Internal to kube_client. */
#ifndef KUBE_SERVER_H
#define KUBE_SERVER_H

#include "lib/kube/kube_identity.h"
#include "lib/net/http_client.h"

struct kube_server {
	const struct kube_config *config; /* borrowed */
	char *origin;                     /* "https://host:port/prefix" */
	char *connect_to, *host_line;     /* with tls-server-name, which is in the URL then */
	char *proxy;                      /* NULL: the environment's; "": none */
	struct kube_identity identity;
};
int kube_server_init(struct kube_server *s, const struct kube_config *config, struct mu_err *err);
void kube_server_fini(struct kube_server *s);

/* Starts a call to `path` with the current credentials.  fresh: the last ones were rejected
 * (401).  content_type NULL: JSON.  The rest is as in `call`. */
int kube_server_begin(struct kube_server *s, struct mu_http_client *http, const char *path,
		      const char *content_type, bool fresh, struct mu_http_call call,
		      struct mu_http_transfer **out, struct mu_err *err);

#endif
