/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a URL, parsed by libcurl. */
#ifndef MU_LIB_NET_HTTP_URL_H
#define MU_LIB_NET_HTTP_URL_H

#include "lib/base/buf.h"
#include "lib/base/err.h"

struct mu_http_url {
	char *scheme, *host,
	    *port;  /* an IPv6 address has brackets; the port may be the scheme's default */
	char *path; /* without trailing slashes */
	bool has_login, has_query; /* query or fragment */
};
/* The error message does not contain the URL, which may contain a password. */
int mu_http_url_parse(struct mu_http_url *out, const char *url, struct mu_err *err);
void mu_http_url_fini(struct mu_http_url *u);
/* Appends text as a part of a query. */
void mu_http_url_escape(struct mu_buf *b, const char *text);
/* True for 127.0.0.0/8, ::1 and localhost. */
bool mu_http_url_is_loopback(const struct mu_http_url *u);

#endif
