/* SPDX-License-Identifier: Apache-2.0 */
/* Which proxy stands between us and a server, if any. */
#ifndef KUBE_PROXY_H
#define KUBE_PROXY_H

#include "lib/kube/kube_config.h"
#include "lib/kube/kube_wire.h"

/* The kubeconfig's proxy-url, else what HTTPS_PROXY (HTTP_PROXY for http) and ALL_PROXY name,
 * unless NO_PROXY or a loopback address rules it out.  Borrowed, from the configuration or the
 * environment; NULL: none. */
const char *kube_proxy_for(const struct kube_config *k, const struct kube_address *to);
/* Whether NO_PROXY's list ("a.b,.c,10.0.0.0/8,*") names the host. */
bool kube_proxy_excluded(const char *list, const char *host);

#endif
