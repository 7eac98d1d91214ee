/* SPDX-License-Identifier: Apache-2.0 */
/* Threads: the calling thread makes the easy handle and frees it; in between only the I/O thread
 * touches it.  A transfer that needs the I/O thread (to start, to resume, to be cancelled) is put
 * on the client's list `pending`; the client's lock guards that list and the state of all
 * transfers.  The I/O thread never runs code of its callers, so a slow reader of a stream does not
 * delay other calls: the stream is paused when STREAM_BUFFER_MAX bytes are unread.
 */
#include "lib/net/http_client.h"

#include <curl/curl.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
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
	UNACKNOWLEDGED_MAX_MS = 30000, /* then the connection is dead, and all calls on it fail */
	CA_CACHE_S = 60,               /* until a changed file of authorities is noticed */
	STREAM_BUFFER_MAX = 1 << 20,
	IDLE_CONNECTIONS_MAX = 64, /* libcurl's default shrinks with the number of calls */
	POLL_MS = 60000,           /* libcurl's own timers shorten it */
	UPLOAD_BUFFER = 16 << 10,  /* glibc merges all freed blocks after a free of 64 KiB */
};

enum transfer_state { TRANSFER_NEW, TRANSFER_ACTIVE, TRANSFER_DONE };

struct mu_http_transfer {
	struct mu_http_client *client;
	CURL *easy;
	struct curl_slist *headers, *connect_to;
	char error_text[CURL_ERROR_SIZE];
	struct mu_http_response response;
	size_t body_max;
	bool stream;
	/* Guarded by the client's lock. */
	pthread_cond_t changed;
	enum transfer_state state;
	bool is_pending, is_waiting, is_paused, is_cancelled;
	struct mu_http_transfer *next_pending, *next_active, **active_link;
	int rc; /* when done */
	struct mu_err err;
};

struct mu_http_client {
	CURLM *multi;
	pthread_t thread;
	pthread_mutex_t lock;
	struct mu_http_transfer *pending, **pending_end, *active;
	bool is_polling, is_closing;
	_Atomic bool stopped;
	int stop_event; /* readable once stopped */
};

/* ---- callbacks, on the I/O thread ---- */

static size_t on_body(char *data, size_t size, size_t count, void *transfer)
{
	struct mu_http_transfer *t = transfer;
	struct mu_http_client *c = t->client;
	size_t n = size * count;
	bool pause;

	if (!t->stream && t->response.body.len + n > t->body_max) {
		mu_fail(&t->err, MU_RESOURCE_EXHAUSTED, "a response of more than %zu bytes",
			t->body_max);
		return CURL_WRITEFUNC_ERROR;
	}
	if (!t->stream) {
		mu_buf_put(&t->response.body, data, n);
		return n;
	}
	pthread_mutex_lock(&c->lock);
	curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &t->response.status);
	pause = t->response.body.len >= STREAM_BUFFER_MAX;
	t->is_paused = pause;
	if (!pause)
		mu_buf_put(&t->response.body, data, n);
	if (t->is_waiting)
		pthread_cond_signal(&t->changed);
	pthread_mutex_unlock(&c->lock);
	return pause ? CURL_WRITEFUNC_PAUSE : n;
}

/* A socket that child processes do not inherit (libcurl's own are inherited). */
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

/* ---- the I/O thread ---- */

