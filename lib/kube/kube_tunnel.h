/* SPDX-License-Identifier: Apache-2.0 */
/* A way through an http:// proxy: it is asked to CONNECT us to the server, and what follows, TLS
 * mostly, passes it untouched.  Other kinds of proxy are refused with a sentence. */
#ifndef KUBE_TUNNEL_H
#define KUBE_TUNNEL_H

#include "lib/kube/kube_wire.h"

struct kube_tunnel {
	struct kube_address by; /* the proxy */
	char *login;            /* a header line; NULL: the URL has no user */
};
/* "http://USER:PASSWORD@HOST:PORT", escaped with % as URLs are; no scheme means http, no port 80.
 * Errors do not repeat the URL, which may hold a password. */
int kube_tunnel_parse(struct kube_tunnel *out, const char *proxy, struct mu_err *err);
void kube_tunnel_fini(struct kube_tunnel *t);

/* The wire is open to the proxy; on success it leads to the server, within `patience` seconds. */
int kube_tunnel_dig(const struct kube_tunnel *t, struct kube_wire *w, const struct kube_address *to,
		    double patience, struct mu_err *err);

#endif
