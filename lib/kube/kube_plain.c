/* SPDX-License-Identifier: Apache-2.0 */
/* A connection for each question: they are asked of many tasks, each now and then. */
#include "lib/kube/kube_plain.h"

#include "lib/base/clock.h"
#include "lib/kube/kube_http.h"
#include "lib/kube/kube_wire.h"

enum { FETCH_MAX = 64 << 10 };
static const double patience_s = 1;

static int on_body(void *arg, const char *data, size_t len, struct mu_err *err)
{
	struct mu_buf *body = arg;

	if (body->len + len > FETCH_MAX)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "more than %d bytes", FETCH_MAX);
	mu_buf_put(body, data, len);
	return 0;
}

static int receive(struct kube_wire *w, struct kube_http *answer, double until, struct mu_err *err)
{
	char piece[4096];
	int rc = 0;

	while (rc == 0 && answer->state != HTTP_DONE) {
		long n = kube_wire_read(w, piece, sizeof(piece), err);
		if (n < 0)
			return (int)n;
		rc = n ? kube_http_feed(answer, piece, (size_t)n, err) : kube_http_end(answer, err);
		if (rc == 0 && answer->state != HTTP_DONE && mu_clock() > until)
			rc = mu_fail(err, MU_DEADLINE_EXCEEDED, "no end in time");
	}
	return rc;
}

static int ask(const struct kube_address *to, const char *bearer, const struct mu_span *post,
	       const _Atomic bool *stopped, struct kube_http *answer, struct mu_err *err)
{
	MU_AUTO_FREE char *headers =
	    bearer && *bearer
		? mu_xasprintf("Connection: close\r\nAuthorization: Bearer %s\r\n", bearer)
		: mu_xstrdup("Connection: close\r\n");
	struct kube_http_request rq = {.method = post ? "POST" : "GET",
				       .path = *to->prefix ? to->prefix : "/",
				       .host = to->in_header,
				       .headers = headers,
				       .has_body = post != NULL,
				       .body = post ? *post : (struct mu_span){0}};
	double until = mu_clock() + patience_s;
	MU_AUTO_BUF request = {0};
	struct kube_wire w;
	int rc = kube_http_write(&request, &rq, err);

	kube_wire_init(&w);
	if (rc == 0)
		rc = kube_wire_open(&w, to, patience_s, stopped, err);
	if (rc == 0)
		rc = kube_wire_write(&w, request.data, request.len, err);
	if (rc == 0)
		rc = receive(&w, answer, until, err);
	kube_wire_fini(&w);
	return rc;
}

static enum mu_code code_of(long status)
{
	return status == 401   ? MU_UNAUTHENTICATED
	       : status == 403 ? MU_PERMISSION_DENIED
			       : MU_UNAVAILABLE;
}

int kube_plain_ask(const char *url, const char *bearer, const struct mu_span *post,
		   const _Atomic bool *stopped, struct mu_buf *out, struct mu_err *err)
{
	MU_AUTO_BUF body = {0};
	struct kube_http answer = {.body = on_body, .arg = &body};
	struct kube_address to;
	struct mu_err why = {0};
	int rc = kube_address_parse(&to, url, NULL, err);

	if (rc < 0)
		return rc;
	rc = to.tls ? mu_fail(&why, MU_INVALID_ARGUMENT, "not http://")
		    : ask(&to, bearer, post, stopped, &answer, &why);
	kube_http_fini(&answer);
	kube_address_fini(&to);
	if (rc == 0 && (answer.status < 200 || answer.status > 299))
		return mu_fail(err, code_of(answer.status), "%s: refused (%ld)", url,
			       answer.status);
	if (rc < 0)
		return mu_fail(err, MU_UNAVAILABLE, "%s: %.300s", url, why.msg);
	mu_buf_fini(out);
	*out = body;
	memset(&body, 0, sizeof(body));
	return 0;
}
