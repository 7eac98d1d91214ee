/* SPDX-License-Identifier: Apache-2.0 */
/* How to reach an API server and who we are there.
 *
 * kube_config_load looks, in this order, at: `path` when given; the files of KUBECONFIG; the
 * service account of a pod (KUBERNETES_SERVICE_HOST); ~/.kube/config.
 */
#ifndef KUBE_CONFIG_H
#define KUBE_CONFIG_H

#include <stdbool.h>

#include "lib/base/buf.h"

struct kube_config {
	char *server;              /* "https://host:port", no slash at the end */
	struct mu_buf ca;          /* PEM; empty: the system's authorities */
	struct mu_buf cert, key;   /* PEM; empty: no client certificate */
	char *ca_file;             /* read again when it changes */
	char *token, *token_file;  /* a token file is read again each minute and after a 401 */
	char *username, *password; /* basic authentication */
	char *tls_server_name;     /* verify the server's certificate against this name */
	char *proxy_url;
	char *ns; /* the namespace to use when none is named */
	bool insecure;
};

int kube_config_load(struct kube_config *out, const char *path, struct mu_err *err);
/* One document, or several merged as kubectl does: the first to name something wins. */
int kube_config_parse(struct kube_config *out, char *const *paths, int count, struct mu_err *err);
int kube_config_in_cluster(struct kube_config *out, const char *folder, struct mu_err *err);
void kube_config_fini(struct kube_config *c);

#endif
