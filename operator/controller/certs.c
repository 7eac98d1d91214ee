/* SPDX-License-Identifier: Apache-2.0 */
/* The Secret of a job: created, and replaced in two phases (operator/plan/plan_security.c).
 *
 *	ca.crt, tls.crt, tls.key    used by the tasks
 *	next.crt, next.key          between the phases: the next certificate
 *
 * The operator needs no permissions on Secrets except create and patch: the response to an empty
 * patch is the Secret.  Every change carries the resourceVersion that it is based on. */

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "lib/io/json_build.h"
#include "operator/api/object_json.h"
#include "operator/controller/reconcile.h"
#include "operator/controller/render.h"

static const double CLOCK_SLACK_S = 3600; /* clocks of nodes may be behind ours */
enum { SECRET_SIZE = 32 << 10 };          /* bytes of its JSON */
#define PEM_BEGIN "-----BEGIN CERTIFICATE-----"

/* Frees the object after its keys were overwritten. */
static void secret_free(cJSON *secret)
{
	static const char *const parts[] = {"data", "stringData"};
	const cJSON *item;

	for (unsigned i = 0; secret && i < MU_COUNT(parts); i++)
		cJSON_ArrayForEach(item, at(secret, parts[i]))
		{
			if (cJSON_IsString(item))
				OPENSSL_cleanse(item->valuestring, strlen(item->valuestring));
		}
	cJSON_Delete(secret);
}
MU_AUTO_DEFINE(secret_free, cJSON)

/* Creates the Secret (name NULL) or patches it.  Takes the body.  *out: (optional) receives the
 * Secret. */
static int send(struct reconcile *r, const char *name, cJSON *body, cJSON **out, struct mu_err *err)
{
	/* large enough from the start: growing would leave a copy of the key behind */
	MU_AUTO_FREE char *text = cJSON_PrintBuffered(body, SECRET_SIZE, false);
	MU_AUTO_FREE char *path =
	    mu_xasprintf("/api/v1/namespaces/%s/secrets%s%s", r->spec->namespace, name ? "/" : "",
			 name ? name : "");
	MU_AUTO(secret_free) cJSON *response = NULL;
	int rc = controller_send(r->controller,
				 &(struct kube_request){.method = name ? "PATCH" : "POST",
							.path = path,
							.body = mu_span_of(text)},
				 &response, err);

	OPENSSL_cleanse(text, strlen(text));
	secret_free(body);
	if (rc < 0)
		return mu_wrap(err, "secret %s", name ? name : "of the job");
	if (out)
		*out = mu_steal(&response);
	return 0;
}

/* Reads the Secret by an empty patch, because the operator has no permission to get Secrets. */
static int read_secret(struct reconcile *r, const char *name, cJSON **out, struct mu_err *err)
{
	return send(r, name, cJSON_CreateObject(), out, err);
}

/* A patch that fails with a conflict if the Secret has changed since it was read. */
static cJSON *patch_of(const cJSON *secret)
{
	return mu_json_pack("{'metadata': {'resourceVersion': %s}}",
			    text_at(at(secret, "metadata"), "resourceVersion"));
}

static const char *secret_base64(const cJSON *secret, const char *key)
{
	return text_at(at(secret, "data"), key);
}

/* The CA of the certificate in use: the first one of ca.crt while next.crt exists, else the last.
 * Returns new. */
static char *current_ca(const cJSON *secret)
{
	const char *coded = text_or_empty(at(secret, "data"), "ca.crt");
	size_t n = strlen(coded);
	MU_AUTO_FREE char *all = mu_xcalloc(n + 1, 1);
	char *ca = all, *next;

	if (EVP_DecodeBlock((unsigned char *)all, (const unsigned char *)coded, (int)n) < 0)
		*all = 0;
	while ((next = strstr(ca + (*ca != 0), PEM_BEGIN))) {
		if (secret_base64(secret, "next.crt")) {
			*next = 0;
			break;
		}
		ca = next;
	}
	return mu_xstrdup(ca);
}

static int new_certs(struct reconcile *r, struct mu_certs *out, struct mu_err *err)
{
	struct controller *c = r->controller;
	MU_AUTO_FREE char *host = mu_xasprintf("*.%s.%s.svc", r->spec->name, r->spec->namespace);
	const char *names[] = {host, "localhost", "127.0.0.1"};
	int64_t not_before = (int64_t)(r->now - CLOCK_SLACK_S),
		not_after = (int64_t)(r->now + c->options.cert_life);

	return (c->io.certs ? c->io.certs : mu_certs_make)(out, names, MU_COUNT(names), not_before,
							   not_after, err);
}

static void set_issued_at(struct reconcile *r, struct security_status *s, double issued_at)
{
	s->issued_at = issued_at;
	s->expires = issued_at + r->controller->options.cert_life;
	s->ca_added_at = 0;
}