/* The error of a transfer that failed in libcurl. */
static int error_of(struct mu_http_transfer *t, CURLcode code, struct mu_err *err)
{
	const char *text = *t->error_text ? t->error_text : curl_easy_strerror(code);
	curl_off_t sent = 0;
	long proxy_status = 0;

	if (err->code)
		return -(int)err->code;
	curl_easy_getinfo(t->easy, CURLINFO_HTTP_CONNECTCODE, &proxy_status);
	curl_easy_getinfo(t->easy, CURLINFO_PRETRANSFER_TIME_T, &sent);
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
		return mu_fail(err, sent ? MU_DEADLINE_EXCEEDED : MU_UNAVAILABLE, "%s", text);
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

/* Gives the transfer back to its caller.  The lock is held. */
static void transfer_done(struct mu_http_transfer *t, int rc)
{
	t->rc = rc;
	t->state = TRANSFER_DONE;
	pthread_cond_signal(&t->changed);
}

/* The lock is held. */
static void transfer_start(struct mu_http_client *c, struct mu_http_transfer *t)
{
	if (curl_multi_add_handle(c->multi, t->easy) != CURLM_OK) {
		transfer_done(t,
			      mu_fail(&t->err, MU_INTERNAL, "libcurl cannot start the transfer"));
		return;
	}
	t->state = TRANSFER_ACTIVE;
	t->next_active = c->active;
	t->active_link = &c->active;
	if (c->active)
		c->active->active_link = &t->next_active;
	c->active = t;
}

/* Takes an active transfer from libcurl. */
static void transfer_finish(struct mu_http_client *c, struct mu_http_transfer *t, int rc)
{
	curl_off_t retry_after = 0;
	long status = 0;

	curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(t->easy, CURLINFO_RETRY_AFTER, &retry_after);
	curl_multi_remove_handle(c->multi, t->easy);
	pthread_mutex_lock(&c->lock);
	t->response.status = status;
	t->response.retry_after_s = (long)retry_after;
	*t->active_link = t->next_active;
	if (t->next_active)
		t->next_active->active_link = t->active_link;
	transfer_done(t, rc);
	pthread_mutex_unlock(&c->lock);
}

static int cancelled(struct mu_http_transfer *t)
{
	return mu_fail(&t->err, MU_CANCELLED, "stopped");
}

/* Starts, resumes or cancels the transfers on the list `pending`. */
static void handle_pending(struct mu_http_client *c)
{
	struct mu_http_transfer *t;

	pthread_mutex_lock(&c->lock);
	while ((t = c->pending)) {
		bool resume = t->is_paused;

		c->pending = t->next_pending;
		if (!c->pending)
			c->pending_end = &c->pending;
		t->is_pending = false;
		t->is_paused = false;
		pthread_cond_signal(&t->changed); /* mu_http_end waits for it */
		if (t->state == TRANSFER_NEW && (t->is_cancelled || atomic_load(&c->stopped)))
			transfer_done(t, cancelled(t));
		else if (t->state == TRANSFER_NEW)
			transfer_start(c, t);
		else if (t->state == TRANSFER_ACTIVE && (t->is_cancelled || resume)) {
			bool cancel = t->is_cancelled;

			pthread_mutex_unlock(&c->lock); /* libcurl may call on_body */
			if (cancel)
				transfer_finish(c, t, cancelled(t));
			else
				curl_easy_pause(t->easy, CURLPAUSE_CONT);
			pthread_mutex_lock(&c->lock);
		}
	}
	pthread_mutex_unlock(&c->lock);
}

static void finish_completed(struct mu_http_client *c)
{
	struct CURLMsg *m;
	int left;

	while ((m = curl_multi_info_read(c->multi, &left))) {
		struct mu_http_transfer *t = NULL;
		CURLcode code = m->data.result; /* gone when the handle is removed */

		if (m->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&t);
		transfer_finish(c, t, code == CURLE_OK ? 0 : error_of(t, code, &t->err));
	}
}

/* Waits for I/O unless a transfer is pending.  Returns false if the client is closed. */
static bool await_events(struct mu_http_client *c)
{
	bool closing, poll;

	pthread_mutex_lock(&c->lock);
	closing = c->is_closing;
	poll = !closing && !c->pending && !(atomic_load(&c->stopped) && c->active);
	c->is_polling = poll;
	pthread_mutex_unlock(&c->lock);
	if (!poll)
		return !closing;
	curl_multi_poll(c->multi, NULL, 0, POLL_MS, NULL);
	pthread_mutex_lock(&c->lock);
	c->is_polling = false;
	pthread_mutex_unlock(&c->lock);
	return true;
}

static void *io_thread(void *client)
{
	struct mu_http_client *c = client;
	int running;

	do {
		handle_pending(c);
		while (atomic_load(&c->stopped) && c->active)
			transfer_finish(c, c->active, cancelled(c->active));
		curl_multi_perform(c->multi, &running);
		finish_completed(c);
	} while (await_events(c));
	return NULL;
}

/* ---- the client ---- */

static void init_libcurl(void)
{
	curl_global_init(CURL_GLOBAL_DEFAULT);
}

int mu_http_client_new(struct mu_http_client **out, struct mu_err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct mu_http_client *c = MU_NEW(struct mu_http_client);
	sigset_t all, before;
	int rc;

	pthread_once(&once, init_libcurl);
	pthread_mutex_init(&c->lock, NULL);
	c->pending_end = &c->pending;
	c->multi = curl_multi_init();
	if (c->multi)
		curl_multi_setopt(c->multi, CURLMOPT_MAXCONNECTS, (long)IDLE_CONNECTIONS_MAX);
	c->stop_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = c->multi && c->stop_event >= 0 ? pthread_create(&c->thread, NULL, io_thread, c)
					    : ENOMEM;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!rc) {
		*out = c;
		return 0;
	}
	curl_multi_cleanup(c->multi);
	if (c->stop_event >= 0)
		close(c->stop_event);
	pthread_mutex_destroy(&c->lock);
	free(c);
	return mu_fail_errno(err, rc, "cannot start an HTTP client");
}

