/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/net/http_url.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <string.h>
#include <strings.h>

#include "lib/base/mem.h"

/* Returns a copy of a part; NULL if the URL does not have it. */
static char *part_of(CURLU *u, CURLUPart part, unsigned flags)
{
	char *text = NULL, *copy = NULL;

	if (curl_url_get(u, part, &text, flags) == CURLUE_OK)
		copy = mu_xstrdup(text);
	curl_free(text);
	return copy;
}

static bool has_part(CURLU *u, CURLUPart part)
{
	MU_AUTO_FREE char *text = part_of(u, part, 0);
	return text != NULL;
}

void mu_http_url_escape(struct mu_buf *b, const char *text)
{
	char *escaped = curl_easy_escape(NULL, text, 0);

	mu_buf_puts(b, escaped ? escaped : "");
	curl_free(escaped);
}

int mu_http_url_parse(struct mu_http_url *out, const char *url, struct mu_err *err)
{
	CURLU *u = curl_url();
	CURLUcode rc = u ? curl_url_set(u, CURLUPART_URL, url, 0) : CURLUE_OUT_OF_MEMORY;
	size_t n;

	if (rc != CURLUE_OK) {
		curl_url_cleanup(u);
		return mu_fail(err, MU_INVALID_ARGUMENT, "not a URL: %s", curl_url_strerror(rc));
	}
	*out = (struct mu_http_url){
	    .scheme = part_of(u, CURLUPART_SCHEME, 0),
	    .host = part_of(u, CURLUPART_HOST, 0),
	    .port = part_of(u, CURLUPART_PORT, CURLU_DEFAULT_PORT),
	    .path = part_of(u, CURLUPART_PATH, 0),
	    .has_login = has_part(u, CURLUPART_USER) || has_part(u, CURLUPART_PASSWORD),
	    .has_query = has_part(u, CURLUPART_QUERY) || has_part(u, CURLUPART_FRAGMENT)};
	curl_url_cleanup(u);
	for (n = strlen(out->path); n && out->path[n - 1] == '/';)
		out->path[--n] = 0;
	return 0;
}

void mu_http_url_fini(struct mu_http_url *u)
{
	free(u->scheme);
	free(u->host);
	free(u->port);
	free(u->path);
	*u = (struct mu_http_url){0};
}

bool mu_http_url_is_loopback(const struct mu_http_url *u)
{
	struct in_addr ipv4;

	if (inet_pton(AF_INET, u->host, &ipv4) == 1)
		return ntohl(ipv4.s_addr) >> 24 == 127;
	return strcasecmp(u->host, "localhost") == 0 || strcmp(u->host, "[::1]") == 0;
}