/* name: NULL for a new one. */
static int create_secret(struct reconcile *r, struct security_status *s, const char *name,
			 struct mu_err *err)
{
	struct mu_certs certs;
	cJSON *secret;
	char *new_name;
	int rc = new_certs(r, &certs, err);

	if (rc)
		return rc;
	new_name = name ? mu_xstrdup(name)
			: mu_xasprintf("%s-tls-%08x", r->spec->name,
				       (unsigned)mu_hash(certs.ca, strlen(certs.ca), 0));
	secret = render_secret(r->spec, new_name);
	mu_json_set(secret,
		    mu_json_pack("{'stringData': {'ca.crt': %s, 'tls.crt': %s, 'tls.key': %s}}",
				 certs.ca, certs.crt, certs.key));
	mu_certs_fini(&certs);
	rc = send(r, NULL, secret, NULL, err);
	if (rc) {
		free(new_name);
		return rc;
	}
	free(s->secret);
	s->secret = new_name;
	set_issued_at(r, s, r->now);
	return 0;
}

/* Phase 1: adds a certificate as next.crt, and its CA to ca.crt.  Replaces an unused next.crt,
 * because its age is unknown. */
static int add_ca(struct reconcile *r, struct security_status *s, struct mu_err *err)
{
	MU_AUTO(secret_free) cJSON *secret = NULL;
	MU_AUTO_FREE char *current = NULL;
	MU_AUTO_FREE char *ca = NULL;
	struct mu_certs certs;
	cJSON *patch;
	int rc = read_secret(r, s->secret, &secret, err);

	if (rc || (rc = new_certs(r, &certs, err)))
		return rc;
	current = current_ca(secret);
	ca = mu_xasprintf("%s%s", current, certs.ca);
	patch = patch_of(secret);
	mu_json_set(patch,
		    mu_json_pack("{'stringData': {'ca.crt': %s, 'next.crt': %s, 'next.key': %s}}",
				 ca, certs.crt, certs.key));
	mu_certs_fini(&certs);
	MU_RETURN_IF_ERROR(send(r, s->secret, patch, NULL, err));
	s->ca_added_at = r->now;
	return 0;
}

/* Phase 2: next.crt becomes the certificate in use.  Without it, an earlier patch did that. */
static int rotate_certificate(struct reconcile *r, struct security_status *s, struct mu_err *err)
{
	MU_AUTO(secret_free) cJSON *secret = NULL;
	int rc = read_secret(r, s->secret, &secret, err);

	if (rc == 0 && secret_base64(secret, "next.crt") && secret_base64(secret, "next.key")) {
		cJSON *patch = patch_of(secret);

		mu_json_set(patch, mu_json_pack("{'data': {'tls.crt': %s, 'tls.key': %s,"
						" 'next.crt': null, 'next.key': null}}",
						secret_base64(secret, "next.crt"),
						secret_base64(secret, "next.key")));
		rc = send(r, s->secret, patch, NULL, err);
	}
	if (rc == 0)
		set_issued_at(r, s, s->ca_added_at);
	return rc;
}

/* Returns 1 when the status has to record the result. */
static int apply_action(struct reconcile *r, enum action_kind kind, struct security_status *s,
			struct mu_err *err)
{
	int rc = kind == ACTION_MAKE_SECRET          ? create_secret(r, s, NULL, err)
		 : kind == ACTION_ADD_CA             ? add_ca(r, s, err)
		 : kind == ACTION_ROTATE_CERTIFICATE ? rotate_certificate(r, s, err)
						     : read_secret(r, s->secret, NULL, err);

	if (kind == ACTION_CHECK_SECRET && rc == 0)
		return 0;
	/* the Secret was deleted while pods use it; they mount it by name */
	if (rc == -MU_NOT_FOUND && kind != ACTION_MAKE_SECRET)
		rc = create_secret(r, s, s->secret, err);
	return rc < 0 ? rc : 1;
}

int certs_apply(struct reconcile *r, struct mu_err *err)
{
	struct job_plan *plan = r->plan;
	const struct plan_action *a = plan->actions;
	int rc;

	while (a < plan->actions + plan->n_actions && a->kind > ACTION_CHECK_SECRET)
		a++;
	if (a == plan->actions + plan->n_actions)
		return 0;
	rc = apply_action(r, a->kind, &plan->status.security, err);
	if (rc > 0) {
		requeue_at(r, r->now);
		rc = status_update(r, true, err);
		return rc < 0 ? rc : 1;
	}
	if (rc == -MU_PERMISSION_DENIED || rc == -MU_INVALID_ARGUMENT) {
		event_record(r, true, "FailedCreate", "%s", err->msg);
		if (a->kind == ACTION_MAKE_SECRET)
			job_plan_rejected(plan, a, err->msg, 0, r->now);
	} else if (rc == 0 || a->kind == ACTION_MAKE_SECRET) {
		return rc;
	}
	/* the tasks of a running job have their certificates */
	requeue_at(r, r->now + REJECTED_RETRY_S);
	return 0;
}
