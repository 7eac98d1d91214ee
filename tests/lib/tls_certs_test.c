/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/tls/certs.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "lib/base/mem.h"
#include "tests/test.h"

static const char *const names[] = {"*.digits.default.svc", "localhost", "127.0.0.1"};
enum { FROM = 1700000000, TO = FROM + 3600 };

static X509 *read_pem(const char *text)
{
	BIO *b = BIO_new_mem_buf(text, -1);
	X509 *x = PEM_read_bio_X509(b, NULL, NULL, NULL);

	BIO_free(b);
	assert_non_null(x);
	return x;
}

/* Verifies `crt` with the trusted CA `ca` at time `when`. */
static int verify(const char *ca, const char *crt, time_t when)
{
	X509_STORE *store = X509_STORE_new();
	X509_STORE_CTX *ctx = X509_STORE_CTX_new();
	X509 *root = read_pem(ca), *leaf = read_pem(crt);
	int code;

	X509_STORE_add_cert(store, root);
	X509_STORE_CTX_init(ctx, store, leaf, NULL);
	X509_STORE_CTX_set_time(ctx, 0, when);
	X509_VERIFY_PARAM_set_purpose(X509_STORE_CTX_get0_param(ctx), X509_PURPOSE_SSL_CLIENT);
	X509_verify_cert(ctx);
	code = X509_STORE_CTX_get_error(ctx);
	X509_STORE_CTX_free(ctx);
	X509_STORE_free(store);
	X509_free(root);
	X509_free(leaf);
	return code;
}

static void certificate__verified_with_its_ca_within_its_validity__is_valid(void **state)
{
	struct mu_certs c, other;
	struct mu_err err;

	assert_ok(mu_certs_make(&c, names, 3, FROM, TO, &err), &err);
	assert_ok(mu_certs_make(&other, names, 3, FROM, TO, &err), &err);
	assert_int_equal(verify(c.ca, c.crt, FROM + 60), X509_V_OK);
	assert_int_equal(verify(c.ca, c.crt, TO + 60), X509_V_ERR_CERT_HAS_EXPIRED);
	assert_int_equal(verify(c.ca, c.crt, FROM - 60), X509_V_ERR_CERT_NOT_YET_VALID);
	assert_int_not_equal(verify(other.ca, c.crt, FROM + 60), X509_V_OK);
	mu_certs_fini(&c);
	mu_certs_fini(&other);
}

static void certificate__compared_with_names__matches_only_its_own(void **state)
{
	struct mu_certs c;
	struct mu_err err;
	X509 *x;

	assert_ok(mu_certs_make(&c, names, 3, FROM, TO, &err), &err);
	x = read_pem(c.crt);
	assert_int_equal(X509_check_host(x, "digits-ps-0.digits.default.svc", 0, 0, NULL), 1);
	assert_int_equal(X509_check_host(x, "digits-ps-0.other.default.svc", 0, 0, NULL), 0);
	assert_int_equal(X509_check_ip_asc(x, "127.0.0.1", 0), 1);
	assert_int_equal(X509_check_ca(x), 0);
	X509_free(x);
	mu_certs_fini(&c);
}

static void certificate_name__that_is_malformed__is_invalid(void **state)
{
	static const char *const bad[] = {"a,DNS:b", "", "a b", "x:y", "a\nb", "${HOME}"};
	struct mu_certs c;
	struct mu_err err;

	for (unsigned i = 0; i < MU_COUNT(bad); i++)
		assert_fails(mu_certs_make(&c, &bad[i], 1, FROM, TO, &err), &err,
			     MU_INVALID_ARGUMENT, "not a valid name for a certificate");
	assert_fails(mu_certs_make(&c, bad, 0, FROM, TO, &err), &err, MU_INVALID_ARGUMENT,
		     "needs a name");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(certificate__verified_with_its_ca_within_its_validity__is_valid),
	    cmocka_unit_test(certificate__compared_with_names__matches_only_its_own),
	    cmocka_unit_test(certificate_name__that_is_malformed__is_invalid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
