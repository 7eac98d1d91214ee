/* SPDX-License-Identifier: Apache-2.0 */
/* Membership updates of a running task. */
#include "task/peer/peer.h"
#include "task/server_internal.h"
#include "tests/cluster/fixture.h"

#define PS       "/job:ps/task:0"
#define W0       "/job:worker/task:0"
#define NEW_TASK "/job:worker/replica:0/task:2"

static int start(void **state)
{
	*state = fixture_new("p01");
	return 0;
}

static int stop(void **state)
{
	fixture_free(*state);
	return 0;
}

static void post(const struct task *t, const char *body, struct mu_http_answer *a)
{
	*a = (struct mu_http_answer){0};
	server_http_handle(
	    t->server,
	    &(struct mu_http_request){
		.method = "POST", .path = "/cluster", .loopback = true, .body = mu_span_of(body)},
	    a);
}

/* The JSON of the fixture's cluster plus one worker. */
static char *larger_cluster(const struct fixture *f, int epoch, const char *ps)
{
	return mu_xasprintf("{\"epoch\":%d,\"cluster\":{\"ps\":[\"%s\"],"
			    "\"worker\":[\"%s\",\"%s\",\"127.0.0.1:9\"]}}",
			    epoch, ps, mu_cluster_address(&f->cluster, "worker", 0, NULL),
			    mu_cluster_address(&f->cluster, "worker", 1, NULL));
}

static void expect(const struct task *t, const char *body, int status, const char *message)
{
	struct mu_http_answer a;

	post(t, body, &a);
	if (a.status != status || !strstr(a.body.data, message))
		fail_msg("%s: %d %s", body, a.status, a.body.data);
	mu_buf_fini(&a.body);
}

static void newer_cluster__is_applied_and_an_older_one_ignored(void **state)
{
	struct fixture *f = *state;
	const char *ps = mu_cluster_address(&f->cluster, "ps", 0, NULL);
	MU_AUTO_FREE char *third = larger_cluster(f, 3, ps);
	MU_AUTO_FREE char *second = larger_cluster(f, 2, ps);

	assert_int_equal(f->ps.server->epoch, 0);
	assert_null(peers_find(f->ps.server->peers, NEW_TASK));
	expect(&f->ps, third, 200, "{\"epoch\":3}");
	assert_non_null(peers_find(f->ps.server->peers, NEW_TASK));
	expect(&f->ps, second, 200, "{\"epoch\":3}");
	assert_int_equal(f->ps.server->epoch, 3);
	/* sessions keep the members of their creation, so no peer is removed */
	assert_int_equal(peers_count(f->ps.server->peers), 3);
}

/* Sends a request from another host with this header. */
static void expect_remote(const struct task *t, const char *path, const char *header, int status,
			  const char *message)
{
	struct mu_http_answer a = {0};

	server_http_handle(
	    t->server,
	    &(struct mu_http_request){
		.method = "POST", .path = path, .authorization = header, .body = MU_SPAN("{}")},
	    &a);
	if (a.status != status || !strstr(a.body.data, message))
		fail_msg("%s with %s: %d %s", path, header, a.status, a.body.data);
	mu_buf_fini(&a.body);
}

/* With the token, /finish returns 409, as only the program ends the server, and /cluster returns
 * 400 for a body without an epoch. */
static void remote_caller__without_the_job_token__changes_nothing(void **state)
{
	struct fixture *f = *state;
	struct task_server *s = f->ps.server;
	char token[MU_TOKEN_SIZE], other[MU_TOKEN_SIZE], digest_as_token[MU_TOKEN_SIZE + 7];
	MU_AUTO_FREE char *good = NULL;
	MU_AUTO_FREE char *bad = NULL;

	assert_int_equal(mu_token_derive(MU_SPAN("key"), "u1", token, NULL), 0);
	assert_int_equal(mu_token_derive(MU_SPAN("key"), "u2", other, NULL), 0);
	good = mu_xasprintf("Bearer %s", token);
	bad = mu_xasprintf("Bearer %s", other);
	expect_remote(&f->ps, "/finish", NULL, 403, "only from the loopback interface");
	expect_remote(&f->ps, "/finish", good, 403, "only from the loopback interface");
	assert_int_equal(mu_token_digest(mu_span_of(token), s->token_digest, NULL), 0);
	snprintf(digest_as_token, sizeof(digest_as_token), "Bearer %s", s->token_digest);
	expect_remote(&f->ps, "/finish", NULL, 401, "bearer token of the job");
	expect_remote(&f->ps, "/finish", bad, 401, "bearer token of the job");
	expect_remote(&f->ps, "/finish", token, 401, "bearer token of the job");
	expect_remote(&f->ps, "/finish", digest_as_token, 401, "bearer token of the job");
	expect_remote(&f->ps, "/cluster", bad, 401, "bearer token of the job");
	expect_remote(&f->ps, "/finish", good, 409, "program");
	expect_remote(&f->ps, "/cluster", good, 400, "epoch");
}

