/* SPDX-License-Identifier: Apache-2.0 */
/* A transfer runs on its caller's thread, which drives a multi handle of libcurl.  The multi handle
 * owns the connection.  At the end of the call, it returns to the client's list of idle
 * connections. The wait includes stop_event, so a stop ends all calls at once.
 */
#include "lib/net/http_client.h"

#include <curl/curl.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"

enum {
	CONNECT_TIMEOUT_MS = 10000,
	KEEP_IDLE_S = 30,
	KEEP_INTERVAL_S = 10,
	KEEP_PROBES = 4,
	UNACKNOWLEDGED_MAX_MS = 30000, /* after this time, the connection and all its calls fail */
	CA_CACHE_S = 60,               /* until a change of the CA file takes effect */
	POLL_MS = 60000,               /* libcurl's own timers shorten it */
	UPLOAD_BUFFER =
	    16 << 10, /* glibc consolidates its free lists when 64 KiB or more is freed */
};

/* A multi handle and its connection. */
struct connection {
	CURLM *multi;
	struct connection *next_idle;
};

struct mu_http_transfer {
	struct mu_http_client *client;
	struct connection *connection;
	CURL *easy;
	struct curl_slist *headers, *connect_to;
	char error_text[CURL_ERROR_SIZE];
	struct mu_http_response response;
	size_t body_max;
	bool stream, is_done;
	int rc; /* when done */
	struct mu_err err;
};

struct mu_http_client {
	pthread_mutex_t lock;
	struct connection *idle; /* guarded by the lock; the most recently used is first */
	_Atomic bool stopped;
	int stop_event; /* readable once stopped */
};

/* ---- callbacks of libcurl ---- */

static size_t on_body(char *data, size_t size, size_t count, void *transfer)
{
	struct mu_http_transfer *t = transfer;
	size_t n = size * count;

	if (!t->stream && t->response.body.len + n > t->body_max) {
		mu_fail(&t->err, MU_RESOURCE_EXHAUSTED, "the response has more than %zu bytes",
			t->body_max);
		return CURL_WRITEFUNC_ERROR;
	}
	mu_buf_put(&t->response.body, data, n);
	return n;
}

/* Opens a socket that child processes do not inherit, unlike the sockets of libcurl. */
static curl_socket_t open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *a)
{
	int fd = socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
	int timeout = UNACKNOWLEDGED_MAX_MS, probes = KEEP_PROBES;

	if (fd >= 0) {
		setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, sizeof(timeout));
		setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
	}
	return fd < 0 ? CURL_SOCKET_BAD : fd;
}

/* Sets the error of a transfer that failed in libcurl. */
static int error_of(struct mu_http_transfer *t, CURLcode code, struct mu_err *err)
{
	const char *text = *t->error_text ? t->error_text : curl_easy_strerror(code);
	curl_off_t connected_us = 0; /* 0: the request was not sent */
	long proxy_status = 0;

	if (err->code)
		return -(int)err->code;
	curl_easy_getinfo(t->easy, CURLINFO_HTTP_CONNECTCODE, &proxy_status);
	curl_easy_getinfo(t->easy, CURLINFO_PRETRANSFER_TIME_T, &connected_us);
	if (proxy_status == 407)
		return mu_fail(err, MU_UNAVAILABLE,
			       "the proxy does not accept the user and password of its address: "
			       "name it as http://USER:PASSWORD@HOST:PORT");
	if (proxy_status > 299)
		return mu_fail(err, MU_UNAVAILABLE,
			       "the proxy refuses to connect to the server (it answers %ld): allow "
			       "it there, or name the server in NO_PROXY",
			       proxy_status);
	switch (code) {
	case CURLE_OPERATION_TIMEDOUT:
		return mu_fail(err, connected_us ? MU_DEADLINE_EXCEEDED : MU_UNAVAILABLE, "%s",
			       text);
	case CURLE_PEER_FAILED_VERIFICATION:
		return mu_fail(err, MU_UNAVAILABLE, "the server's certificate is not accepted: %s",
			       text);
	case CURLE_URL_MALFORMAT:
	case CURLE_UNSUPPORTED_PROTOCOL:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CACERT_BADFILE:
		return mu_fail(err, MU_INVALID_ARGUMENT, "%s", text);
	case CURLE_OUT_OF_MEMORY:
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "%s", text);
	default:
		return mu_fail(err, MU_UNAVAILABLE, "%s", text);
	}
}

/* ---- client ---- */

static void init_libcurl(void)
{
	curl_global_init(CURL_GLOBAL_DEFAULT);
}

int mu_http_client_new(struct mu_http_client **out, struct mu_err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct mu_http_client *c;
	int stop_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	if (stop_event < 0)
		return mu_fail_errno(err, errno, "cannot start an HTTP client");
	pthread_once(&once, init_libcurl);
	c = MU_NEW(struct mu_http_client);
	pthread_mutex_init(&c->lock, NULL);
	c->stop_event = stop_event;
	*out = c;
	return 0;
}

/* Returns an idle connection, or a new one. */
static struct connection *connection_acquire(struct mu_http_client *c)
{
	struct connection *k;

