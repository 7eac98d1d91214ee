/* SPDX-License-Identifier: Apache-2.0 */
/* Answers as bytes, cut anywhere; which proxy stands in between; addresses. */
#include "tests/test.h"

#include <stdlib.h>

#include "lib/kube/kube_http.h"
#include "lib/kube/kube_proxy.h"
#include "lib/kube/kube_tunnel.h"

static int keep_body(void *arg, const char *data, size_t len, struct mu_err *err)
{
	mu_buf_put(arg, data, len);
	return 0;
}

/* Fed in pieces of so many bytes, then ended. */
static int read_answer(struct kube_http *h, struct mu_buf *body, const char *text, size_t piece)
{
	size_t len = strlen(text);
	struct mu_err err = {0};
	int rc = 0;

	*h = (struct kube_http){.body = keep_body, .arg = body};
	for (size_t at = 0; at < len && rc == 0; at += piece)
		rc = kube_http_feed(h, text + at, len - at < piece ? len - at : piece, &err);
	if (rc == 0 && h->state != HTTP_DONE)
		rc = kube_http_end(h, &err);
	kube_http_fini(h);
	return rc;
}

static void answer__cut_anywhere__reads_the_same(void **state)
{
	static const struct {
		const char *text, *body;
		long status, retry;
		bool keep;
	} cases[] = {
	    {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello", 200, 0, true},
	    {"HTTP/1.1 200\r\ncontent-length:0\r\n\r\n", "", 200, 0, true},
	    {"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n"
	     "0123456789\r\n0\r\nTrailer: x\r\n\r\n",
	     "abc0123456789", 201, 0, true},
	    {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", "x", 200,
	     0, true},
	    {"HTTP/1.1 429 Too Many\r\nRetry-After: 7\r\nConnection: close\r\nContent-Length: "
	     "2\r\n\r\nno",
	     "no", 429, 7, false},
	    {"HTTP/1.0 200 OK\r\n\r\nall of it", "all of it", 200, 0, false},
	    {"HTTP/1.1 204 No Content\r\n\r\n", "", 204, 0, true},
	};

	for (unsigned i = 0; i < MU_COUNT(cases); i++)
		for (size_t piece = 1; piece <= strlen(cases[i].text); piece++) {
			MU_AUTO_BUF body = {0};
			struct kube_http h;

			assert_int_equal(read_answer(&h, &body, cases[i].text, piece), 0);
			assert_string_equal(body.data ? body.data : "", cases[i].body);
			assert_int_equal(h.status, cases[i].status);
			assert_int_equal(h.retry_after, cases[i].retry);
			assert_int_equal(h.keep, cases[i].keep);
		}
}

static void answer__that_is_none__is_refused(void **state)
{
	static const char *const cases[] = {
	    "",
	    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
	    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhell",
	    "HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nhell",
	    "HTTP/1.1 200 OK\r\nContent-Length: 2x\r\n\r\nhe",
	    "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\nhe",
	    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nhel",
	    "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nx",
	    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
	    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
	    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
	    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
	    "HTTP/2 200\r\n\r\n",
	    "HTTP/1.1 2 0\r\n\r\n",
	    "SSH-2.0-OpenSSH_9.2\r\n",
	};

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		MU_AUTO_BUF body = {0};
		struct kube_http h;

		assert_int_equal(read_answer(&h, &body, cases[i], 3), -MU_UNAVAILABLE);
	}
}

static void answer__with_an_endless_head__is_refused(void **state)
{
	struct kube_http h = {.body = keep_body};
	int rc = kube_http_feed(&h, "HTTP/1.1 200 OK\r\n", 17, NULL);

	for (int i = 0; i < 20000 && rc == 0; i++)
		rc = kube_http_feed(&h, "X-More: of it\r\n", 15, NULL);
	assert_int_equal(rc, -MU_UNAVAILABLE);
	kube_http_fini(&h);
}

static void request__is_one_piece__and_no_line_can_be_smuggled(void **state)
{
	struct kube_http_request rq = {.method = "POST",
				       .path = "/a?b=c",
				       .host = "h:1",
				       .headers = "X: y\r\n",
				       .body = {"{}", 2},
				       .has_body = true};
	MU_AUTO_BUF out = {0};

	assert_int_equal(kube_http_write(&out, &rq, NULL), 0);
	assert_string_equal(
	    out.data, "POST /a?b=c HTTP/1.1\r\nHost: h:1\r\nX: y\r\nContent-Length: 2\r\n\r\n{}");
	rq.path = "/a HTTP/1.1\r\nX: z";
	assert_int_equal(kube_http_write(&out, &rq, NULL), -MU_INVALID_ARGUMENT);
}

static void address__is_cut_into_its_parts(void **state)
{
	static const struct {
		const char *server, *host, *port, *prefix, *header;
	} cases[] = {
	    {"https://a.b", "a.b", "443", "", "a.b"},
	    {"http://a.b:81/", "a.b", "81", "", "a.b:81"},
	    {"https://[::1]:6443/k8s/x/", "::1", "6443", "/k8s/x", "[::1]:6443"},
	    {"https://[fe80::1]", "fe80::1", "443", "", "[fe80::1]"},
	};
	static const char *const bad[] = {"a.b",         "ftp://a",     "https://",
					  "https://a:",  "https://a:b", "https://[::1",
					  "https://a?x", "https://u@a", "https://a\r\nb"};
	struct kube_address a;

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		assert_int_equal(kube_address_parse(&a, cases[i].server, NULL, NULL), 0);
		assert_string_equal(a.host, cases[i].host);
		assert_string_equal(a.port, cases[i].port);
		assert_string_equal(a.prefix, cases[i].prefix);
		assert_string_equal(a.in_header, cases[i].header);
		assert_string_equal(a.name, cases[i].host);
		kube_address_fini(&a);
	}
	for (unsigned i = 0; i < MU_COUNT(bad); i++)
		assert_int_equal(kube_address_parse(&a, bad[i], NULL, NULL), -MU_INVALID_ARGUMENT);
}

