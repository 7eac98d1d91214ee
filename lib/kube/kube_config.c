/* SPDX-License-Identifier: Apache-2.0 */
/* kubeconfig files and the service account of a pod.
 *
 * Several files are merged as in kubectl: the first cluster, user or context with a name is used,
 * and the first current-context.  A missing file of the list is skipped.  Relative paths in a file
 * are relative to that file. */
#include "lib/kube/kube_config.h"

#include <stdio.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/io/yaml.h"
#include "lib/kube/kube_exec.h"
#include "lib/tls/base64.h"

enum { FILE_LIMIT = 4 << 20, FILES_MAX = 16 };

void kube_config_fini(struct kube_config *c)
{
	if (c->key.len)
		explicit_bzero(c->key.data, c->key.len);
	mu_buf_fini(&c->ca);
	mu_buf_fini(&c->cert);
	mu_buf_fini(&c->key);
	free(c->server);
	free(c->ca_file);
	free(c->token);
	free(c->token_file);
	kube_exec_free(c->exec);
	free(c->as);
	free(c->as_uid);
	for (char **g = c->as_groups; g && *g; g++)
		free(*g);
	free(c->as_groups);
	free(c->tls_server_name);
	free(c->proxy_url);
	free(c->ns);
	memset(c, 0, sizeof(*c));
}

/* Returns the item `name` of the list `list` ("clusters": [{name, cluster: {…}}]). */
static const struct mu_doc_node *find_named(struct mu_doc *const *docs, int count, const char *list,
					    const char *kind, const char *name, int *doc_index)
{
	for (int i = 0; i < count; i++) {
		mu_doc_each(mu_doc_get(docs[i]->root, list), item)
		{
			if (strcmp(mu_doc_text(item, "name", ""), name) == 0) {
				*doc_index = i;
				return mu_doc_get(item, kind);
			}
		}
	}
	return NULL;
}

/* Resolves `value`, a path relative to the file that contains it. */
static char *path_from(const char *file, const char *value)
{
	const char *slash = strrchr(file, '/');

	if (value[0] == '/' || !slash)
		return mu_xstrdup(value);
	return mu_xasprintf("%.*s/%s", (int)(slash - file), file, value);
}

/* Reads "<key>-data" in base64, or the file "<key>", whose path is stored in *file (optional). */
static int read_pem(const struct mu_doc_node *map, const char *key, const char *config_file,
		    struct mu_buf *out, char **file, struct mu_err *err)
{
	char data_key[64];
	const char *data, *path = mu_doc_text(map, key, NULL);

	snprintf(data_key, sizeof(data_key), "%s-data", key);
	data = mu_doc_text(map, data_key, NULL);
	if (data && *data)
		return mu_base64_decode(data, data_key, FILE_LIMIT, out, err);
	if (path && *path) {
		MU_AUTO_FREE char *full = path_from(config_file, path);
		if (mu_buf_read_file(out, full, FILE_LIMIT, err) < 0)
			return mu_wrap(err, "%s", key);
		if (file)
			*file = mu_steal(&full);
	}
	return 0;
}

static int read_user(struct kube_config *out, const struct mu_doc_node *user, const char *file,
		     struct mu_err *err)
{
	const char *token_file = mu_doc_text(user, "tokenFile", "");
	const struct mu_doc_node *groups = mu_doc_get(user, "as-groups");
	unsigned n = 0;

	if (mu_doc_get(user, "auth-provider"))
		return mu_fail(
		    err, MU_UNIMPLEMENTED,
		    "the user's 'auth-provider' has left Kubernetes: use its exec plug-in, "
		    "a token, a token file or a client certificate");
	out->as = mu_xstrdup_or_null(mu_doc_text(user, "as", NULL));
	out->as_uid = mu_xstrdup_or_null(mu_doc_text(user, "as-uid", NULL));
	if (groups && groups->n) {
		out->as_groups = MU_NEW_ARRAY(char *, groups->n + 1);
		mu_doc_each(groups, g)
		{
			if (g->kind == MU_DOC_STRING)
				out->as_groups[n++] = mu_xstrdup(g->text);
		}
	}
	if (!out->as && (out->as_uid || out->as_groups))
		return mu_fail(err, MU_INVALID_ARGUMENT, "'as-uid' and 'as-groups' need 'as'");
	if (read_pem(user, "client-certificate", file, &out->cert, NULL, err) < 0 ||
	    read_pem(user, "client-key", file, &out->key, NULL, err) < 0)
		return -(int)(err ? err->code : MU_INVALID_ARGUMENT);
	out->token = mu_xstrdup_or_null(mu_doc_text(user, "token", NULL));
	if (*token_file)
		out->token_file = path_from(file, token_file);
	return 0;
}