	pthread_mutex_lock(&c->lock);
	if ((k = c->idle))
		c->idle = k->next_idle;
	pthread_mutex_unlock(&c->lock);
	if (k)
		return k;
	k = MU_NEW(struct connection);
	k->multi = curl_multi_init();
	if (k->multi)
		curl_multi_setopt(k->multi, CURLMOPT_MAXCONNECTS,
				  2L); /* one, and one of a one_shot call */
	return k;
}

static void connection_release(struct mu_http_client *c, struct connection *k)
{
	if (!k->multi) { /* no memory: a later call tries again */
		free(k);
		return;
	}
	pthread_mutex_lock(&c->lock);
	k->next_idle = c->idle;
	c->idle = k;
	pthread_mutex_unlock(&c->lock);
}

void mu_http_client_free(struct mu_http_client *c)
{
	struct connection *k;

	while ((k = c->idle)) {
		c->idle = k->next_idle;
		curl_multi_cleanup(k->multi);
		free(k);
	}
	close(c->stop_event);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

void mu_http_client_stop(struct mu_http_client *c)
{
	atomic_store(&c->stopped, true);
	eventfd_write(c->stop_event, 1);
}

bool mu_http_client_stopped(const struct mu_http_client *c)
{
	return atomic_load_explicit(&c->stopped, memory_order_relaxed);
}

bool mu_http_client_sleep(struct mu_http_client *c, double seconds)
{
	double deadline = mu_clock() + seconds;

	for (double remaining = seconds; remaining > 0 && !atomic_load(&c->stopped);
	     remaining = deadline - mu_clock()) {
		struct timespec t = {(time_t)remaining,
				     (long)((remaining - (double)(time_t)remaining) * 1e9)};
		struct pollfd p = {.fd = c->stop_event, .events = POLLIN};

		ppoll(&p, 1, &t, NULL);
	}
	return !atomic_load(&c->stopped);
}

/* ---- calls ---- */

static void set_blob(CURL *easy, CURLoption option, struct mu_span s)
{
	struct curl_blob blob = {(void *)s.data, s.len, CURL_BLOB_COPY};

	if (s.len)
		curl_easy_setopt(easy, option, &blob);
}

static void set_tls(CURL *easy, const struct mu_http_tls *tls)
{
	if (tls->insecure) {
		curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
		curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
	}
	if (tls->ca_file) {
		curl_easy_setopt(easy, CURLOPT_CAINFO, tls->ca_file);
		curl_easy_setopt(easy, CURLOPT_CA_CACHE_TIMEOUT, (long)CA_CACHE_S);
	} else {
		set_blob(easy, CURLOPT_CAINFO_BLOB, tls->ca);
	}
	set_blob(easy, CURLOPT_SSLCERT_BLOB, tls->cert);
	set_blob(easy, CURLOPT_SSLKEY_BLOB, tls->key);
	curl_easy_setopt(easy, CURLOPT_KEYPASSWD, ""); /* else OpenSSL asks the terminal */
}

static void set_connection_options(struct mu_http_transfer *t, const struct mu_http_call *call)
{
	CURL *easy = t->easy;

	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, (long)UPLOAD_BUFFER);
	curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L); /* do not wait for a slow resolver */
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, call->one_shot ? "http" : "http,https");
	/* HTTP/2, with all calls on one connection: 1.3 x the CPU time, 0.8 x the pods a second */
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, (long)KEEP_IDLE_S);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, (long)KEEP_INTERVAL_S);
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS,
			 (long)(call->timeout_s * 1000) + 1); /* 0 is no limit */
	if (call->one_shot) {
		curl_easy_setopt(easy, CURLOPT_PROXY, "");
		curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
		curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
		return;
	}
	curl_easy_setopt(easy, CURLOPT_HTTPPROXYTUNNEL, 1L);
	curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	if (call->proxy) {
		curl_easy_setopt(easy, CURLOPT_PROXY, call->proxy);
		curl_easy_setopt(easy, CURLOPT_NOPROXY, ""); /* the proxy is for this server */
	}
	if (call->connect_to) {
		MU_AUTO_FREE char *map = mu_xasprintf("::%s", call->connect_to);

		t->connect_to = curl_slist_append(NULL, map);
		curl_easy_setopt(easy, CURLOPT_CONNECT_TO, t->connect_to);
	}
	if (call->tls)
		set_tls(easy, call->tls);
}

static void set_request_options(struct mu_http_transfer *t, const struct mu_http_call *call)
{
	CURL *easy = t->easy;
	MU_AUTO_FREE char *lines = mu_xstrdup(call->headers ? call->headers : "");
	size_t n = strlen(lines);
	char *save = NULL;

	curl_easy_setopt(easy, CURLOPT_URL, call->url);
	curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
	if (strcmp(call->method, "GET") != 0)
		curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, call->method);
	if (call->body.len || strcmp(call->method, "POST") == 0) {
		curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body.len);
		curl_easy_setopt(easy, CURLOPT_POSTFIELDS, call->body.data ? call->body.data : "");
	}
	t->headers = curl_slist_append(NULL, "Expect:"); /* no wait for "100 Continue" */
	for (char *h = strtok_r(lines, "\r\n", &save); h; h = strtok_r(NULL, "\r\n", &save))
		t->headers = curl_slist_append(t->headers, h);
	explicit_bzero(lines, n); /* contains a token */
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, t->headers);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, t);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, t->error_text);
}

