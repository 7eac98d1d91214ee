/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/tls/token.h"
#include "tests/test.h"

static struct mu_err err;

/* The expected values are from `openssl dgst -sha256 -mac HMAC` and `sha256sum`. */
static void token__of_a_uid__is_its_hmac_and_matches_its_digest(void **state)
{
	char token[MU_TOKEN_SIZE], again[MU_TOKEN_SIZE], other[MU_TOKEN_SIZE];
	char digest[MU_TOKEN_SIZE];

	assert_ok(mu_token_derive(MU_SPAN("key"), "uid-1", token, &err), &err);
	assert_string_equal(token,
			    "10417db3db389ad5d4719f791c333ec459b556acbda69b2954abb5252a76642e");
	assert_ok(mu_token_derive(MU_SPAN("key"), "uid-1", again, &err), &err);
	assert_string_equal(again, token);
	assert_ok(mu_token_digest(mu_span_of(token), digest, &err), &err);
	assert_string_equal(digest,
			    "0bf9770c2f77038687582f93a0e291b250c09ab0e3f07c74472ebe40e0ab3efa");
	assert_true(mu_token_matches(mu_span_of(token), digest));
	assert_ok(mu_token_derive(MU_SPAN("key"), "uid-2", other, &err), &err);
	assert_false(mu_token_matches(mu_span_of(other), digest));
	assert_ok(mu_token_derive(MU_SPAN("yek"), "uid-1", other, &err), &err);
	assert_false(mu_token_matches(mu_span_of(other), digest));
}

static void token__with_a_wrong_digest__does_not_match(void **state)
{
	static const char *const digests[] = {"", "e3b0",
					      "E3B0C44298FC1C149AFBF4C8996FB92427AE41E4"
					      "649B934CA495991B7852B855"};
	char digest[MU_TOKEN_SIZE];

	for (unsigned i = 0; i < MU_COUNT(digests); i++) {
		assert_false(mu_token_is_digest(digests[i]));
		assert_false(mu_token_matches(MU_SPAN(""), digests[i]));
	}
	assert_ok(mu_token_digest(MU_SPAN("token"), digest, &err), &err);
	assert_true(mu_token_is_digest(digest));
	assert_false(mu_token_matches(MU_SPAN(""), digest));
	assert_false(mu_token_matches(MU_SPAN("toke"), digest));
	assert_false(mu_token_matches(MU_SPAN("token "), digest));
	assert_false(mu_token_matches(mu_span_of(digest), digest));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(token__of_a_uid__is_its_hmac_and_matches_its_digest),
	    cmocka_unit_test(token__with_a_wrong_digest__does_not_match),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
