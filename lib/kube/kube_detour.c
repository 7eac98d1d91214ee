/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/kube/kube_detour.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <pthread.h>
#include <strings.h>

enum { CA_AGE_S = 60, CONNECT_MS = 10000 };

/* What we use of libcurl, found by name. */
static struct {
	void *library;
	CURLcode (*global_init)(long flags);
	CURL *(*easy_init)(void);
	CURLcode (*easy_set)(CURL *, CURLoption, ...);
	CURLcode (*easy_perform)(CURL *);
	CURLcode (*easy_get)(CURL *, CURLINFO, ...);
	void (*easy_cleanup)(CURL *);
	const char *(*easy_strerror)(CURLcode);
	struct curl_slist *(*slist_append)(struct curl_slist *, const char *);
	void (*slist_free_all)(struct curl_slist *);
	bool ready;
} curl;

struct kube_detour {
	CURL *easy;
	const struct kube_address *to;
	struct curl_slist *connect_to;
	char errbuf[CURL_ERROR_SIZE];
};

/* One exchange while it goes on. */
struct passing {
	CURL *easy;
	struct kube_http *answer;
	const _Atomic bool *stopped;
	struct mu_err err;
};

static void load(void)
{
	static const struct {
		const char *name;
		void *at;
	} wanted[] = {
	    {"curl_global_init", &curl.global_init},      {"curl_easy_init", &curl.easy_init},
	    {"curl_easy_setopt", &curl.easy_set},         {"curl_easy_perform", &curl.easy_perform},
	    {"curl_easy_getinfo", &curl.easy_get},        {"curl_easy_cleanup", &curl.easy_cleanup},
	    {"curl_easy_strerror", &curl.easy_strerror},  {"curl_slist_append", &curl.slist_append},
	    {"curl_slist_free_all", &curl.slist_free_all}};
	bool all = true;

	curl.library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
	for (unsigned i = 0; curl.library && i < MU_COUNT(wanted); i++) {
		void *found = dlsym(curl.library, wanted[i].name);
		memcpy(wanted[i].at, &found, sizeof(found));
		all = all && found;
	}
	curl.ready = curl.library && all && curl.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
}

static size_t on_body(char *data, size_t size, size_t count, void *arg)
{
	struct passing *p = arg;

	if (!p->answer->status)
		curl.easy_get(p->easy, CURLINFO_RESPONSE_CODE, &p->answer->status);
	return p->answer->body(p->answer->arg, data, size * count, &p->err) < 0 ? 0 : size * count;
}

static size_t on_header(char *data, size_t size, size_t count, void *arg)
{
	struct passing *p = arg;
	size_t n = size * count;
	char line[64];

	if (n > 12 && n < sizeof(line) && strncasecmp(data, "retry-after:", 12) == 0) {
		memcpy(line, data, n);
		line[n] = 0;
		p->answer->retry_after = strtol(line + 12, NULL, 10);
	}
	return n;
}

static int on_progress(void *arg, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	return atomic_load(((struct passing *)arg)->stopped);
}

static void set_blob(CURL *easy, CURLoption option, const struct mu_buf *b)
{
	struct curl_blob blob = {b->data, b->len, CURL_BLOB_COPY};

	if (b->len)
		curl.easy_set(easy, option, &blob);
}

