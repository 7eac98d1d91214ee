/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "lib/base/mem.h"
#include "lib/kube/kube_wire.h"

static char *piece(const char *from, const char *to)
{
	return mu_xasprintf("%.*s", (int)(to - from), from);
}

int kube_address_parse(struct kube_address *out, const char *server, const char *name,
		       struct mu_err *err)
{
	bool tls = server && strncmp(server, "https://", 8) == 0;
	const char *host, *end, *host_end, *port = NULL;

	if (!tls && !(server && strncmp(server, "http://", 7) == 0))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "the API server's address must start with https:// or http://, "
			       "not be '%s'",
			       server ? server : "");
	host = server + (tls ? 8 : 7);
	end = host + strcspn(host, "/?#");
	host_end = *host == '[' ? memchr(host, ']', (size_t)(end - host))
				: memchr(host, ':', (size_t)(end - host));
	if (*host == '[' && host_end)
		port = host_end[1] == ':' ? host_end + 2 : NULL;
	else if (host_end)
		port = host_end + 1;
	if (!host_end)
		host_end = end;
	if (host_end == host || (*host == '[' && *host_end != ']') || *end == '?' || *end == '#' ||
	    (port && (port == end || strspn(port, "0123456789") != (size_t)(end - port))) ||
	    strpbrk(server, " \r\n@"))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "'%.200s' is no address of an API server: https://HOST:PORT",
			       server);
	*out = (struct kube_address){.tls = tls};
	out->host = *host == '[' ? piece(host + 1, host_end) : piece(host, host_end);
	out->port = port ? piece(port, end) : mu_xstrdup(tls ? "443" : "80");
	out->prefix = mu_xstrdup(end);
	out->name = mu_xstrdup(name && *name ? name : out->host);
	out->in_header = piece(host, end);
	while (*out->prefix && out->prefix[strlen(out->prefix) - 1] == '/')
		out->prefix[strlen(out->prefix) - 1] = 0;
	return 0;
}

void kube_address_fini(struct kube_address *a)
{
	free(a->host);
	free(a->port);
	free(a->prefix);
	free(a->name);
	free(a->in_header);
	*a = (struct kube_address){0};
}
