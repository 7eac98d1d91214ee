/* SPDX-License-Identifier: Apache-2.0 */
/* Calls through a proxy; addresses of servers and proxies. */
#include "tests/lib/scripted_server.h"

static struct kube_client *client_behind(const struct server *s, const char *user)
{
	struct kube_config k = {.server = mu_xstrdup("https://api.test:81"),
				.token = mu_xstrdup("the-token")};
	struct kube_client *c;

	mu_buf_puts(&k.ca, certs.ca);
	k.proxy_url = mu_xasprintf("http://%s127.0.0.1:%d", user, s->port);
	assert_int_equal(kube_client_new(&c, &k, NULL), 0);
	return c;
}

static void call__through_a_proxy__uses_tls(void **state)
{
	static const char *const answers[] = {OK(THING),
					      "HTTP/1.1 429 No\r\nRetry-After: 1\r\n"
					      "Content-Length: 0\r\n\r\n",
					      OK(THING), NULL},
				 *const yes[] = {"HTTP/1.1 200 Connection established\r\n\r\n",
						 "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"};

	for (unsigned i = 0; i < MU_COUNT(yes); i++) {
		struct mu_err err = {0};
		struct kube_client *c;
		struct server s;

		start_behind(&s, yes[i], &certs, answers);
		c = client_behind(&s, "me:p%40ss@");
		assert_ok(get(c, 0, &err), &err);
		if (i == 0)
			assert_int_equal(get(c, 0, &err), 0); /* the 429 delays it by a second */
		assert_int_equal(s.n_connections, 1);
		end(c, &s);
		assert_non_null(strstr(s.connect, "CONNECT api.test:81 HTTP/1.1\r\n"));
		assert_non_null(
		    strstr(s.connect, "\r\nProxy-Authorization: Basic bWU6cEBzcw==\r\n"));
		assert_null(strstr(s.connect, "the-token"));
		assert_non_null(strstr(s.last, "GET /x HTTP/1.1\r\nHost: api.test:81\r\n"));
		assert_non_null(strstr(s.last, "\r\nAuthorization: Bearer the-token\r\n"));
	}
}

static void call__rejected_by_the_proxy__has_its_reason(void **state)
{
	static const struct {
		const char *user, *answer, *message;
	} cases[] = {
	    {"", "HTTP/1.1 407 Who?\r\nContent-Length: 3\r\n\r\nno!",
	     "name it as http://USER:PASSWORD@HOST:PORT"},
	    {"me:x@", "HTTP/1.1 407 Who?\r\n\r\n", "does not accept the user and password"},
	    {"", "HTTP/1.1 403 No\r\n\r\n", "refuses to connect to the server (it answers 403)"},
	    {"", "HTTP/1.1 503 No\r\n\r\n", "(it answers 503)"},
	    {"", "SSH-2.0-x\r\n\r\n", "CONNECT"},
	    {"", "HTTP/1.1 200 OK\r\n", "CONNECT"},
	    {"", "", "CONNECT"},
	};
	static const char *const answers[] = {OK(THING), NULL};

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		struct mu_err err = {0};
		struct kube_client *c;
		struct server s;

		start_behind(&s, cases[i].answer, NULL, answers);
		c = client_behind(&s, cases[i].user);
		assert_int_equal(get(c, 0, &err), -MU_UNAVAILABLE);
		if (!strstr(err.msg, cases[i].message))
			fail_msg("%s", err.msg);
		/* ends the server before reading `connect`: a second attempt may be in progress */
		end(c, &s);
		assert_null(strstr(s.connect, "the-token"));
		assert_int_equal(s.n_requests, 0);
	}
}

