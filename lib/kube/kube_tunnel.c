/* SPDX-License-Identifier: Apache-2.0 */
/* The answer to CONNECT ends with its head, whatever the headers say of a body.  No server that we
 * go to speaks first, so bytes after that head are the proxy's and an error. */
#include "lib/kube/kube_tunnel.h"

#include <ctype.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <string.h>
#include <strings.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/kube/kube_http.h"

enum { LOGIN_MAX = 1024, PIECE = 4096 };

/* ---- the URL ---- */

static int nibble(char c)
{
	return isdigit((unsigned char)c) ? c - '0' : tolower((unsigned char)c) - 'a' + 10;
}

/* "user:pass%21" as it is meant; false: a % without its two digits, or a zero. */
static bool unescape(struct mu_buf *out, const char *from, const char *to)
{
	for (; from < to; from++) {
		char c = *from;

		if (c == '%') {
			if (to - from < 3 || !isxdigit((unsigned char)from[1]) ||
			    !isxdigit((unsigned char)from[2]))
				return false;
			c = (char)(nibble(from[1]) << 4 | nibble(from[2]));
			from += 2;
		}
		if (!c)
			return false;
		mu_buf_putc(out, c);
	}
	return true;
}

static void forget(struct mu_buf *secret)
{
	if (secret->len)
		OPENSSL_cleanse(secret->data, secret->len);
}

/* What Basic authentication sends of "user:password"; without a colon the password is empty.  NULL:
 * it cannot be read. */
static char *login_of(const char *from, const char *to)
{
	unsigned char encoded[(LOGIN_MAX + 1 + 2) / 3 * 4 + 1];
	MU_AUTO_BUF plain = {0};
	char *line = NULL;

	if (to - from > LOGIN_MAX)
		return NULL;
	mu_buf_reserve(&plain, LOGIN_MAX + 1); /* so that no copy is left behind */
	if (unescape(&plain, from, to)) {
		if (!memchr(from, ':', (size_t)(to - from)))
			mu_buf_putc(&plain, ':');
		EVP_EncodeBlock(encoded, (unsigned char *)plain.data, (int)plain.len);
		line = mu_xasprintf("Proxy-Authorization: Basic %s\r\n", (char *)encoded);
		OPENSSL_cleanse(encoded, sizeof(encoded));
	}
	forget(&plain);
	return line;
}

int kube_tunnel_parse(struct kube_tunnel *out, const char *proxy, struct mu_err *err)
{
	static const char how[] = "name it as http://HOST:PORT or http://USER:PASSWORD@HOST:PORT, "
				  "in the kubeconfig's proxy-url or in HTTPS_PROXY";
	const char *scheme = strstr(proxy, "://"), *host = scheme ? scheme + 3 : proxy;
	const char *end = host + strcspn(host, "/?#"),
		   *at = memrchr(host, '@', (size_t)(end - host));
	MU_AUTO_FREE char *url = NULL;

	*out = (struct kube_tunnel){0};
	if (scheme && (scheme - proxy != 4 || strncasecmp(proxy, "http", 4) != 0))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "the proxy's address begins with %.*s://, and only http:// proxies "
			       "are supported (TLS to the server passes through them): %s",
			       (int)(scheme - proxy > 16 ? 16 : scheme - proxy), proxy, how);
	if (at)
		out->login = login_of(host, at);
	url = mu_xasprintf("http://%.*s", (int)(end - (at ? at + 1 : host)), at ? at + 1 : host);
	if ((at && !out->login) || end[*end == '/'] ||
	    kube_address_parse(&out->by, url, NULL, NULL) < 0) {
		kube_tunnel_fini(out);
		return mu_fail(err, MU_INVALID_ARGUMENT, "the proxy's address cannot be read: %s",
			       how);
	}
	return 0;
}

void kube_tunnel_fini(struct kube_tunnel *t)
{
	if (t->login)
		OPENSSL_cleanse(t->login, strlen(t->login));
	free(t->login);
	kube_address_fini(&t->by);
	*t = (struct kube_tunnel){0};
}

/* ---- the way through ---- */

/* Of a refusal's body nothing is kept; after a yes there is none. */
static int on_body(void *arg, const char *data, size_t len, struct mu_err *err)
{
	const struct kube_http *answer = arg;

	return answer->status > 299
		   ? 0
		   : mu_fail(err, MU_UNAVAILABLE, "it said more than it was asked for");
}

static int receive_head(struct kube_wire *w, struct kube_http *answer, double until,
			struct mu_err *err)
{
	char piece[PIECE];

	while (answer->state <= HTTP_HEADER) {
		double left = until - mu_clock();
		long n;
		int rc;

		if (left <= 0)
			return mu_fail(err, MU_DEADLINE_EXCEEDED, "no answer in time");
		kube_wire_set_patience(w, left);
		n = kube_wire_read(w, piece, sizeof(piece), err);
		if (n < 0)
			return (int)n;
		rc = n ? kube_http_feed(answer, piece, (size_t)n, err) : kube_http_end(answer, err);
		if (rc < 0 && answer->status < 300)
			return rc;
		if (rc < 0) /* how a refusal goes on does not matter */
			break;
	}
	return 0;
}

/* What the proxy's no means for whom it stops. */
static int refused(const struct kube_tunnel *t, const char *server, long status, struct mu_err *err)
{
	if (status == 407)
		return mu_fail(err, MU_UNAVAILABLE,
			       t->login ? "the proxy %s does not accept the user and password of "
					  "its address"
					: "the proxy %s wants a user and a password: name it as "
					  "http://USER:PASSWORD@%s",
			       t->by.in_header, t->by.in_header);
	return mu_fail(err, MU_UNAVAILABLE,
		       "the proxy %s does not connect us to %s (it answers %ld): let it, or name "
		       "the server in NO_PROXY when it can be reached without",
		       t->by.in_header, server, status);
}

int kube_tunnel_dig(const struct kube_tunnel *t, struct kube_wire *w, const struct kube_address *to,
		    double patience, struct mu_err *err)
{
	MU_AUTO_FREE char *server =
	    mu_xasprintf(strchr(to->host, ':') ? "[%s]:%s" : "%s:%s", to->host, to->port);
	struct kube_http_request rq = {
	    .method = "CONNECT", .path = server, .host = server, .headers = t->login};
	struct kube_http answer = {.body = on_body, .arg = &answer};
	double until = mu_clock() + patience;
	MU_AUTO_BUF out = {0};
	struct mu_err why = {0};
	int rc = kube_http_write(&out, &rq, err);

	if (rc < 0)
		return rc;
	kube_wire_set_patience(w, patience);
	rc = kube_wire_write(w, out.data, out.len, &why);
	forget(&out);
	if (rc == 0)
		rc = receive_head(w, &answer, until, &why);
	kube_http_fini(&answer);
	if (rc < 0)
		return mu_fail(err, why.code, "the proxy %s: %.300s", t->by.in_header, why.msg);
	if (answer.status > 299)
		return refused(t, server, answer.status, err);
	kube_wire_set_patience(w, patience);
	return 0;
}
