/* SPDX-License-Identifier: Apache-2.0 */
/* The Secret of a job in the simulated cluster. A kubelet updates the mounted files within
 * KUBELET_S. So while pods live, a new certificate may only appear when its CA has been in ca.crt
 * for longer than that. */
#include <openssl/evp.h>

#include "tests/fake/sim.h"

enum { KUBELET_S = 150, SEEN_CAS = 64 };

static unsigned last_ca;

int sim_certs(struct mu_certs *out, const char *const *names, unsigned n_names, int64_t from,
	      int64_t to, struct mu_err *err)
{
	unsigned n = ++last_ca;

	out->ca = mu_xasprintf("-----BEGIN CERTIFICATE-----CA %u;\n", n);
	out->crt = mu_xasprintf("CA %u;", n); /* names its CA */
	out->key = mu_xasprintf("the key of %u", n);
	return 0;
}

static char *decoded(const cJSON *secret, const char *key)
{
	const char *text =
	    cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(sim_at(secret, "data"), key));
	size_t n = text ? strlen(text) : 0;
	char *out = mu_xmalloc(n + 1);
	int got =
	    n ? EVP_DecodeBlock((unsigned char *)out, (const unsigned char *)text, (int)n) : 0;

	out[got > 0 ? got : 0] = 0; /* padding decodes to zeros, which also end the string */
	return out;
}

static bool has_pod(const struct sim *s)
{
	for (int i = 0; i < s->n_objects; i++)
		if (s->objects[i].kind == SIM_POD && s->objects[i].stage != STAGE_OVER &&
		    !strstr(s->objects[i].path, "/foreign"))
			return true;
	return false;
}

/* Moves stringData into data, as the API server does. */
void sim_encode_secret(cJSON *secret)
{
	cJSON *text, *data = cJSON_GetObjectItemCaseSensitive(secret, "data");

	if (!data)
		data = cJSON_AddObjectToObject(secret, "data");
	cJSON_ArrayForEach(text, sim_at(secret, "stringData"))
	{
		size_t n = strlen(text->valuestring);
		MU_AUTO_FREE char *coded = mu_xcalloc(4 * ((n + 2) / 3) + 1, 1);

		EVP_EncodeBlock((unsigned char *)coded, (unsigned char *)text->valuestring, (int)n);
		cJSON_DeleteItemFromObject(data, text->string);
		cJSON_AddStringToObject(data, text->string, coded);
	}
	cJSON_DeleteItemFromObject(secret, "stringData");
}

void sim_check_secret(struct sim *s, const cJSON *was, const cJSON *is)
{
	MU_AUTO_FREE char *old_crt = decoded(was, "tls.crt"), *old_ca = decoded(was, "ca.crt");
	MU_AUTO_FREE char *new_crt = decoded(is, "tls.crt"), *new_ca = decoded(is, "ca.crt");
	MU_AUTO_FREE char *key = decoded(is, "tls.key");
	bool changes = strcmp(old_crt, new_crt) != 0;

	if (!strstr(key, new_crt + strlen("CA ")) &&
	    strncmp(key + strlen("the key of "), new_crt + strlen("CA "),
		    strcspn(new_crt + 3, ";")))
		sim_violation(s, "%s goes with %s", new_crt, key);
	s->switches += changes && has_pod(s);
	if (!has_pod(s) || s->in_flight_call) {
		if (!s->in_flight_call ||
		    strcmp(old_ca, new_ca) != 0) /* otherwise the call only read */
			s->ca_since = s->now;
		return;
	}
	if (!strstr(new_ca, new_crt) || !strstr(new_ca, old_crt))
		sim_violation(s, "%s and %s are in use, and not both in: %s", old_crt, new_crt,
			      new_ca);
	if (changes && (!strstr(old_ca, new_crt) || s->now < s->ca_since + KUBELET_S))
		sim_violation(s, "%s is used before all know its CA", new_crt);
	if (strcmp(old_ca, new_ca) != 0)
		s->ca_since = s->now;
}
