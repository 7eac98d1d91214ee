/* SPDX-License-Identifier: Apache-2.0 */
/* The address of an API server, and the credentials for it.
 *
 * kube_config_load uses the first of: `path`, if not empty; the files of KUBECONFIG, or
 * ~/.kube/config; the service account of a pod (KUBERNETES_SERVICE_HOST).
 *
 * A user may have: a client certificate, as data or path; a token or a file with one; an exec
 * plug-in (kube_exec.h); and `as`, `as-uid`, `as-groups` for impersonation.
 * auth-provider, which Kubernetes has removed, is an error. */
#ifndef MU_LIB_KUBE_KUBE_CONFIG_H
#define MU_LIB_KUBE_KUBE_CONFIG_H

#include <stdbool.h>

#include "lib/base/buf.h"

struct kube_exec;

struct kube_config {
	char *server;             /* "https://host:port", no slash at the end */
	struct mu_buf ca;         /* PEM; empty: the system's authorities */
	struct mu_buf cert, key;  /* PEM; empty: no client certificate */
	char *ca_file;            /* read again when it changes */
	char *token, *token_file; /* a token file is read again each minute and after a 401 */
	struct kube_exec *exec;   /* a plug-in, or NULL */
	char *as, *as_uid;        /* impersonation */
	char **as_groups;         /* NULL-terminated, or NULL */
	char *tls_server_name;    /* verify the server's certificate against this name */
	char *proxy_url;
	char *ns; /* the default namespace */
	bool insecure;
};

/* context: NULL for the current one. */
int kube_config_load(struct kube_config *out, const char *path, const char *context,
		     struct mu_err *err);
/* Merges several files as kubectl does: the first definition of a name is used. */
int kube_config_parse(struct kube_config *out, char *const *paths, int count, const char *context,
		      struct mu_err *err);
int kube_config_in_cluster(struct kube_config *out, const char *folder, struct mu_err *err);
void kube_config_fini(struct kube_config *c);

#endif
