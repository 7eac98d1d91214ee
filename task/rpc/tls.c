/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates of a task: files that are checked at the start, credentials for gRPC, OpenSSL contexts
 * for the streams between tasks.
 *
 * gRPC's own certificate provider watches the files for all servers and channels.
 *
 * No session of a stream is resumed: a certificate is checked each time, and one that is not trusted
 * any more gets no access by a ticket. */
#include "task/rpc/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "task/rpc/core.h"

enum { REFRESH_MS = 1000, REFRESH_S = 1 };
enum { CA, CERTIFICATE, KEY };

static const char *const names[] = {[CA] = "ca.crt", [CERTIFICATE] = "tls.crt", [KEY] = "tls.key"};
struct stamp {
	struct timespec changed[MU_COUNT(names)];
	ino_t inode[MU_COUNT(names)];
};

struct rpc_tls {
	_Atomic unsigned refs;
	char *path[MU_COUNT(names)], *folder;
	grpc_tls_certificate_provider *provider;
	pthread_mutex_t lock; /* guards what follows */
	SSL_CTX *ctx;
	struct stamp stamp; /* of what was tried last */
	int64_t looked_ms;
};

/* ---- the folder ---- */

static void look(struct rpc_tls *t, struct stamp *s)
{
	struct stat st;

	memset(s, 0, sizeof(*s));
	for (unsigned i = 0; i < MU_COUNT(names); i++)
		if (stat(t->path[i], &st) == 0) {
			s->changed[i] = st.st_mtim;
			s->inode[i] = st.st_ino;
		}
}

static void say_why(char *why, size_t size)
{
	unsigned long code = ERR_peek_last_error();
	const char *reason = ERR_reason_error_string(code);

	snprintf(why, size, "%s", reason ? reason : "unknown");
	ERR_clear_error();
}

static SSL_CTX *load(struct rpc_tls *t, struct mu_err *err)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_method());
	const char *bad = NULL;
	char why[120];

	ERR_clear_error();
	if (!ctx || SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1)
		bad = "TLS 1.2";
	else if (SSL_CTX_load_verify_file(ctx, t->path[CA]) != 1)
		bad = t->path[CA];
	else if (SSL_CTX_use_certificate_chain_file(ctx, t->path[CERTIFICATE]) != 1)
		bad = t->path[CERTIFICATE];
	else if (SSL_CTX_use_PrivateKey_file(ctx, t->path[KEY], SSL_FILETYPE_PEM) != 1 ||
		 SSL_CTX_check_private_key(ctx) != 1)
		bad = t->path[KEY];
	if (bad) {
		say_why(why, sizeof(why));
		SSL_CTX_free(ctx);
		mu_fail(err, MU_FAILED_PRECONDITION,
			"TLS: %s cannot be used (%s): the folder must have tls.crt, tls.key and "
			"ca.crt that belong together",
			bad, why);
		return NULL;
	}
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET |
				     SSL_OP_NO_COMPRESSION | SSL_OP_IGNORE_UNEXPECTED_EOF);
	SSL_CTX_set_num_tickets(ctx, 0);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
				  SSL_MODE_RELEASE_BUFFERS);
	return ctx;
}

/* With the lock held: files that have changed are read again; those that do not fit together, as
 * while they are being replaced, leave what was there. */
static void refresh(struct rpc_tls *t)
{
	int64_t now = mu_clock_ms();
	struct stamp s;
	struct mu_err err;
	SSL_CTX *ctx;

	if (now - t->looked_ms < REFRESH_MS)
		return;
	t->looked_ms = now;
	look(t, &s);
	if (!memcmp(&s, &t->stamp, sizeof(s)))
		return;
	t->stamp = s;
	ctx = load(t, &err);
	if (!ctx) {
		mu_warn("tls", "the files before stay in use: %s", err.msg);
		return;
	}
	SSL_CTX_free(t->ctx);
	t->ctx = ctx;
	mu_info("tls", "new certificates from %s", t->folder);
}

/* ---- life ---- */

int rpc_tls_open(const char *folder, struct rpc_tls **out, struct mu_err *err)
{
	struct rpc_tls *t = MU_NEW(struct rpc_tls);

	t->refs = 1;
	pthread_mutex_init(&t->lock, NULL);
	t->folder = mu_xstrdup(folder);
	for (unsigned i = 0; i < MU_COUNT(names); i++)
		t->path[i] = mu_xasprintf("%s/%s", folder, names[i]);
	look(t, &t->stamp);
	t->looked_ms = mu_clock_ms();
	t->ctx = load(t, err);
	if (!t->ctx) {
		rpc_tls_unref(t);
		return -MU_FAILED_PRECONDITION;
	}
	grpc_init();
	t->provider = grpc_tls_certificate_provider_file_watcher_create(
	    t->path[KEY], t->path[CERTIFICATE], t->path[CA], REFRESH_S);
	*out = t;
	return 0;
}

struct rpc_tls *rpc_tls_ref(struct rpc_tls *t)
{
	atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
	return t;
}

void rpc_tls_unref(struct rpc_tls *t)
{
	if (!t || atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) != 1)
		return;
	SSL_CTX_free(t->ctx);
	if (t->provider) {
		grpc_tls_certificate_provider_release(t->provider);
		grpc_shutdown();
	}
	for (unsigned i = 0; i < MU_COUNT(names); i++)
		free(t->path[i]);
	free(t->folder);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

struct ssl_st *rpc_tls_new_ssl(struct rpc_tls *t)
{
	SSL *ssl;

	pthread_mutex_lock(&t->lock);
	refresh(t);
	ssl = SSL_new(t->ctx);
	pthread_mutex_unlock(&t->lock);
	return ssl;
}

/* ---- credentials; minimum TLS 1.2 is gRPC's own ---- */

static grpc_tls_credentials_options *options_of(struct rpc_tls *t)
{
	grpc_tls_credentials_options *o = grpc_tls_credentials_options_create();

	grpc_tls_credentials_options_set_certificate_provider(o, t->provider);
	grpc_tls_credentials_options_watch_root_certs(o);
	grpc_tls_credentials_options_watch_identity_key_cert_pairs(o);
	return o;
}

grpc_server_credentials *rpc_tls_server_credentials(struct rpc_tls *t)
{
	grpc_tls_credentials_options *o = options_of(t);

	grpc_tls_credentials_options_set_cert_request_type(
	    o, GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
	return grpc_tls_server_credentials_create(o);
}

grpc_channel_credentials *rpc_tls_channel_credentials(struct rpc_tls *t)
{
	return grpc_tls_credentials_create(options_of(t));
}