/* What stays with the connection. */
static void set_server(struct kube_detour *d, const struct kube_config *k, const char *proxy)
{
	MU_AUTO_FREE char *elsewhere = mu_xasprintf(
	    strchr(d->to->host, ':') ? "::[%s]:%s" : "::%s:%s", d->to->host, d->to->port);

	curl.easy_set(d->easy, CURLOPT_NOSIGNAL, 1L);
	curl.easy_set(d->easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl.easy_set(d->easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
	curl.easy_set(d->easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl.easy_set(d->easy, CURLOPT_ERRORBUFFER, d->errbuf);
	curl.easy_set(d->easy, CURLOPT_WRITEFUNCTION, on_body);
	curl.easy_set(d->easy, CURLOPT_HEADERFUNCTION, on_header);
	curl.easy_set(d->easy, CURLOPT_XFERINFOFUNCTION, on_progress);
	curl.easy_set(d->easy, CURLOPT_NOPROGRESS, 0L);
	curl.easy_set(d->easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
	curl.easy_set(d->easy, CURLOPT_PROXY, proxy);
	if (k->ca_file) { /* by name, so that new connections see a renewed file */
		curl.easy_set(d->easy, CURLOPT_CAINFO, k->ca_file);
		curl.easy_set(d->easy, CURLOPT_CA_CACHE_TIMEOUT, (long)CA_AGE_S);
	} else {
		set_blob(d->easy, CURLOPT_CAINFO_BLOB, &k->ca);
	}
	if (k->insecure) {
		curl.easy_set(d->easy, CURLOPT_SSL_VERIFYPEER, 0L);
		curl.easy_set(d->easy, CURLOPT_SSL_VERIFYHOST, 0L);
	}
	if (strcmp(d->to->name, d->to->host) != 0) {
		d->connect_to = curl.slist_append(NULL, elsewhere);
		curl.easy_set(d->easy, CURLOPT_CONNECT_TO, d->connect_to);
	}
}

int kube_detour_new(struct kube_detour **out, const struct kube_config *config,
		    const struct kube_address *to, const char *proxy, struct mu_err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct kube_detour *d;

	pthread_once(&once, load);
	if (!curl.ready)
		return mu_fail(err, MU_FAILED_PRECONDITION,
			       "the API server is behind the proxy %s, and that takes libcurl: "
			       "install libcurl.so.4",
			       proxy);
	d = MU_NEW(struct kube_detour);
	d->to = to;
	d->easy = curl.easy_init();
	if (!d->easy) {
		free(d);
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for a connection");
	}
	set_server(d, config, proxy);
	*out = d;
	return 0;
}

void kube_detour_free(struct kube_detour *d)
{
	if (!d)
		return;
	curl.easy_cleanup(d->easy);
	curl.slist_free_all(d->connect_to);
	free(d);
}

/* The lines, one by one. */
static struct curl_slist *header_list(const char *lines)
{
	struct curl_slist *list = curl.slist_append(NULL, "Expect:");
	MU_AUTO_FREE char *copy = mu_xstrdup(lines ? lines : "");
	char *save = NULL;

	for (char *line = strtok_r(copy, "\r\n", &save); line; line = strtok_r(NULL, "\r\n", &save))
		list = curl.slist_append(list, line);
	explicit_bzero(copy, strlen(lines ? lines : ""));
	return list;
}

static void set_method(CURL *easy, const struct kube_http_request *rq)
{
	curl.easy_set(easy, CURLOPT_HTTPGET, 1L);
	curl.easy_set(easy, CURLOPT_CUSTOMREQUEST,
		      strcmp(rq->method, "GET") != 0 ? rq->method : NULL);
	if (rq->has_body) {
		curl.easy_set(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)rq->body.len);
		curl.easy_set(easy, CURLOPT_POSTFIELDS, rq->body.data ? rq->body.data : "");
	}
}

int kube_detour_call(struct kube_detour *d, const struct kube_detour_call *call,
		     struct kube_http *answer, struct mu_err *err)
{
	struct passing p = {.easy = d->easy, .answer = answer, .stopped = call->stopped};
	struct curl_slist *headers = header_list(call->request->headers);
	const char *colon = strchr(d->to->name, ':') ? "[" : "";
	MU_AUTO_FREE char *url =
	    mu_xasprintf("%s://%s%s%s:%s%s", d->to->tls ? "https" : "http", colon, d->to->name,
			 *colon ? "]" : "", d->to->port, call->request->path);
	CURLcode rc;

	curl.easy_set(d->easy, CURLOPT_URL, url);
	curl.easy_set(d->easy, CURLOPT_WRITEDATA, &p);
	curl.easy_set(d->easy, CURLOPT_HEADERDATA, &p);
	curl.easy_set(d->easy, CURLOPT_XFERINFODATA, &p);
	curl.easy_set(d->easy, CURLOPT_TIMEOUT_MS, (long)(call->patience * 1000));
	set_method(d->easy, call->request);
	set_blob(d->easy, CURLOPT_SSLCERT_BLOB, call->cert);
	set_blob(d->easy, CURLOPT_SSLKEY_BLOB, call->key);
	curl.easy_set(d->easy, CURLOPT_HTTPHEADER, headers);
	d->errbuf[0] = 0;
	rc = curl.easy_perform(d->easy);
	curl.easy_get(d->easy, CURLINFO_RESPONSE_CODE, &answer->status);
	curl.easy_set(d->easy, CURLOPT_HTTPHEADER, NULL);
	curl.slist_free_all(headers);
	if (p.err.code)
		return mu_fail(err, p.err.code, "%s", p.err.msg);
	if (rc == CURLE_OK)
		return 0;
	return mu_fail(err, rc == CURLE_OPERATION_TIMEDOUT ? MU_DEADLINE_EXCEEDED : MU_UNAVAILABLE,
		       "%s", d->errbuf[0] ? d->errbuf : curl.easy_strerror(rc));
}