/* Interrupts the I/O thread's wait.  The lock is held. */
static void wake(struct mu_http_client *c)
{
	if (c->is_polling)
		curl_multi_wakeup(c->multi);
	c->is_polling = false;
}

void mu_http_client_free(struct mu_http_client *c)
{
	pthread_mutex_lock(&c->lock);
	c->is_closing = true;
	wake(c);
	pthread_mutex_unlock(&c->lock);
	pthread_join(c->thread, NULL);
	curl_multi_cleanup(c->multi);
	close(c->stop_event);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

void mu_http_client_stop(struct mu_http_client *c)
{
	pthread_mutex_lock(&c->lock);
	atomic_store(&c->stopped, true);
	wake(c);
	pthread_mutex_unlock(&c->lock);
	eventfd_write(c->stop_event, 1);
}

bool mu_http_client_stopped(const struct mu_http_client *c)
{
	return atomic_load_explicit(&c->stopped, memory_order_relaxed);
}

bool mu_http_client_sleep(struct mu_http_client *c, double seconds)
{
	double until = mu_clock() + seconds;

	for (double left = seconds; left > 0 && !atomic_load(&c->stopped);
	     left = until - mu_clock()) {
		struct timespec t = {(time_t)left, (long)((left - (double)(time_t)left) * 1e9)};
		struct pollfd p = {.fd = c->stop_event, .events = POLLIN};

		ppoll(&p, 1, &t, NULL);
	}
	return !atomic_load(&c->stopped);
}

/* ---- calls, on the caller's thread ---- */

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

static void set_connection(struct mu_http_transfer *t, const struct mu_http_call *call)
{
	CURL *easy = t->easy;

	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, (long)UPLOAD_BUFFER);
	curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L); /* do not wait for a slow resolver */
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, call->one_shot ? "http" : "http,https");
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
	curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, (long)KEEP_IDLE_S);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, (long)KEEP_INTERVAL_S);
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)(call->timeout_s * 1000) + 1);
	if (call->one_shot) {
		curl_easy_setopt(easy, CURLOPT_PROXY, "");
		curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
		curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
		return;
	}
	if (strncmp(call->url, "https:", 6) == 0) /* wait for a connection to multiplex on */
		curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 1L);
	curl_easy_setopt(easy, CURLOPT_HTTPPROXYTUNNEL, 1L);
	curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	if (call->proxy) {
		curl_easy_setopt(easy, CURLOPT_PROXY, call->proxy);
		curl_easy_setopt(easy, CURLOPT_NOPROXY, ""); /* it was named for this server */
	}
	if (call->connect_to) {
		MU_AUTO_FREE char *map = mu_xasprintf("::%s", call->connect_to);

		t->connect_to = curl_slist_append(NULL, map);
		curl_easy_setopt(easy, CURLOPT_CONNECT_TO, t->connect_to);
	}
	if (call->tls)
		set_tls(easy, call->tls);
}

