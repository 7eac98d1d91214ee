/* SPDX-License-Identifier: Apache-2.0 */
/* OpenSSL contexts from a certificate folder whose files may be replaced at any time.
 *
 * Sessions are not resumed: every handshake verifies the certificate, so a session ticket gives no
 * access with a certificate that is no longer trusted. */
#include "lib/tls/tls_context.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

enum { REFRESH_MS = 1000 };

static const char *const names[] = {
    [MU_TLS_CA] = "ca.crt", [MU_TLS_CERTIFICATE] = "tls.crt", [MU_TLS_KEY] = "tls.key"};
struct stamp {
	struct timespec changed[MU_COUNT(names)];
	ino_t inode[MU_COUNT(names)];
};

struct mu_tls_context {
	char *path[MU_COUNT(names)], *folder;
	pthread_mutex_t lock; /* guards the members below */
	SSL_CTX *ctx;
	struct stamp stamp; /* of the files at the last load */
	int64_t checked_ms;
};

static void read_stamp(struct mu_tls_context *t, struct stamp *s)
{
	struct stat st;

	memset(s, 0, sizeof(*s));
	for (unsigned i = 0; i < MU_COUNT(names); i++)
		if (stat(t->path[i], &st) == 0) {
			s->changed[i] = st.st_mtim;
			s->inode[i] = st.st_ino;
		}
}

void mu_tls_reason(char *out, size_t size)
{
	unsigned long code = ERR_peek_last_error();
	const char *reason = ERR_reason_error_string(code);

	snprintf(out, size, "%s", reason ? reason : "unknown");
	ERR_clear_error();
}

static SSL_CTX *load(struct mu_tls_context *t, struct mu_err *err)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_method());
	const char *problem = NULL;
	char reason[120];

	ERR_clear_error();
	if (!ctx || SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1)
		problem = "TLS 1.2";
	else if (SSL_CTX_load_verify_file(ctx, t->path[MU_TLS_CA]) != 1)
		problem = t->path[MU_TLS_CA];
	else if (SSL_CTX_use_certificate_chain_file(ctx, t->path[MU_TLS_CERTIFICATE]) != 1)
		problem = t->path[MU_TLS_CERTIFICATE];
	else if (SSL_CTX_use_PrivateKey_file(ctx, t->path[MU_TLS_KEY], SSL_FILETYPE_PEM) != 1 ||
		 SSL_CTX_check_private_key(ctx) != 1)
		problem = t->path[MU_TLS_KEY];
	if (problem) {
		mu_tls_reason(reason, sizeof(reason));
		SSL_CTX_free(ctx);
		mu_fail(err, MU_FAILED_PRECONDITION,
			"TLS: %s cannot be used (%s): the folder must have tls.crt, tls.key and "
			"ca.crt that belong together",
			problem, reason);
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

/* Loads changed files; the caller holds the lock.  Files that do not match, for example during a
 * replacement, are ignored until they change again. */
static void refresh(struct mu_tls_context *t)
{
	int64_t now = mu_clock_ms();
	struct stamp s;
	struct mu_err err;
	SSL_CTX *ctx;

	if (now - t->checked_ms < REFRESH_MS)
		return;
	t->checked_ms = now;
	read_stamp(t, &s);
	if (!memcmp(&s, &t->stamp, sizeof(s)))
		return;
	t->stamp = s;
	ctx = load(t, &err);
	if (!ctx) {
		mu_warn("tls", "the old certificates stay in use: %s", err.msg);
		return;
	}
	SSL_CTX_free(t->ctx);
	t->ctx = ctx;
	mu_info("tls", "new certificates from %s", t->folder);
}

int mu_tls_context_open(const char *folder, struct mu_tls_context **out, struct mu_err *err)
{
	struct mu_tls_context *t = MU_NEW(struct mu_tls_context);

	pthread_mutex_init(&t->lock, NULL);
	t->folder = mu_xstrdup(folder);
	for (unsigned i = 0; i < MU_COUNT(names); i++)
		t->path[i] = mu_xasprintf("%s/%s", folder, names[i]);
	read_stamp(t, &t->stamp);
	t->checked_ms = mu_clock_ms();
	t->ctx = load(t, err);
	if (!t->ctx) {
		mu_tls_context_free(t);
		return -MU_FAILED_PRECONDITION;
	}
	*out = t;
	return 0;
}

void mu_tls_context_free(struct mu_tls_context *t)
{
	if (!t)
		return;
	SSL_CTX_free(t->ctx);
	for (unsigned i = 0; i < MU_COUNT(names); i++)
		free(t->path[i]);
	free(t->folder);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

const char *mu_tls_context_path(const struct mu_tls_context *t, enum mu_tls_file file)
{
	return t->path[file];
}

struct ssl_st *mu_tls_context_new_ssl(struct mu_tls_context *t)
{
	SSL *ssl;

	pthread_mutex_lock(&t->lock);
	refresh(t);
	ssl = SSL_new(t->ctx);
	pthread_mutex_unlock(&t->lock);
	return ssl;
}