static void proxy__is_left_out_for_whom_the_list_names(void **state)
{
	static const struct {
		const char *list, *host;
		bool out;
	} cases[] = {
	    {"", "a.b", false},
	    {"a.b", "a.b", true},
	    {"a.b", "x.a.b", true},
	    {"a.b", "xa.b", false},
	    {".a.b, c", "x.a.b", true},
	    {"*.a.b", "x.a.b", true},
	    {"c,*", "x", true},
	    {"10.0.0.0/8", "10.9.8.7", true},
	    {"10.0.0.0/8", "11.9.8.7", false},
	    {"10.96.0.0/12", "10.111.0.1", true},
	    {"10.96.0.0/12", "10.112.0.1", false},
	    {"10.96.0.0/33", "10.96.0.1", false},
	    {"fd00::/8", "fd12::1", true},
	    {"10.0.0.1", "10.0.0.1", true},
	};

	for (unsigned i = 0; i < MU_COUNT(cases); i++)
		assert_int_equal(kube_proxy_excluded(cases[i].list, cases[i].host), cases[i].out);
}

static void proxy__is_what_the_file_or_the_environment_names(void **state)
{
	struct kube_address far = {.tls = true, .host = "a.b"},
			    near = {.tls = true, .host = "127.0.0.2"};
	struct kube_config k = {0};

	setenv("HTTPS_PROXY", "http://p:1", 1);
	setenv("NO_PROXY", "c.d", 1);
	assert_string_equal(kube_proxy_for(&k, &far), "http://p:1");
	assert_null(kube_proxy_for(&k, &near));
	far.host = "x.c.d";
	assert_null(kube_proxy_for(&k, &far));
	k.proxy_url = "socks5://q:2";
	assert_string_equal(kube_proxy_for(&k, &near), "socks5://q:2");
	unsetenv("HTTPS_PROXY");
	unsetenv("NO_PROXY");
}

static void proxy__is_read_from_its_address(void **state)
{
	static const struct {
		const char *url, *host, *port, *login; /* host NULL: refused */
	} cases[] = {
	    {"http://p:3128", "p", "3128", NULL},
	    {"HTTP://p/", "p", "80", NULL},
	    {"p:3128", "p", "3128", NULL},
	    {"http://[::1]:8", "::1", "8", NULL},
	    {"http://u:v@p:1", "p", "1", "Proxy-Authorization: Basic dTp2\r\n"},
	    {"http://u@p:1", "p", "1", "Proxy-Authorization: Basic dTo=\r\n"},
	    {"http://u:%40%3a@b@p:1", "p", "1", "Proxy-Authorization: Basic dTpAOkBi\r\n"},
	    {"https://p:1", NULL, NULL, "only http:// proxies"},
	    {"socks5://secret@p:1", NULL, NULL, "begins with socks5://"},
	    {"http://u:secret%4@p", NULL, NULL, "cannot be read"},
	    {"http://u:secret%00@p", NULL, NULL, "cannot be read"},
	    {"http://u:secret@", NULL, NULL, "cannot be read"},
	    {"http://p:1/secret", NULL, NULL, "cannot be read"},
	    {"http://p:1?secret", NULL, NULL, "cannot be read"},
	    {"http://p\r\nsecret:1", NULL, NULL, "cannot be read"},
	    {"", NULL, NULL, "cannot be read"},
	};

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		struct kube_tunnel t;
		struct mu_err err = {0};
		int rc = kube_tunnel_parse(&t, cases[i].url, &err);

		assert_int_equal(rc, cases[i].host ? 0 : -MU_INVALID_ARGUMENT);
		if (rc < 0) {
			assert_non_null(strstr(err.msg, cases[i].login));
			assert_null(strstr(err.msg, "secret"));
			continue;
		}
		assert_string_equal(t.by.host, cases[i].host);
		assert_string_equal(t.by.port, cases[i].port);
		assert_string_equal(t.login ? t.login : "", cases[i].login ? cases[i].login : "");
		kube_tunnel_fini(&t);
	}
}

static void proxy__with_a_login_that_is_too_long__is_refused(void **state)
{
	struct kube_tunnel t;

	for (int n = 1023; n <= 1025; n++) {
		MU_AUTO_FREE char *url = mu_xasprintf("http://%0*d@p:1", n, 0);
		int rc = kube_tunnel_parse(&t, url, NULL);

		assert_int_equal(rc, n > 1024 ? -MU_INVALID_ARGUMENT : 0);
		kube_tunnel_fini(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(answer__cut_anywhere__reads_the_same),
	    cmocka_unit_test(answer__that_is_none__is_refused),
	    cmocka_unit_test(answer__with_an_endless_head__is_refused),
	    cmocka_unit_test(request__is_one_piece__and_no_line_can_be_smuggled),
	    cmocka_unit_test(address__is_cut_into_its_parts),
	    cmocka_unit_test(proxy__is_left_out_for_whom_the_list_names),
	    cmocka_unit_test(proxy__is_what_the_file_or_the_environment_names),
	    cmocka_unit_test(proxy__is_read_from_its_address),
	    cmocka_unit_test(proxy__with_a_login_that_is_too_long__is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
