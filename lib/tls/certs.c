/* SPDX-License-Identifier: Apache-2.0 */
/* EC keys on P-256, which every TLS library supports and which sign in about 20 us.  The subject of
 * a CA has a random number.  So OpenSSL finds the issuer by name in a bundle of two CAs of a job.
 */
#include "lib/tls/certs.h"

#include <arpa/inet.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>

#include "lib/base/buf.h"

static int fail_openssl(struct mu_err *err, const char *operation)
{
	return mu_fail(err, MU_INTERNAL, "cannot make a certificate: %s failed", operation);
}

static X509 *new_certificate(EVP_PKEY *key, const char *name, int64_t from, int64_t to)
{
	unsigned char serial[16] = {0};
	X509 *x = X509_new();
	BIGNUM *number = NULL;
	bool ok = x && RAND_bytes(serial, sizeof(serial)) == 1;

	serial[0] = (unsigned char)((serial[0] & 0x7f) | 0x40); /* positive, with full length */
	number = ok ? BN_bin2bn(serial, sizeof(serial), NULL) : NULL;
	ok = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(x)) &&
	     X509_set_version(x, X509_VERSION_3) == 1 &&
	     ASN1_TIME_set(X509_getm_notBefore(x), (time_t)from) &&
	     ASN1_TIME_set(X509_getm_notAfter(x), (time_t)to) && X509_set_pubkey(x, key) == 1 &&
	     X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_UTF8,
					(const unsigned char *)name, -1, -1, 0) == 1;
	BN_free(number);
	if (ok)
		return x;
	X509_free(x);
	return NULL;
}

static bool add_extension(X509 *x, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX ctx;
	X509_EXTENSION *e;
	bool ok;

	X509V3_set_ctx(&ctx, issuer, x, NULL, NULL, 0);
	e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	ok = e && X509_add_ext(x, e, -1) == 1;
	X509_EXTENSION_free(e);
	return ok;
}

static bool is_address(const char *name)
{
	unsigned char address[16];

	return inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1;
}

/* The name becomes part of an OpenSSL extension string, so only host names and addresses are
 * allowed. */
static bool is_plain_name(const char *name)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789.-:*_";

	return *name && strlen(name) < 254 && strspn(name, plain) == strlen(name) &&
	       (is_address(name) || !strchr(name, ':'));
}

static int put_names(struct mu_buf *b, const char *const *names, unsigned n, struct mu_err *err)
{
	for (unsigned i = 0; i < n; i++) {
		if (!is_plain_name(names[i]))
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "'%.200s' is not a valid name for a certificate", names[i]);
		mu_buf_printf(b, "%s%s:%s", i ? "," : "", is_address(names[i]) ? "IP" : "DNS",
			      names[i]);
	}
	return n ? 0 : mu_fail(err, MU_INVALID_ARGUMENT, "a certificate needs a name");
}

static X509 *make_ca(EVP_PKEY *key, int64_t from, int64_t to)
{
	unsigned char random[6];
	char name[40];
	X509 *x;

	if (RAND_bytes(random, sizeof(random)) != 1)
		return NULL;
	snprintf(name, sizeof(name), "muster job CA %02x%02x%02x%02x%02x%02x", random[0], random[1],
		 random[2], random[3], random[4], random[5]);
	x = new_certificate(key, name, from, to);
	if (x && X509_set_issuer_name(x, X509_get_subject_name(x)) == 1 &&
	    add_extension(x, x, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
	    add_extension(x, x, NID_key_usage, "critical,keyCertSign") &&
	    add_extension(x, x, NID_subject_key_identifier, "hash") &&
	    X509_sign(x, key, EVP_sha256()))
		return x;
	X509_free(x);
	return NULL;
}

static X509 *make_leaf(EVP_PKEY *key, X509 *ca, EVP_PKEY *ca_key, const char *names, int64_t from,
		       int64_t to)
{
	X509 *x = new_certificate(key, "muster task", from, to);

	if (x && X509_set_issuer_name(x, X509_get_subject_name(ca)) == 1 &&
	    add_extension(x, ca, NID_basic_constraints, "critical,CA:FALSE") &&
	    add_extension(x, ca, NID_key_usage, "critical,digitalSignature") &&
	    add_extension(x, ca, NID_ext_key_usage, "serverAuth,clientAuth") &&
	    add_extension(x, ca, NID_authority_key_identifier, "keyid:always") &&
	    add_extension(x, ca, NID_subject_alt_name, names) && X509_sign(x, ca_key, EVP_sha256()))
		return x;
	X509_free(x);
	return NULL;
}

static char *certs_text_of(BIO *b)
{
	char *data = NULL;
	long n = BIO_get_mem_data(b, &data);

	return n > 0 ? mu_xstrndup(data, (size_t)n) : NULL;
}

static char *pem_of(X509 *x)
{
	BIO *b = BIO_new(BIO_s_mem());
	char *text = b && PEM_write_bio_X509(b, x) == 1 ? certs_text_of(b) : NULL;

	BIO_free(b);
	return text;
}

static char *pem_of_key(EVP_PKEY *key)
{
	BIO *b = BIO_new(BIO_s_secmem());
	char *text = b && PEM_write_bio_PKCS8PrivateKey(b, key, NULL, NULL, 0, NULL, NULL) == 1
			 ? certs_text_of(b)
			 : NULL;

	BIO_free(b);
	return text;
}

int mu_certs_make(struct mu_certs *out, const char *const *names, unsigned n_names, int64_t from,
		  int64_t to, struct mu_err *err)
{
	MU_AUTO_BUF list = {0};
	struct mu_certs certs = {0};
	EVP_PKEY *ca_key = NULL, *key = NULL;
	X509 *ca = NULL, *leaf = NULL;
	int rc = put_names(&list, names, n_names, err);

	if (rc)
		return rc;
	ca_key = EVP_EC_gen("P-256");
	key = EVP_EC_gen("P-256");
	ca = ca_key ? make_ca(ca_key, from, to) : NULL;
	leaf = ca && key ? make_leaf(key, ca, ca_key, list.data, from, to) : NULL;
	if (leaf)
		certs = (struct mu_certs){pem_of(ca), pem_of(leaf), pem_of_key(key)};
	EVP_PKEY_free(ca_key);
	EVP_PKEY_free(key);
	X509_free(ca);
	X509_free(leaf);
	if (!certs.ca || !certs.crt || !certs.key) {
		mu_certs_fini(&certs);
		return fail_openssl(err, leaf ? "writing" : ca ? "signing" : "a key");
	}
	*out = certs;
	return 0;
}

void mu_certs_fini(struct mu_certs *c)
{
	if (c->key)
		OPENSSL_cleanse(c->key, strlen(c->key));
	free(c->ca);
	free(c->crt);
	free(c->key);
	*c = (struct mu_certs){0};
}