/* HTTPS_PROXY is set; NO_PROXY lists servers that are called directly. */
static void proxy__of_the_environment__is_not_used_for_no_proxy_servers(void **state)
{
	static const struct {
		const char *server, *no_proxy;
		bool proxied;
	} cases[] = {
	    {"https://api.test", "", true},
	    {"https://api.test", "b.test,10.0.0.0/8", true},
	    {"https://api.test", "api.test", false},
	    {"https://api.test", ".test", false},
	    {"https://10.255.255.255", "10.0.0.0/8", false},
	    {"https://127.0.0.1:1", "", false},
	    {"https://[::1]:1", "", false},
	    {"https://localhost:1", "", false},
	};

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		struct kube_config k = {.server = mu_xstrdup(cases[i].server)};
		MU_AUTO_FREE char *proxy = NULL;
		struct mu_err err = {0};
		struct kube_client *c;
		struct server s;

		start_behind(&s, "HTTP/1.1 403 No\r\n\r\n", NULL, NULL);
		proxy = mu_xasprintf("http://127.0.0.1:%d", s.port);
		setenv("HTTPS_PROXY", proxy, 1);
		setenv("NO_PROXY", cases[i].no_proxy, 1);
		assert_int_equal(kube_client_new(&c, &k, NULL), 0);
		assert_int_equal(get(c, 300, &err), -MU_UNAVAILABLE);
		unsetenv("HTTPS_PROXY");
		unsetenv("NO_PROXY");
		end(c, &s);
		if ((s.connect[0] != 0) != cases[i].proxied)
			fail_msg("%s with NO_PROXY=%s: %s", cases[i].server, cases[i].no_proxy,
				 err.msg);
	}
}

static void proxy__with_an_invalid_address__fails_at_once(void **state)
{
	static const char *const bad[] = {"ftp://me:secret@proxy.test", "http://proxy.test/secret",
					  "http://proxy.test:1?secret", "http://me:secret@:x"};

	for (unsigned i = 0; i < MU_COUNT(bad); i++) {
		struct kube_config k = {.server = mu_xstrdup("https://api.test"),
					.proxy_url = mu_xstrdup(bad[i])};
		struct kube_client *c;
		struct mu_err err = {0};

		assert_int_equal(kube_client_new(&c, &k, &err), -MU_INVALID_ARGUMENT);
		assert_non_null(strstr(err.msg, "proxy-url cannot be read"));
		assert_null(strstr(err.msg, "secret"));
		kube_config_fini(&k);
	}
}

static void server_address__malformed__is_rejected(void **state)
{
	static const char *const bad[] = {"",
					  "ftp://h",
					  "h:1",
					  "https://",
					  "https://h:x",
					  "https://h:1?q",
					  "https://u@h:1",
					  "https://h/ a",
					  "https://h\r\n:1"};

	for (unsigned i = 0; i < MU_COUNT(bad); i++) {
		struct kube_config k = {.server = mu_xstrdup(bad[i])};
		struct kube_client *c;
		struct mu_err err = {0};

		if (kube_client_new(&c, &k, &err) != -MU_INVALID_ARGUMENT)
			fail_msg("'%s' was accepted", bad[i]);
		kube_config_fini(&k);
	}
}

/* A path with a line break is rejected before it is sent. */
static void path__with_a_line_break__is_rejected(void **state)
{
	static const char *const answers[] = {OK(THING), NULL};
	struct mu_err err = {0};
	struct server s;
	struct kube_client *c = begin(&s, answers);
	struct kube_request rq = {.method = "GET", .path = "/a HTTP/1.1\r\nX: z"};

	assert_int_equal(kube_call(c, &rq, NULL, &err), -MU_INVALID_ARGUMENT);
	assert_int_equal(s.n_requests, 0);
	end(c, &s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(call__through_a_proxy__uses_tls),
	    cmocka_unit_test(call__rejected_by_the_proxy__has_its_reason),
	    cmocka_unit_test(proxy__of_the_environment__is_not_used_for_no_proxy_servers),
	    cmocka_unit_test(proxy__with_an_invalid_address__fails_at_once),
	    cmocka_unit_test(server_address__malformed__is_rejected),
	    cmocka_unit_test(path__with_a_line_break__is_rejected),
	};
	return cmocka_run_group_tests(tests, make_certs, free_certs);
}
