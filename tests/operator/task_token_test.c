/* SPDX-License-Identifier: Apache-2.0 */
/* The key from which job tokens are derived, and the digest of the token in the pods of a job. */
#include "tests/operator/controller_fixture.h"

#include <unistd.h>

#include "operator/controller/controller.h"

#define SECRETS "/api/v1/namespaces/ops/secrets"

static struct mu_err err;

static struct controller_fixture *fixture_with_key_file(const char *file)
{
	struct controller_fixture *s = fixture_new("", "{}", NULL);

	s->controller.options.token_key_file = file;
	s->controller.options.lease_namespace = "ops";
	return s;
}

static void key_file__yields_the_same_tokens_after_a_restart(void **state)
{
	char path[] = "/tmp/muster-token-key-XXXXXX", first[MU_TOKEN_SIZE], again[MU_TOKEN_SIZE];
	int fd = mkstemp(path);

	assert_true(write(fd, "0123456789abcdef0123456789abcdef\n", 33) == 33);
	close(fd);
	for (int i = 0; i < 2; i++) {
		struct controller_fixture *s = fixture_with_key_file(path);

		assert_ok(token_key_load(&s->controller, &err), &err);
		assert_ok(task_token_digest(&s->controller, "u1", i ? again : first), &err);
		assert_int_equal(s->n, 0); /* the API server is not asked */
		fixture_free(s);
	}
	assert_string_equal(first, again);
	assert_int_equal(truncate(path, 31), 0);
	struct controller_fixture *s = fixture_with_key_file(path);
	assert_int_equal(token_key_load(&s->controller, &err), -MU_INVALID_ARGUMENT);
	assert_non_null(strstr(err.msg, "at least 32 bytes"));
	fixture_free(s);
	unlink(path);
}

static void key_file__that_is_missing__is_replaced_by_one_secret(void **state)
{
	struct controller_fixture *s = fixture_with_key_file("/nowhere/key");
	cJSON *sent;
	const char *key;

	assert_ok(token_key_load(&s->controller, &err), &err);
	assert_int_equal(call_of(s, "POST", SECRETS), 0);
	assert_non_null(sent = cJSON_Parse(s->calls[0].body));
	key = cJSON_GetStringValue(
	    cJSON_GetObjectItem(cJSON_GetObjectItem(sent, "stringData"), "key"));
	assert_non_null(key);
	assert_int_equal(strlen(key), 64);
	assert_string_equal(key, s->controller.token_key.data);
	cJSON_Delete(sent);
	fixture_free(s);

	/* another replica created the Secret first: its key is used */
	s = fixture_with_key_file("/nowhere/key");
	s->rejected = "muster-operator-key";
	s->reject_code = MU_ALREADY_EXISTS;
	assert_int_equal(token_key_load(&s->controller, &err), -MU_FAILED_PRECONDITION);
	assert_non_null(strstr(err.msg, "restarts"));
	fixture_free(s);
}

static void pods__get_the_digest_of_their_jobs_token_and_no_token(void **state)
{
	static const char *const ps[] = {
	    POD("ps", "p1", RUNS ",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]"),
	    NULL};
	struct controller_fixture *s = fixture_new("", RUNNING, ps);
	char token[MU_TOKEN_SIZE], digest[MU_TOKEN_SIZE];
	int at;

	assert_ok(token_key_load(&s->controller, &err), &err);
	assert_ok(mu_token_derive(mu_buf_span(&s->controller.token_key), "u1", token, &err), &err);
	assert_ok(mu_token_digest(mu_span_of(token), digest, &err), &err);
	for (int i = 0; i < 3; i++)
		run_reconcile(s);
	at = call_of(s, "POST", "/api/v1/namespaces/d/pods?fieldValidation=Strict");
	assert_true(at >= 0);
	assert_non_null(strstr(s->calls[at].body, "\"MUSTER_TOKEN_SHA256\""));
	assert_non_null(strstr(s->calls[at].body, digest));
	for (int i = 0; i < s->n; i++)
		assert_null(strstr(s->calls[i].body, token));
	fixture_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(key_file__yields_the_same_tokens_after_a_restart),
	    cmocka_unit_test(key_file__that_is_missing__is_replaced_by_one_secret),
	    cmocka_unit_test(pods__get_the_digest_of_their_jobs_token_and_no_token),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