static void foreign_or_invalid_cluster__is_rejected(void **state)
{
	struct fixture *f = *state;
	const char *ps = mu_cluster_address(&f->cluster, "ps", 0, NULL);
	MU_AUTO_FREE char *elsewhere = larger_cluster(f, 3, "127.0.0.1:10");
	MU_AUTO_FREE char *never = larger_cluster(f, 0, ps);
	const struct {
		const char *body;
		int status;
		const char *message;
	} cases[] = {
	    {elsewhere, 409, "is not in this cluster"},
	    {"{\"epoch\":3,\"cluster\":{\"worker\":[\"a:1\"]}}", 409, "is not in this cluster"},
	    {never, 400, "epoch"},
	    {"{\"epoch\":99999999999,\"cluster\":{\"ps\":[\"a:1\"]}}", 400, "epoch"},
	    {"{\"epoch\":3,\"cluster\":{\"ps\":[\"no address\"]}}", 400, "no address"},
	    {"{\"epoch\":3,\"cluster\":", 400, "cluster"},
	    {"[3]", 400, "epoch"},
	    {"", 400, ""},
	};

	for (unsigned i = 0; i < MU_COUNT(cases); i++)
		expect(&f->ps, cases[i].body, cases[i].status, cases[i].message);
	assert_int_equal(f->ps.server->epoch, 0);
	assert_null(peers_find(f->ps.server->peers, NEW_TASK));
}

enum { EPOCHS = 200 };

/* Each epoch adds a worker. */
static void *post_many_epochs(void *fixture)
{
	struct fixture *f = fixture;

	for (int epoch = 1; epoch <= EPOCHS; epoch++) {
		MU_AUTO_FREE char *body =
		    mu_xasprintf("{\"epoch\":%d,\"cluster\":{\"ps\":[\"%s\"],"
				 "\"worker\":{\"%d\":\"127.0.0.1:9\"}}}",
				 epoch, mu_cluster_address(&f->cluster, "ps", 0, NULL), epoch + 1);
		struct mu_http_answer a;

		post(&f->ps, body, &a);
		mu_buf_fini(&a.body);
	}
	return NULL;
}

static void membership_updates__during_steps__do_not_disturb_them(void **state)
{
	struct fixture *f = *state;
	MU_AUTO(mu_graph_free) struct mu_graph *g = mu_graph_new();
	struct mu_node *v = variable(g, "v", PS), *one = constant(g, "k", W0, number(15));
	struct step init = {.target = "init"};
	char handle[64];
	pthread_t poster;
	struct mu_err err;

	binary(g, "init", "Assign", PS, v, one);
	binary(g, "twice", "AddV2", W0, v, v);
	assert_int_equal(pthread_create(&poster, NULL, post_many_epochs, f), 0);
	do {
		assert_ok(create(&f->worker[0], g, MU_SPAN(""), handle, &err), &err);
		assert_ok(run(&f->worker[0], handle, &init, NULL, &err), &err);
		assert_true(run_float(&f->worker[0], handle, "twice:0") == 30);
		assert_ok(close_session(&f->worker[0], handle, &err), &err);
	} while (f->ps.server->epoch < EPOCHS);
	pthread_join(poster, NULL);
	assert_non_null(peers_find(f->ps.server->peers, "/job:worker/replica:0/task:201"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(newer_cluster__is_applied_and_an_older_one_ignored,
					    start, stop),
	    cmocka_unit_test_setup_teardown(foreign_or_invalid_cluster__is_rejected, start, stop),
	    cmocka_unit_test_setup_teardown(remote_caller__without_the_job_token__changes_nothing,
					    start, stop),
	    cmocka_unit_test_setup_teardown(membership_updates__during_steps__do_not_disturb_them,
					    start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
