/* SPDX-License-Identifier: Apache-2.0 */
/* Every replica of the operator derives the same tokens from one key, also after a restart.  The
 * key is in a Secret that the operator's pod mounts, so the operator needs no right to read
 * Secrets.  The chart creates the Secret.  Without the chart the operator creates it once and keeps
 * the key in memory.  If several replicas start, one creates it.  The others end with an error and
 * read the file after their restart. */
#include "operator/controller/controller.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/io/json_build.h"

enum { KEY_BYTES = 32, KEY_FILE_MAX = 4096 };

static int random_key(struct mu_buf *out, struct mu_err *err)
{
	unsigned char bytes[KEY_BYTES];

	if (RAND_bytes(bytes, sizeof(bytes)) != 1)
		return mu_fail(err, MU_INTERNAL, "no random numbers for the key of tokens");
	for (int i = 0; i < KEY_BYTES; i++)
		mu_buf_printf(out, "%02x", bytes[i]);
	OPENSSL_cleanse(bytes, sizeof(bytes));
	return 0;
}

static int create_key_secret(struct controller *c, struct mu_err *err)
{
	const char *ns = c->options.lease_namespace;
	MU_AUTO_FREE char *path = mu_xasprintf("/api/v1/namespaces/%s/secrets", ns);
	MU_AUTO_FREE char *body = NULL;
	struct kube_request rq = {.method = "POST", .path = path};
	cJSON *secret;
	int rc = random_key(&c->token_key, err);

	if (rc)
		return rc;
	secret = mu_json_pack("{'apiVersion': 'v1', 'kind': 'Secret', 'metadata': {'name': %s}}",
			      TOKEN_KEY_SECRET);
	mu_json_set_text(mu_json_object_in(secret, "stringData"), "key", c->token_key.data);
	body = cJSON_PrintUnformatted(secret);
	cJSON_Delete(secret);
	rq.body = mu_span_of(body);
	rc = c->io.call(c->io.user, &rq, NULL, err);
	OPENSSL_cleanse(body, strlen(body));
	if (rc == -MU_ALREADY_EXISTS)
		return mu_fail(err, MU_FAILED_PRECONDITION,
			       "secret %s/" TOKEN_KEY_SECRET
			       " exists and is not mounted at %s yet: the kubelet mounts it when "
			       "this container restarts",
			       ns, c->options.token_key_file);
	if (rc)
		return mu_wrap(err,
			       "create secret %s/" TOKEN_KEY_SECRET
			       " with the key of the job tokens (or create it yourself: kubectl -n "
			       "%s create secret generic " TOKEN_KEY_SECRET
			       " --from-literal=key=RANDOM)",
			       ns, ns);
	mu_info("operator", "created secret %s/" TOKEN_KEY_SECRET, ns);
	return 0;
}

int token_key_load(struct controller *c, struct mu_err *err)
{
	const char *file = c->options.token_key_file;
	struct mu_buf *key = &c->token_key;

	if (!file) {
		mu_info("operator", "no --token-key-file: tokens of jobs are good for this run");
		return random_key(key, err);
	}
	if (access(file, F_OK) != 0 && errno == ENOENT)
		return create_key_secret(c, err);
	MU_RETURN_IF_ERROR(mu_buf_read_file(key, file, KEY_FILE_MAX, err));
	while (key->len && strchr("\r\n", key->data[key->len - 1]))
		key->len--;
	return key->len >= KEY_BYTES
		   ? 0
		   : mu_fail(err, MU_INVALID_ARGUMENT,
			     "%s: a key of tokens has at least %d bytes, this has %zu", file,
			     KEY_BYTES, key->len);
}

static int derive(const struct controller *c, const char *job_uid, char out[MU_TOKEN_SIZE],
		  struct mu_err *err)
{
	if (!c->token_key.len)
		return mu_fail(err, MU_FAILED_PRECONDITION, "the operator has no key of tokens");
	return mu_token_derive(mu_buf_span(&c->token_key), job_uid, out, err);
}

int task_token_digest(const struct controller *c, const char *job_uid, char out[MU_TOKEN_SIZE])
{
	char token[MU_TOKEN_SIZE];
	int rc = derive(c, job_uid, token, NULL);

	if (rc == 0)
		rc = mu_token_digest(mu_span_of(token), out, NULL);
	OPENSSL_cleanse(token, sizeof(token));
	return rc;
}

static void task_url(const struct pod *task, const char *page, char *out, size_t size)
{
	snprintf(out, size, strchr(task->ip, ':') ? "http://[%.64s]:%d/%s" : "http://%.64s:%d/%s",
		 task->ip, JOB_DEFAULT_HTTP_PORT, page);
}

int task_get_status(void *controller, const struct pod *task, struct mu_buf *out)
{
	struct controller *c = controller;
	char url[128];

	task_url(task, "status", url, sizeof(url));
	return kube_fetch(c->kube, url, NULL, NULL, out, NULL);
}

int task_post(void *controller, const struct pod *task, const char *page, const char *body,
	      struct mu_err *err)
{
	struct controller *c = controller;
	const char *job_uid = task->meta.owner;
	char url[128], token[MU_TOKEN_SIZE] = "";
	struct mu_span request_body = mu_span_of(body);
	struct mu_err why = {0};
	MU_AUTO_BUF response = {0};
	int rc;

	task_url(task, page, url, sizeof(url));
	derive(c, job_uid, token, NULL);
	rc = kube_fetch(c->kube, url, token, &request_body, &response, &why);
	OPENSSL_cleanse(token, sizeof(token));
	if (rc == -MU_UNAUTHENTICATED)
		mu_warn("operator",
			"%s rejects the token of job %s: the job began under another key; restore "
			"the Secret " TOKEN_KEY_SECRET
			" and restart the operator, or create the job "
			"again",
			url, job_uid);
	return rc < 0 ? mu_fail(err, why.code, "%s", why.msg) : 0;
}
