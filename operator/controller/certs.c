/* SPDX-License-Identifier: Apache-2.0 */
/* The Secret of a job: created, and replaced in two phases, without ever being read.
 *
 * The operator creates the Secret, and the phases are merge patches of the keys that change. It
 * needs no permissions on Secrets except create and patch. A switch names the version that its own
 * spread made, so two operators that both believe to lead do not undo each other's work. Facts that
 * later reconciles need are in the job's status: public certificates and times. */
#include "operator/controller/certs.h"

#include <math.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "operator/api/object_json.h"
#include "operator/controller/events.h"
#include "operator/controller/json_build.h"
#include "operator/controller/reconcile.h"
#include "operator/controller/render.h"

static const double CLOCK_SLACK_S = 3600; /* clocks of nodes may be behind ours */
enum { SECRET_SIZE = 32 << 10 };          /* bytes of its JSON */
#define PEM_BEGIN "-----BEGIN CERTIFICATE-----"

/* Exchanges the job's next certificates for n.  The caller owns what it returns: the former ones,
 * or n when the job has gone. */
static struct next_certs *exchange_next(struct reconcile *r, struct next_certs *n)
{
	struct store *c = &r->controller->store;
	struct stored_job *job;

	pthread_mutex_lock(&c->lock);
	job = store_job_of(c, r->seen->key);
	if (job) {
		struct next_certs *former = job->next_certs;

		job->next_certs = n;
		n = former;
	}
	pthread_mutex_unlock(&c->lock);
	return n;
}

/* Takes n. */
static void put_next(struct reconcile *r, struct next_certs *n)
{
	next_certs_free(exchange_next(r, n));
}

double certs_next_since(struct reconcile *r)
{
	const char *trusted = r->seen->job->status.security.ca;
	struct next_certs *n = exchange_next(r, NULL);
	double since = 0;

	if (n && n->version && trusted && strstr(trusted, n->certs.ca))
		since = fmax(r->controller->queue.now() - n->spread, 1e-3);
	put_next(r, n);
	return since;
}

/* ---- the object ---- */

static void put_data(cJSON *secret, const char *key, const char *text)
{
	size_t n = strlen(text);
	char *coded = mu_xcalloc(4 * ((n + 2) / 3) + 1, 1);

	EVP_EncodeBlock((unsigned char *)coded, (const unsigned char *)text, (int)n);
	set_text(object_in(secret, "data"), key, coded);
	OPENSSL_cleanse(coded, strlen(coded));
	free(coded);
}

/* The changed fields: the trusted CAs; with c also its certificate and key. */
static void put_certs(cJSON *secret, const char *ca, const struct mu_certs *c)
{
	put_data(secret, "ca.crt", ca);
	if (c) {
		put_data(secret, "tls.crt", c->crt);
		put_data(secret, "tls.key", c->key);
	}
}

/* Creates it, or patches what is there, with the body, which it takes; version: (optional) gets the
 * Secret's, as it is now. */
static int send(struct reconcile *r, const char *name, bool create, cJSON *body, char **version,
		struct mu_err *err)
{
	/* large enough from the start: growing would leave a copy of the key behind */
	MU_AUTO_FREE char *text = cJSON_PrintBuffered(body, SECRET_SIZE, false);
	MU_AUTO_FREE char *path =
	    mu_xasprintf("/api/v1/namespaces/%s/secrets%s%s", r->spec->namespace, create ? "" : "/",
			 create ? "" : name);
	struct kube_request rq = {
	    .method = create ? "POST" : "PATCH", .path = path, .body = mu_span_of(text)};
	const cJSON *data;
	cJSON *answer = NULL;
	int rc = controller_send(r->controller, &rq, &answer, err);

	OPENSSL_cleanse(text, strlen(text));
	cJSON_ArrayForEach(data, at(body, "data"))
	{
		OPENSSL_cleanse(data->valuestring, strlen(data->valuestring));
	}
	cJSON_Delete(body);
	if (version && rc >= 0 && !object_version(answer)) /* no precondition would protect it */
		rc = mu_fail(err, MU_INTERNAL, "the answer has no resourceVersion");
	else if (version && rc >= 0)
		*version = mu_xstrdup(text_at(at(answer, "metadata"), "resourceVersion"));
	cJSON_Delete(answer);
	return rc < 0 ? mu_wrap(err, "secret %s", name) : 0;
}

static double life_of(const struct controller *c)
{
	return c->options.cert_life ? c->options.cert_life : PLAN_CERT_LIFE;
}

static int new_certs(struct reconcile *r, struct next_certs **out, struct mu_err *err)
{
	struct controller *c = r->controller;
	MU_AUTO_FREE char *all = mu_xasprintf("*.%s.%s.svc", r->spec->name, r->spec->namespace);
	const char *names[] = {all, "localhost", "127.0.0.1"};
	int64_t from = (int64_t)(r->now - CLOCK_SLACK_S), to = (int64_t)(r->now + life_of(c));
	struct mu_certs certs;
	int rc = (c->io.certs ? c->io.certs : mu_certs_make)(&certs, names, MU_COUNT(names), from,
							     to, err);

	if (rc)
		return rc;
	*out = MU_NEW(struct next_certs);
	**out = (struct next_certs){.certs = certs, .made = r->now, .spread = c->queue.now()};
	return 0;
}

