/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/kube/kube_server.h"

#include <errno.h>
#include <stdio.h>
#include <strings.h>

#include "lib/net/http_url.h"

static void set_address(struct kube_server *s, const struct mu_http_url *url)
{
	const char *name = s->config->tls_server_name;

	if (name && *name) {
		s->origin = mu_xasprintf(strchr(name, ':') ? "%s://[%s]:%s%s" : "%s://%s:%s%s",
					 url->scheme, name, url->port, url->path);
		s->connect_to = mu_xasprintf("%s:%s", url->host, url->port);
		s->host_line = mu_xasprintf("Host: %s:%s\r\n", url->host, url->port);
	} else {
		s->origin =
		    mu_xasprintf("%s://%s:%s%s", url->scheme, url->host, url->port, url->path);
	}
}

/* Sets the kubeconfig's proxy-url.  The proxy resolves host names, as with kubectl. */
static int set_proxy(struct kube_server *s, const char *proxy, struct mu_err *err)
{
	static const char *const schemes[] = {"http", "https", "socks5", "socks5h", NULL};
	const char *socks5 = "socks5://";
	struct mu_http_url url = {0};
	bool is_valid = false;

	s->proxy = strncasecmp(proxy, socks5, strlen(socks5)) == 0
		       ? mu_xasprintf("socks5h://%s", proxy + strlen(socks5))
		   : strstr(proxy, "://") ? mu_xstrdup(proxy)
					  : mu_xasprintf("http://%s", proxy);
	if (mu_http_url_parse(&url, s->proxy, NULL) == 0)
		is_valid = mu_word_index(url.scheme, schemes) >= 0 && !*url.path && !url.has_query;
	mu_http_url_fini(&url);
	if (!is_valid)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "the kubeconfig's proxy-url cannot be read: name the proxy as "
			       "http://HOST:PORT, http://USER:PASSWORD@HOST:PORT, https://… or "
			       "socks5://…");
	return 0;
}

int kube_server_init(struct kube_server *s, const struct kube_config *config, struct mu_err *err)
{
	const char *server = config->server ? config->server : "";
	struct mu_http_url url;
	int rc;

	if (strncmp(server, "https://", 8) != 0 && strncmp(server, "http://", 7) != 0)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "the API server's address must start with https:// or http://, "
			       "not be '%s'",
			       server);
	rc = mu_http_url_parse(&url, server, NULL);
	if (rc == 0 && (url.has_login || url.has_query)) {
		mu_http_url_fini(&url);
		rc = -MU_INVALID_ARGUMENT;
	}
	if (rc < 0)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "'%.200s' is not the address of an API server: https://HOST:PORT",
			       server);
	*s = (struct kube_server){.config = config};
	set_address(s, &url);
	if (config->proxy_url && *config->proxy_url)
		rc = set_proxy(s, config->proxy_url, err);
	else if (mu_http_url_is_loopback(&url))
		s->proxy = mu_xstrdup("");
	mu_http_url_fini(&url);
	kube_identity_init(&s->identity, config);
	if (rc < 0)
		kube_server_fini(s);
	return rc;
}

void kube_server_fini(struct kube_server *s)
{
	kube_identity_fini(&s->identity);
	if (s->proxy)
		explicit_bzero(s->proxy, strlen(s->proxy));
	free(s->proxy);
	free(s->origin);
	free(s->connect_to);
	free(s->host_line);
}

int kube_server_begin(struct kube_server *s, struct mu_http_client *http, const char *path,
		      const char *content_type, const char *accept, bool token_rejected,
		      struct mu_http_call call, struct mu_http_transfer **out, struct mu_err *err)
{
	struct mu_http_tls tls = {.ca_file = s->config->ca_file,
				  .ca = mu_buf_span(&s->config->ca),
				  .insecure = s->config->insecure};
	MU_AUTO_FREE char *url = mu_xasprintf("%s%s", s->origin, path);
	MU_AUTO_BUF headers = {0};
	MU_AUTO_BUF cert = {0};
	MU_AUTO_BUF key = {0};
	int rc;

	mu_buf_printf(&headers, "User-Agent: %s/" MUSTER_VERSION "\r\nAccept: %s\r\n%s",
		      program_invocation_short_name, accept ? accept : "application/json",
		      s->host_line ? s->host_line : "");
	if (call.body.len || strcmp(call.method, "POST") == 0)
		mu_buf_printf(&headers, "Content-Type: %s\r\n",
			      content_type ? content_type : "application/json");
	rc = kube_identity_headers(&s->identity, token_rejected, &headers, err);
	if (rc == 0) {
		kube_identity_certificate(&s->identity, &cert, &key);
		tls.cert = mu_buf_span(&cert);
		tls.key = mu_buf_span(&key);
		call.url = url;
		call.headers = headers.data;
		call.tls = &tls;
		call.proxy = s->proxy;
		call.connect_to = s->connect_to;
		*out = mu_http_begin(http, &call);
	}
	explicit_bzero(headers.data, headers.len); /* contains a token */
	if (key.len)
		explicit_bzero(key.data, key.len);
	return rc;
}
