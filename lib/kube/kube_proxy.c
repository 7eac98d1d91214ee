/* SPDX-License-Identifier: Apache-2.0 */
/* The variables are spelt in capitals by some and not by others; small letters come first, and
 * HTTP_PROXY in capitals is not looked at, because a web server may have made it from a header. */
#include "lib/kube/kube_proxy.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

static const char *variable(const char *name, const char *in_capitals)
{
	const char *value = getenv(name);

	if ((!value || !*value) && in_capitals)
		value = getenv(in_capitals);
	return value && *value ? value : NULL;
}

/* 4 or 16 bytes; 0: it is a name. */
static size_t number_of(const char *host, unsigned char out[16])
{
	if (inet_pton(AF_INET, host, out) == 1)
		return 4;
	return inet_pton(AF_INET6, host, out) == 1 ? 16 : 0;
}

static bool is_loopback(const char *host)
{
	static const unsigned char six[16] = {[15] = 1};
	unsigned char n[16];
	size_t size = number_of(host, n);

	return size == 4 ? n[0] == 127
	       : size    ? memcmp(n, six, sizeof(six)) == 0
			 : strcasecmp(host, "localhost") == 0;
}

/* "10.0.0.0/8" */
static bool in_net(const char *host, char *net)
{
	char *slash = strchr(net, '/');
	unsigned char a[16], b[16];
	unsigned long bits;
	size_t size, n;
	char *end;

	if (!slash)
		return false;
	*slash = 0;
	size = number_of(host, a);
	n = number_of(net, b);
	*slash = '/';
	bits = strtoul(slash + 1, &end, 10);
	if (!size || size != n || *end || end == slash + 1 || bits > size * 8 ||
	    memcmp(a, b, bits / 8) != 0)
		return false;
	return bits % 8 == 0 || ((a[bits / 8] ^ b[bits / 8]) >> (8 - bits % 8)) == 0;
}

/* A name covers itself and what is below it. */
static bool covers(const char *pattern, const char *host)
{
	size_t p = strlen(pattern), h = strlen(host);

	if (*pattern == '*' && pattern[1] == '.')
		pattern++, p--;
	if (*pattern == '.')
		pattern++, p--;
	return p && p <= h && strcasecmp(host + h - p, pattern) == 0 &&
	       (p == h || host[h - p - 1] == '.');
}

bool kube_proxy_excluded(const char *list, const char *host)
{
	MU_AUTO_FREE char *copy = mu_xstrdup(list ? list : "");
	char *save = NULL;

	for (char *one = strtok_r(copy, ", ", &save); one; one = strtok_r(NULL, ", ", &save))
		if (strcmp(one, "*") == 0 || covers(one, host) || in_net(host, one))
			return true;
	return false;
}

const char *kube_proxy_for(const struct kube_config *k, const struct kube_address *to)
{
	const char *named;

	if (k->proxy_url && *k->proxy_url)
		return k->proxy_url;
	if (is_loopback(to->host) ||
	    kube_proxy_excluded(variable("no_proxy", "NO_PROXY"), to->host))
		return NULL;
	named = to->tls ? variable("https_proxy", "HTTPS_PROXY") : variable("http_proxy", NULL);
	return named ? named : variable("all_proxy", "ALL_PROXY");
}
