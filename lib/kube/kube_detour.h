/* SPDX-License-Identifier: Apache-2.0 */
/* An exchange through a proxy, which is libcurl's business: HTTP, HTTPS and SOCKS proxies with all
 * their ways to log in.
 *
 * libcurl is loaded when the first detour is made: with the thirty libraries behind it, it is half
 * of the memory of a program that needs none of them. */
#ifndef KUBE_DETOUR_H
#define KUBE_DETOUR_H

#include <stdatomic.h>

#include "lib/kube/kube_config.h"
#include "lib/kube/kube_http.h"
#include "lib/kube/kube_wire.h"

struct kube_detour;

/* A kept connection by way of `proxy`; the others are borrowed for as long as it lives. */
int kube_detour_new(struct kube_detour **out, const struct kube_config *config,
		    const struct kube_address *to, const char *proxy, struct mu_err *err);
void kube_detour_free(struct kube_detour *d);

struct kube_detour_call {
	const struct kube_http_request *request;
	const struct mu_buf *cert, *key; /* ours; empty: none */
	double patience;                 /* seconds for all of it */
	const _Atomic bool *stopped;     /* ends it, within a second */
};
/* Status, Retry-After and body go to `answer`, as they would from kube_http_feed. */
int kube_detour_call(struct kube_detour *d, const struct kube_detour_call *call,
		     struct kube_http *answer, struct mu_err *err);

#endif