struct mu_http_transfer *mu_http_begin(struct mu_http_client *c, const struct mu_http_call *call)
{
	struct mu_http_transfer *t = MU_NEW(struct mu_http_transfer);

	t->client = c;
	t->stream = call->stream;
	t->body_max = call->body_max;
	t->connection = connection_acquire(c);
	t->easy = curl_easy_init();
	if (t->easy) {
		set_connection_options(t, call);
		set_request_options(t, call);
	}
	if (!t->easy || curl_multi_add_handle(t->connection->multi, t->easy) != CURLM_OK) {
		t->is_done = true;
		t->rc = mu_fail(&t->err, MU_RESOURCE_EXHAUSTED, "no memory for a call");
	}
	return t;
}

/* Records the result of a transfer that has ended. */
static void record_result(struct mu_http_transfer *t)
{
	curl_off_t retry_after = 0;
	struct CURLMsg *m;
	int n_queued;

	while ((m = curl_multi_info_read(t->connection->multi, &n_queued))) {
		if (m->msg != CURLMSG_DONE)
			continue;
		t->is_done = true;
		t->rc = m->data.result == CURLE_OK ? 0 : error_of(t, m->data.result, &t->err);
	}
	curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &t->response.status);
	curl_easy_getinfo(t->easy, CURLINFO_RETRY_AFTER, &retry_after);
	t->response.retry_after_s = (long)retry_after;
}

int mu_http_read(struct mu_http_transfer *t, struct mu_http_response *out, struct mu_err *err)
{
	struct mu_http_client *c = t->client;
	struct curl_waitfd stop = {.fd = c->stop_event, .events = CURL_WAIT_POLLIN};
	struct mu_buf spare = out->body;
	bool has_piece = false;
	int running;

	while (!t->is_done && !has_piece) {
		if (atomic_load(&c->stopped))
			return mu_fail(err, MU_CANCELLED, "stopped");
		curl_multi_perform(t->connection->multi, &running);
		record_result(t);
		has_piece = t->stream && t->response.body.len;
		if (!t->is_done && !has_piece)
			curl_multi_poll(t->connection->multi, &stop, 1, POLL_MS, NULL);
	}
	has_piece = t->stream && t->response.body.len; /* the last piece may arrive with the end */
	if (!has_piece && t->rc < 0) {
		if (err)
			*err = t->err;
		return t->rc;
	}
	*out = t->response;
	mu_buf_clear(&spare); /* reuses its memory for the next piece */
	t->response.body = spare;
	return has_piece;
}

static void free_headers(struct curl_slist *headers)
{
	for (struct curl_slist *h = headers; h; h = h->next)
		explicit_bzero(h->data, strlen(h->data));
	curl_slist_free_all(headers);
}

void mu_http_end(struct mu_http_transfer *t)
{
	if (t->easy) {
		curl_multi_remove_handle(t->connection->multi, t->easy);
		curl_easy_cleanup(t->easy);
	}
	connection_release(t->client, t->connection);
	free_headers(t->headers);
	curl_slist_free_all(t->connect_to);
	mu_buf_fini(&t->response.body);
	free(t);
}

int mu_http_perform(struct mu_http_client *c, const struct mu_http_call *call,
		    struct mu_http_response *out, struct mu_err *err)
{
	struct mu_http_transfer *t = mu_http_begin(c, call);
	int rc = mu_http_read(t, out, err);

	mu_http_end(t);
	return rc;
}

int mu_http_fetch(struct mu_http_client *c, const char *url, const char *bearer,
		  const struct mu_span *post, double timeout_s, size_t body_max, struct mu_buf *out,
		  struct mu_err *err)
{
	MU_AUTO_FREE char *headers =
	    bearer && *bearer ? mu_xasprintf("Authorization: Bearer %s\r\n", bearer) : NULL;
	struct mu_http_call call = {.method = post ? "POST" : "GET",
				    .url = url,
				    .headers = headers,
				    .body = post ? *post : (struct mu_span){0},
				    .timeout_s = timeout_s,
				    .body_max = body_max,
				    .one_shot = true};
	struct mu_http_response response = {0};
	enum mu_code code = MU_UNAVAILABLE;
	struct mu_err call_err = {0};
	int rc = mu_http_perform(c, &call, &response, &call_err);

	if (rc == 0 && (response.status < 200 || response.status > 299)) {
		code = response.status == 401   ? MU_UNAUTHENTICATED
		       : response.status == 403 ? MU_PERMISSION_DENIED
						: MU_UNAVAILABLE;
		rc = mu_fail(&call_err, code, "HTTP status %ld", response.status);
	}
	if (rc < 0) {
		mu_buf_fini(&response.body);
		return mu_fail(err, code, "%s: %.300s", url, call_err.msg);
	}
	mu_buf_fini(out);
	*out = response.body;
	return 0;
}