static int read_context(struct kube_config *out, struct mu_doc *const *docs, char *const *files,
			int count, const char *wanted, struct mu_err *err)
{
	const char *name = wanted ? wanted : "", *cluster_name, *user_name, *server;
	const struct mu_doc_node *context, *cluster, *user;
	int doc_index = 0;

	for (int i = 0; i < count && !*name; i++)
		name = mu_doc_text(docs[i]->root, "current-context", "");
	if (!*name)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "no current-context: run 'kubectl config use-context NAME'");
	context = find_named(docs, count, "contexts", "context", name, &doc_index);
	if (!context)
		return mu_fail(err, MU_INVALID_ARGUMENT, "there is no context '%s'", name);
	cluster_name = mu_doc_text(context, "cluster", "");
	cluster = find_named(docs, count, "clusters", "cluster", cluster_name, &doc_index);
	if (!cluster)
		return mu_fail(err, MU_INVALID_ARGUMENT, "there is no cluster '%s'", cluster_name);
	server = mu_doc_text(cluster, "server", "");
	if (!*server)
		return mu_fail(err, MU_INVALID_ARGUMENT, "cluster '%s' has no server",
			       cluster_name);
	out->server = mu_xstrdup(server);
	for (size_t n = strlen(out->server); n && out->server[n - 1] == '/';)
		out->server[--n] = 0;
	MU_RETURN_IF_ERROR(read_pem(cluster, "certificate-authority", files[doc_index], &out->ca,
				    &out->ca_file, err));
	out->insecure = mu_doc_bool(cluster, "insecure-skip-tls-verify", false);
	out->tls_server_name = mu_xstrdup_or_null(mu_doc_text(cluster, "tls-server-name", NULL));
	out->proxy_url = mu_xstrdup_or_null(mu_doc_text(cluster, "proxy-url", NULL));
	out->ns = mu_xstrdup_or_null(mu_doc_text(context, "namespace", NULL));
	user_name = mu_doc_text(context, "user", "");
	user = find_named(docs, count, "users", "user", user_name, &doc_index);
	if (!user && *user_name)
		return mu_fail(err, MU_INVALID_ARGUMENT, "there is no user '%s'", user_name);
	if (user)
		MU_RETURN_IF_ERROR(read_user(out, user, files[doc_index], err));
	return mu_doc_get(user, "exec") ? kube_exec_read(&out->exec, mu_doc_get(user, "exec"),
							 files[doc_index], cluster, err)
					: 0;
}

int kube_config_parse(struct kube_config *out, char *const *paths, int count, const char *context,
		      struct mu_err *err)
{
	struct mu_doc *docs[FILES_MAX];
	char *files[FILES_MAX];
	struct kube_config config = {0};
	struct mu_err local_err = {0};
	int n = 0, rc = 0;

	for (int i = 0; i < count && n < FILES_MAX && rc == 0; i++) {
		MU_AUTO_BUF text = {0};
		if (count > 1 && access(paths[i], F_OK) != 0)
			continue;
		rc = mu_buf_read_file(&text, paths[i], FILE_LIMIT, &local_err);
		if (rc == 0)
			rc = mu_yaml_parse(&docs[n], mu_buf_span(&text), paths[i], &local_err);
		if (rc == 0)
			files[n++] = paths[i];
	}
	if (rc == 0 && n == 0)
		rc = mu_fail(&local_err, MU_NOT_FOUND, "no kubeconfig file exists");
	if (rc == 0)
		rc = read_context(&config, docs, files, n, context, &local_err);
	for (int i = 0; i < n; i++)
		mu_doc_free(docs[i]);
	if (rc < 0) {
		kube_config_fini(&config);
		return mu_fail(err, local_err.code, "kubeconfig: %s", local_err.msg);
	}
	*out = config;
	return 0;
}

int kube_config_in_cluster(struct kube_config *out, const char *folder, struct mu_err *err)
{
	const char *host = getenv("KUBERNETES_SERVICE_HOST");
	const char *port = getenv("KUBERNETES_SERVICE_PORT");
	struct kube_config config = {0};
	MU_AUTO_BUF ns = {0};
	MU_AUTO_FREE char *ns_file = mu_xasprintf("%s/namespace", folder);

	if (!host || !*host)
		return mu_fail(err, MU_NOT_FOUND, "KUBERNETES_SERVICE_HOST is not set");
	config.token_file = mu_xasprintf("%s/token", folder);
	if (access(config.token_file, R_OK) != 0) {
		kube_config_fini(&config);
		return mu_fail(
		    err, MU_NOT_FOUND,
		    "there is no service account token in %s: set serviceAccountName and "
		    "automountServiceAccountToken",
		    folder);
	}
	config.server = mu_xasprintf(strchr(host, ':') ? "https://[%s]:%s" : "https://%s:%s", host,
				     port && *port ? port : "443");
	config.ca_file = mu_xasprintf("%s/ca.crt", folder);
	if (mu_buf_read_file(&ns, ns_file, 256, NULL) == 0 && ns.len)
		config.ns = mu_buf_take(&ns);
	*out = config;
	return 0;
}

int kube_config_load(struct kube_config *out, const char *path, const char *context,
		     struct mu_err *err)
{
	const char *list = getenv("KUBECONFIG"), *home = getenv("HOME");
	MU_AUTO_FREE char *names =
	    list && *list ? mu_xstrdup(list) : mu_xasprintf("%s/.kube/config", home ? home : "");
	char *paths[FILES_MAX], *save = NULL;
	bool is_any_present = false;
	int count = 0;

	if (path && *path) {
		paths[0] = (char *)path;
		return kube_config_parse(out, paths, 1, context, err);
	}
	for (char *p = strtok_r(names, ":", &save); p && count < FILES_MAX;
	     p = strtok_r(NULL, ":", &save)) {
		is_any_present = is_any_present || access(p, F_OK) == 0;
		paths[count++] = p;
	}
	if (!is_any_present && getenv("KUBERNETES_SERVICE_HOST"))
		return kube_config_in_cluster(out, "/var/run/secrets/kubernetes.io/serviceaccount",
					      err);
	return kube_config_parse(out, paths, count, context, err);
}