/* Creates the Secret and notes it in s. */
static int post_secret(struct reconcile *r, struct security_status *s, const char *name,
		       const struct next_certs *n, struct mu_err *err)
{
	cJSON *secret = render_secret(r->spec, name);
	char *named;
	int rc;

	put_certs(secret, n->certs.ca, &n->certs);
	rc = send(r, name, true, secret, NULL, err);
	if (rc)
		return rc;
	named = mu_xstrdup(name);
	free(s->ca);
	free(s->secret);
	*s = (struct security_status){.secret = named,
				      .ca = mu_xstrdup(n->certs.ca),
				      .made = n->made,
				      .expires = n->made + life_of(r->controller)};
	return 0;
}

static int make_secret(struct reconcile *r, struct security_status *s, struct mu_err *err)
{
	MU_AUTO(next_certs_free) struct next_certs *n = NULL;
	MU_AUTO_FREE char *name = NULL;
	int rc = new_certs(r, &n, err);

	if (rc)
		return rc;
	name = mu_xasprintf("%s-tls-%08x", r->spec->name,
			    (unsigned)mu_hash(n->certs.ca, strlen(n->certs.ca), 0));
	return post_secret(r, s, name, n, err);
}

/* The last of the trusted CAs counts. If a CA was spread and its certificate may or may not have
 * followed, all count. */
static char *bundle(const struct security_status *s, const struct next_certs *next)
{
	const char *from = s->ca, *p;

	while (s->spread <= 0 && (p = strstr(from + 1, PEM_BEGIN)))
		from = p;
	return mu_xasprintf("%s%s", from, next->certs.ca);
}

/* Keeps the next certificates, which it takes, and notes that their CA is trusted from now on. */
static void trust_next(struct reconcile *r, struct security_status *s, struct next_certs *n)
{
	char *trusted = bundle(s, n);

	free(s->ca);
	s->ca = trusted;
	s->spread = r->now;
	put_next(r, n);
}

/* Recreates a Secret that was deleted under living pods, which mount it by name. This takes two
 * reconciles. The first stores the new CA in the status, so that it stays trusted when the reply to
 * the second's create, or a later step, is lost. */
static int restore_secret(struct reconcile *r, struct security_status *s, struct mu_err *err)
{
	MU_AUTO(next_certs_free) struct next_certs *n = exchange_next(r, NULL);
	int rc;

	if (n && strstr(s->ca, n->certs.ca)) {
		rc = post_secret(r, s, s->secret, n, err);
		if (rc)
			put_next(r, mu_steal(&n));
		return rc;
	}
	next_certs_free(mu_steal(&n));
	rc = new_certs(r, &n, err);
	if (rc == 0)
		trust_next(r, s, mu_steal(&n));
	return rc;
}

static int spread_ca(struct reconcile *r, struct security_status *s, struct mu_err *err)
{
	MU_AUTO(next_certs_free) struct next_certs *n = NULL;
	MU_AUTO_FREE char *trusted = NULL;
	cJSON *patch;
	int rc = new_certs(r, &n, err);

	if (rc)
		return rc;
	trusted = bundle(s, n);
	patch = cJSON_CreateObject();
	put_certs(patch, trusted, NULL);
	rc = send(r, s->secret, false, patch, &n->version, err);
	if (rc == 0)
		trust_next(r, s, mu_steal(&n));
	return rc;
}

/* We may not read it; a patch of nothing changes nothing, and says whether it is there. */
static int check_secret(struct reconcile *r, const struct security_status *s, struct mu_err *err)
{
	return send(r, s->secret, false, cJSON_CreateObject(), NULL, err);
}

static int switch_secret(struct reconcile *r, struct security_status *s, struct mu_err *err)
{
	MU_AUTO(next_certs_free) struct next_certs *n = exchange_next(r, NULL);
	cJSON *patch;
	int rc;

	if (!n)
		return mu_fail(err, MU_ABORTED, "the next certificate has gone");
	patch = json_pack("{'metadata': {'resourceVersion': %s}}", n->version);
	put_certs(patch, s->ca, &n->certs);
	rc = send(r, s->secret, false, patch, NULL, err);
	if (rc == 0) {
		s->made = n->made;
		s->expires = n->made + life_of(r->controller);
		s->spread = 0;
	} else if (rc != -MU_ABORTED) { /* ABORTED: another operator may have replaced our CA */
		put_next(r, mu_steal(&n));
	}
	return rc;
}

int certs_apply(struct reconcile *r, struct job_plan *plan, struct mu_err *err)
{
	struct security_status *s = &plan->status.security;

	for (unsigned i = 0; i < plan->n_actions; i++) {
		enum action_kind kind = plan->actions[i].kind;
		int rc;

		if (kind == ACTION_MAKE_SECRET)
			rc = make_secret(r, s, err);
		else if (kind == ACTION_SPREAD_CA)
			rc = spread_ca(r, s, err);
		else if (kind == ACTION_SWITCH_SECRET)
			rc = switch_secret(r, s, err);
		else if (kind == ACTION_CHECK_SECRET && (rc = check_secret(r, s, err)) == 0)
			continue;
		else if (kind != ACTION_CHECK_SECRET)
			continue;
		if (rc == -MU_NOT_FOUND && kind != ACTION_MAKE_SECRET)
			rc = restore_secret(r, s, err);
		if (rc == -MU_PERMISSION_DENIED || rc == -MU_INVALID_ARGUMENT)
			event_record(r, true, "CreateRefused", "%s", err->msg);
		return rc < 0 ? rc : 1;
	}
	return 0;
}