static void set_request(struct mu_http_transfer *t, const struct mu_http_call *call)
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
	t->headers = curl_slist_append(NULL, "Expect:");
	for (char *h = strtok_r(lines, "\r\n", &save); h; h = strtok_r(NULL, "\r\n", &save))
		t->headers = curl_slist_append(t->headers, h);
	explicit_bzero(lines, n); /* it holds a token */
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, t->headers);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, t);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, t->error_text);
	curl_easy_setopt(easy, CURLOPT_PRIVATE, t);
}

/* Puts the transfer on the list `pending` and wakes the I/O thread.  The lock is held. */
static void make_pending(struct mu_http_transfer *t)
{
	struct mu_http_client *c = t->client;

	if (!t->is_pending) {
		t->is_pending = true;
		t->next_pending = NULL;
		*c->pending_end = t;
		c->pending_end = &t->next_pending;
	}
	wake(c);
}

struct mu_http_transfer *mu_http_begin(struct mu_http_client *c, const struct mu_http_call *call)
{
	struct mu_http_transfer *t = MU_NEW(struct mu_http_transfer);

	t->client = c;
	t->stream = call->stream;
	t->body_max = call->body_max;
	pthread_cond_init(&t->changed, NULL);
	t->easy = curl_easy_init();
	if (!t->easy) {
		t->state = TRANSFER_DONE;
		t->rc = mu_fail(&t->err, MU_RESOURCE_EXHAUSTED, "no memory for a call");
		return t;
	}
	set_connection(t, call);
	set_request(t, call);
	pthread_mutex_lock(&c->lock);
	make_pending(t);
	pthread_mutex_unlock(&c->lock);
	return t;
}

int mu_http_read(struct mu_http_transfer *t, struct mu_http_response *out, struct mu_err *err)
{
	struct mu_http_client *c = t->client;
	int rc;

	pthread_mutex_lock(&c->lock);
	t->is_waiting = true;
	while (t->state != TRANSFER_DONE && !(t->stream && t->response.body.len))
		pthread_cond_wait(&t->changed, &c->lock);
	t->is_waiting = false;
	rc = t->state != TRANSFER_DONE || (t->stream && t->response.body.len) ? 1 : t->rc;
	if (rc >= 0) {
		struct mu_buf read = out->body;

		*out = t->response;
		mu_buf_clear(&read); /* its memory takes the next piece */
		t->response.body = read;
	}
	if (t->is_paused && t->state == TRANSFER_ACTIVE)
		make_pending(t);
	pthread_mutex_unlock(&c->lock);
	if (rc < 0 && err)
		*err = t->err;
	return rc;
}

static void free_headers(struct curl_slist *headers)
{
	for (struct curl_slist *h = headers; h; h = h->next)
		explicit_bzero(h->data, strlen(h->data));
	curl_slist_free_all(headers);
}

void mu_http_end(struct mu_http_transfer *t)
{
	struct mu_http_client *c = t->client;

	pthread_mutex_lock(&c->lock);
	if (t->state != TRANSFER_DONE) {
		t->is_cancelled = true;
		make_pending(t);
	}
	while (t->state != TRANSFER_DONE || t->is_pending)
		pthread_cond_wait(&t->changed, &c->lock);
	pthread_mutex_unlock(&c->lock);
	curl_easy_cleanup(t->easy);
	free_headers(t->headers);
	curl_slist_free_all(t->connect_to);
	pthread_cond_destroy(&t->changed);
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
	struct mu_err why = {0};
	int rc = mu_http_perform(c, &call, &response, &why);

	if (rc == 0 && (response.status < 200 || response.status > 299)) {
		code = response.status == 401   ? MU_UNAUTHENTICATED
		       : response.status == 403 ? MU_PERMISSION_DENIED
						: MU_UNAVAILABLE;
		rc = mu_fail(&why, code, "HTTP status %ld", response.status);
	}
	if (rc < 0) {
		mu_buf_fini(&response.body);
		return mu_fail(err, code, "%s: %.300s", url, why.msg);
	}
	mu_buf_fini(out);
	*out = response.body;
	return 0;
}
