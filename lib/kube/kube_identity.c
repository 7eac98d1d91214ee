/* SPDX-License-Identifier: Apache-2.0 */
/* A token file is read again after a minute: a kubelet renews a pod's token at 80 % of its
 * lifetime, and the old token becomes invalid.  A plug-in runs again if its credential expires soon
 * or was rejected; other threads wait for it, because they need the credential too. */
#include "lib/kube/kube_server.h"

#include <stdio.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"

enum { TOKEN_AGE_S = 60, EXPIRY_MARGIN_S = 10 };

void kube_identity_init(struct kube_identity *id, const struct kube_config *config)
{
	memset(id, 0, sizeof(*id));
	id->config = config;
	pthread_mutex_init(&id->lock, NULL);
}

void kube_identity_fini(struct kube_identity *id)
{
	if (id->token)
		explicit_bzero(id->token, strlen(id->token));
	free(id->token);
	kube_credential_fini(&id->from_exec);
	pthread_mutex_destroy(&id->lock);
}

/* Returns the token of the file; after a read error, the last token.  The caller holds the lock. */
static const char *token_of_file(struct kube_identity *id, bool rejected)
{
	struct mu_err err = {0};
	MU_AUTO_BUF file = {0};

	if (id->token && !rejected && mu_clock() - id->token_read < TOKEN_AGE_S)
		return id->token;
	if (mu_buf_read_file(&file, id->config->token_file, 1 << 20, &err) == 0) {
		while (file.len && strchr("\r\n \t", file.data[file.len - 1]))
			file.data[--file.len] = 0;
		free(id->token);
		id->token = mu_buf_take(&file);
	} else if (!id->token) {
		mu_warn("kube", "token file: %s", err.msg);
	}
	id->token_read = mu_clock();
	return id->token;
}

/* Runs the plug-in if there is no valid credential.  The caller holds the lock. */
static int refresh_credential(struct kube_identity *id, bool rejected, struct mu_err *err)
{
	double expires = id->from_exec.expires;
	struct kube_credential credential = {0};

	if (id->cached && !rejected &&
	    (expires <= 0 || (double)time(NULL) < expires - EXPIRY_MARGIN_S))
		return 0;
	MU_RETURN_IF_ERROR(kube_exec_run(id->config->exec, &credential, err));
	kube_credential_fini(&id->from_exec);
	id->from_exec = credential;
	id->cached = true;
	return 0;
}

static void put_header(struct mu_buf *out, const char *name, const char *value)
{
	if (strpbrk(value, "\r\n"))
		mu_warn("kube", "%s holds a line break and is left out", name);
	else
		mu_buf_printf(out, "%s: %s\r\n", name, value);
}

static void put_impersonation(struct mu_buf *out, const struct kube_config *k)
{
	if (k->as)
		put_header(out, "Impersonate-User", k->as);
	if (k->as_uid)
		put_header(out, "Impersonate-Uid", k->as_uid);
	for (char **g = k->as_groups; g && *g; g++)
		put_header(out, "Impersonate-Group", *g);
}

int kube_identity_headers(struct kube_identity *id, bool rejected, struct mu_buf *out,
			  struct mu_err *err)
{
	const struct kube_config *k = id->config;
	const char *token = k->token;
	int rc = 0;

	pthread_mutex_lock(&id->lock);
	if ((!token || !*token) && k->token_file)
		token = token_of_file(id, rejected);
	if (k->exec)
		rc = refresh_credential(id, rejected, err);
	if (rc == 0 && id->from_exec.token)
		token = id->from_exec.token;
	if (rc == 0 && token && strpbrk(token, "\r\n"))
		mu_warn("kube", "the token holds a line break and is left out");
	else if (rc == 0 && token && *token)
		mu_buf_printf(out, "Authorization: Bearer %s\r\n", token);
	if (rc == 0)
		put_impersonation(out, k);
	pthread_mutex_unlock(&id->lock);
	return rc;
}

void kube_identity_certificate(struct kube_identity *id, struct mu_buf *cert, struct mu_buf *key)
{
	const struct mu_buf *c = &id->config->cert, *k = &id->config->key;

	pthread_mutex_lock(&id->lock);
	if (id->from_exec.cert.len) {
		c = &id->from_exec.cert;
		k = &id->from_exec.key;
	}
	mu_buf_put(cert, c->data, c->len);
	mu_buf_put(key, k->data, k->len);
	pthread_mutex_unlock(&id->lock);
}
