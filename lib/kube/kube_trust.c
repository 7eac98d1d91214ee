/* SPDX-License-Identifier: Apache-2.0 */
/* The authorities' file is looked at again when the last look is a minute old: connections that
 * are made then see a renewed one.
 *
 * A handshake costs some milliseconds, most of it our signature.  A server gives out tickets for
 * the next one; with the newest of them a connection begins without. */
#include "lib/kube/kube_trust.h"
#include "lib/base/clock.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <string.h>

enum { LOOK_S = 60 };

void kube_trust_init(struct kube_trust *t, const struct kube_config *config,
		     struct kube_identity *identity)
{
	*t = (struct kube_trust){.config = config, .identity = identity};
	pthread_mutex_init(&t->lock, NULL);
}

void kube_trust_fini(struct kube_trust *t)
{
	SSL_SESSION_free(t->last);
	SSL_CTX_free(t->now);
	pthread_mutex_destroy(&t->lock);
}

static int refused(struct mu_err *err, const char *what)
{
	const char *why = ERR_reason_error_string(ERR_peek_last_error());
	int rc = mu_fail(err, MU_INVALID_ARGUMENT, "%s: %s", what, why ? why : "cannot be read");

	ERR_clear_error();
	return rc;
}

static BIO *bio_of(const struct mu_buf *pem)
{
	return BIO_new_mem_buf(pem->data, (int)pem->len);
}

/* Every certificate of the text; what else is between them is passed over. */
static int add_authorities(SSL_CTX *ctx, const struct mu_buf *pem, struct mu_err *err)
{
	X509_STORE *store = SSL_CTX_get_cert_store(ctx);
	BIO *bio = bio_of(pem);
	X509 *one;
	int n = 0;

	while (bio && (one = PEM_read_bio_X509(bio, NULL, NULL, NULL))) {
		n += X509_STORE_add_cert(store, one) == 1;
		X509_free(one);
	}
	BIO_free(bio);
	if (!n)
		return refused(err, "the certificate authorities");
	ERR_clear_error(); /* that the text has ended */
	return 0;
}

/* A key that is locked cannot be used: nobody is there to ask. */
static int no_password(char *into, int size, int writing, void *arg)
{
	return -1;
}

static int show_certificate(SSL_CTX *ctx, const struct mu_buf *cert, const struct mu_buf *key,
			    struct mu_err *err)
{
	BIO *bio = bio_of(cert);
	X509 *one = bio ? PEM_read_bio_X509(bio, NULL, no_password, NULL) : NULL;
	bool ok = one && SSL_CTX_use_certificate(ctx, one) == 1;
	EVP_PKEY *private = NULL;

	X509_free(one);
	while (ok && (one = PEM_read_bio_X509(bio, NULL, no_password, NULL)))
		ok = SSL_CTX_add0_chain_cert(ctx, one) == 1;
	BIO_free(bio);
	if (!ok)
		return refused(err, "the client certificate");
	ERR_clear_error();
	bio = bio_of(key);
	private = bio ? PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL) : NULL;
	ok = private && SSL_CTX_use_PrivateKey(ctx, private) == 1;
	EVP_PKEY_free(private);
	BIO_free(bio);
	return ok ? 0 : refused(err, "the client key");
}

static int trust_server(SSL_CTX *ctx, const struct kube_config *k, struct mu_err *err)
{
	MU_AUTO_BUF file = {0};

	if (k->insecure) {
		SSL_CTX_set_verify(ctx, SSL_VERIFY_NONE, NULL);
		return 0;
	}
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	if (k->ca_file) {
		if (mu_buf_read_file(&file, k->ca_file, 4 << 20, err) < 0)
			return mu_wrap(err, "certificate authorities");
		return add_authorities(ctx, &file, err);
	}
	if (k->ca.len)
		return add_authorities(ctx, &k->ca, err);
	return SSL_CTX_set_default_verify_paths(ctx) == 1
		   ? 0
		   : refused(err, "the system's certificate authorities");
}

/* Takes the session. */
static int keep_session(SSL *ssl, SSL_SESSION *session)
{
	struct kube_trust *t = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
	SSL_SESSION *old = session;

	pthread_mutex_lock(&t->lock);
	if (SSL_get_SSL_CTX(ssl) ==
	    t->now) { /* else it is of authorities or a certificate before */
		old = t->last;
		t->last = session;
	}
	pthread_mutex_unlock(&t->lock);
	SSL_SESSION_free(old);
	return 1;
}

static int make(struct kube_trust *t, SSL_CTX **out, struct mu_err *err)
{
	static const unsigned char http[] = "\x08http/1.1";
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	MU_AUTO_BUF cert = {0};
	MU_AUTO_BUF key = {0};
	int rc;

	if (!ctx)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for TLS");
	SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
	SSL_CTX_set_options(ctx, SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_NO_RENEGOTIATION |
				     SSL_OP_NO_COMPRESSION);
	/* what came together is read together */
	SSL_CTX_set_mode(ctx, SSL_MODE_AUTO_RETRY);
	SSL_CTX_set_read_ahead(ctx, 1);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(ctx, keep_session);
	SSL_CTX_set_app_data(ctx, t);
	SSL_CTX_set_alpn_protos(ctx, http, sizeof(http) - 1);
	rc = trust_server(ctx, t->config, err);
	t->certificate = kube_identity_certificate(t->identity, &cert, &key);
	if (rc == 0 && cert.len)
		rc = show_certificate(ctx, &cert, &key, err);
	if (key.len)
		explicit_bzero(key.data, key.len);
	if (rc < 0)
		SSL_CTX_free(ctx);
	else
		*out = ctx;
	return rc;
}

/* Whether the file is another than it was, asked at most once a minute. */
static bool file_changed(struct kube_trust *t)
{
	struct stat is = {0};

	if (!t->config->ca_file || mu_clock() - t->looked < LOOK_S)
		return false;
	t->looked = mu_clock();
	if (stat(t->config->ca_file, &is) < 0)
		return false;
	return is.st_ino != t->ca_as_was.st_ino || is.st_size != t->ca_as_was.st_size ||
	       is.st_mtim.tv_sec != t->ca_as_was.st_mtim.tv_sec ||
	       is.st_mtim.tv_nsec != t->ca_as_was.st_mtim.tv_nsec;
}

int kube_trust_begin(struct kube_trust *t, SSL **out, struct mu_err *err)
{
	SSL_CTX *made = NULL;
	SSL *ssl = NULL;
	int rc = 0;

	pthread_mutex_lock(&t->lock);
	if (!t->now || file_changed(t) || t->certificate != kube_identity_version(t->identity)) {
		if (t->config->ca_file)
			stat(t->config->ca_file, &t->ca_as_was);
		t->looked = mu_clock();
		rc = make(t, &made, err);
	}
	if (made) {
		SSL_CTX_free(t->now);
		SSL_SESSION_free(t->last);
		t->now = made;
		t->last = NULL;
	}
	if (rc == 0 && !(ssl = SSL_new(t->now)))
		rc = mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for a connection");
	if (ssl && t->last)
		SSL_set_session(ssl, t->last);
	pthread_mutex_unlock(&t->lock);
	if (rc == 0)
		*out = ssl;
	return rc;
}
