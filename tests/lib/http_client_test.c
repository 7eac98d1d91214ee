/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to the HTTP server of a task, which do not pass the API server. */
#include "lib/net/http_client.h"

#include <stdio.h>

#include "lib/net/http_server.h"
#include "tests/test.h"

static void handle_request(void *ctx, const struct mu_http_request *rq, struct mu_http_answer *out)
{
	out->status = strcmp(rq->path, "/who") == 0 ? 401 : strcmp(rq->path, "/no") ? 200 : 409;
	mu_buf_printf(&out->body, "%s %s %s%s%.*s", rq->method, rq->path,
		      rq->authorization ? rq->authorization : "", rq->authorization ? " " : "",
		      (int)rq->body.len, rq->body.data);
}

static void page__is_requested_by_get_or_post(void **state)
{
	const struct mu_span empty = MU_SPAN(""), text = MU_SPAN("{\"epoch\":2}");
	const struct {
		const char *page;
		const struct mu_span *post;
		const char *bearer;
		int rc;
		const char *expected;
	} cases[] = {{"status", NULL, NULL, 0, "GET /status "},
		     {"finish", &empty, "t1", 0, "POST /finish Bearer t1 "},
		     {"cluster", &text, "", 0, "POST /cluster {\"epoch\":2}"},
		     {"no", &text, NULL, -MU_UNAVAILABLE, NULL},
		     {"who", &text, "t1", -MU_UNAUTHENTICATED, NULL}};
	struct mu_http_server *h;
	struct mu_http_client *c;
	struct mu_err err;
	int port;

	assert_ok(mu_http_start("127.0.0.1", 0, handle_request, NULL, &h, &port, &err), &err);
	assert_ok(mu_http_client_new(&c, &err), &err);
	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		MU_AUTO_BUF out = {0};
		char url[64];

		snprintf(url, sizeof(url), "http://127.0.0.1:%d/%s", port, cases[i].page);
		assert_int_equal(
		    mu_http_fetch(c, url, cases[i].bearer, cases[i].post, 1, 1 << 16, &out, &err),
		    cases[i].rc);
		if (cases[i].expected)
			assert_string_equal(out.data, cases[i].expected);
	}
	mu_http_client_free(c);
	mu_http_stop(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(page__is_requested_by_get_or_post),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
