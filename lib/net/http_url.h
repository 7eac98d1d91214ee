/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a URL, as libcurl reads it. */
#ifndef MU_NET_HTTP_URL_H
#define MU_NET_HTTP_URL_H

#include "lib/base/err.h"

struct mu_http_url {
	char *scheme, *host,
	    *port;  /* an IPv6 address has its brackets; the port may be the scheme's */
	char *path; /* without the slashes at its end */
	bool has_login, has_query; /* query or fragment */
};
/* The message of an error does not repeat the URL, which may hold a password. */
int mu_http_url_parse(struct mu_http_url *out, const char *url, struct mu_err *err);
void mu_http_url_fini(struct mu_http_url *u);
/* 127.0.0.0/8, ::1 or localhost. */
bool mu_http_url_is_loopback(const struct mu_http_url *u);

#endif
