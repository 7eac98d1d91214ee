/* SPDX-License-Identifier: Apache-2.0 */
/* The exec plug-in of a kubeconfig user: a program that prints an ExecCredential.
 *
 * It has no terminal and a time limit of 30 s.  It prints a token, a client certificate or both,
 * and may print when they expire.  The versions are client.authentication.k8s.io/v1 and v1beta1. */
#ifndef MU_LIB_KUBE_KUBE_EXEC_H
#define MU_LIB_KUBE_KUBE_EXEC_H

#include "lib/io/doc.h"

struct kube_exec;

struct kube_credential {
	char *token;             /* or NULL */
	struct mu_buf cert, key; /* PEM; empty: none */
	double expires;          /* wall clock; 0: never */
};
void kube_credential_fini(struct kube_credential *c);

/* Reads the `exec` of a user.  A relative command is relative to `file`, the kubeconfig. */
int kube_exec_read(struct kube_exec **out, const struct mu_doc_node *exec, const char *file,
		   const struct mu_doc_node *cluster, struct mu_err *err);
void kube_exec_free(struct kube_exec *e);
MU_AUTO_DEFINE(kube_exec_free, struct kube_exec)
int kube_exec_run(const struct kube_exec *e, struct kube_credential *out, struct mu_err *err);
/* Reads the output of the plug-in. */
int kube_credential_read(struct kube_credential *out, const struct kube_exec *e,
			 struct mu_span printed, struct mu_err *err);

#endif
