/* SPDX-License-Identifier: Apache-2.0 */
/* A call takes a connection that is kept alive from a pool, so that the number of connections is
 * the number of calls that ever ran at once, bounded by the threads.
 *
 * Stopping wakes every transfer's poll and every sleeper; nobody polls for the flag.
 * The token and the authorities are read again when they are a minute old, because a kubelet
 * renews a pod's token at 80 % of its life and the old file is gone by then.
 */
#include "operator/kube/kube_client.h"

#include <curl/curl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <strings.h>
#include <time.h>

#include "lib/base/log.h"

enum {
	POLL_MS = 60000,
	ANSWER_MAX = 64 << 20, /* a page of 500 objects of 100 KiB and some room */
	FETCH_MAX = 64 << 10,
	ERROR_BODY_MAX = 64 << 10,
	TOKEN_AGE_S = 60,
	IN_PLACE_TRIES = 4,
	RETRY_AFTER_MAX_S = 30,
	STATUS_MAX = 600,
	METHODS = 5,
};

static const char *const method_names[METHODS] = {"GET", "POST", "PATCH", "PUT", "DELETE"};

/* A connection that is kept alive lives in its multi handle, which can be woken from outside. */
struct conn {
	CURL *easy;
	CURLM *multi;
	struct conn *next; /* in the pool, or among those in use */
};

struct kube_client {
	struct kube_config config;
	char *host_in_url; /* what requests are addressed to; differs from the server's name with
			      tls-server-name */
	char *connect_to;
	pthread_mutex_t lock; /* all below */
	pthread_cond_t stopping;
	struct conn *pool, *used;
	char *token;
	time_t token_read;
	_Atomic bool stopped;
	uint32_t counts[METHODS][STATUS_MAX];
};

/* Where an answer goes while it arrives. */
struct sink {
	CURL *curl;
	struct mu_buf body;
	size_t limit;
	kube_chunk_fn *chunk;
	void *arg;
	long retry_after;
	struct mu_err err; /* what the sink refused */
	struct mu_err *chunk_err;
};

static size_t on_body(char *data, size_t size, size_t count, void *arg)
{
	struct sink *s = arg;
	size_t n = size * count;
	long status = 0;

	curl_easy_getinfo(s->curl, CURLINFO_RESPONSE_CODE, &status);
	if (s->chunk && status == 200)
		return s->chunk(s->arg, data, n, &s->err) < 0 ? 0 : n;
	if (s->body.len + n > s->limit) {
		mu_fail(&s->err, MU_RESOURCE_EXHAUSTED, "an answer of more than %zu bytes",
			s->limit);
		return 0;
	}
	mu_buf_put(&s->body, data, n);
	return n;
}

static size_t on_header(char *data, size_t size, size_t count, void *arg)
{
	struct sink *s = arg;
	size_t n = size * count;
	char line[64];

	if (n > 12 && n < sizeof(line) && strncasecmp(data, "retry-after:", 12) == 0) {
		memcpy(line, data, n);
		line[n] = 0;
		s->retry_after = strtol(line + 12, NULL, 10);
	}
	return n;
}

/* "https://host:port/prefix" as seen by the certificate's name, and where to connect instead. */
static void set_server_name(struct kube_client *c)
{
	const char *name = c->config.tls_server_name, *server = c->config.server;
	const char *host = strstr(server, "://"), *end, *colon;

	c->host_in_url = mu_xstrdup(server);
	if (!name || !*name || !host)
		return;
	host += 3;
	end = host + strcspn(host, "/");
	colon = *host == '[' ? strchr(host, ']') : host;
	colon = colon ? strchr(colon, ':') : NULL;
	if (!colon || colon > end)
		colon = NULL;
	free(c->host_in_url);
	c->host_in_url = colon ? mu_xasprintf("https://%s%s", name, colon)
			       : mu_xasprintf("https://%s%s", name, end);
	c->connect_to = mu_xasprintf("::%.*s%s", (int)(end - host), host, colon ? "" : ":443");
}

static void init_condition(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

static void conn_free(struct conn *conn)
{
	if (conn->easy)
		curl_easy_cleanup(conn->easy);
	if (conn->multi)
		curl_multi_cleanup(conn->multi);
	free(conn);
}

int kube_client_new(struct kube_client **out, struct kube_config *config, struct mu_err *err)
{
	struct kube_client *c;

	if (!config->server || (strncmp(config->server, "https://", 8) != 0 &&
				strncmp(config->server, "http://", 7) != 0))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "the API server's address must start with https:// or http://, "
			       "not be '%s'",
			       config->server ? config->server : "");
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return mu_fail(err, MU_INTERNAL, "libcurl does not start");
	c = MU_NEW(struct kube_client);
	c->config = *config;
	memset(config, 0, sizeof(*config));
	pthread_mutex_init(&c->lock, NULL);
	init_condition(&c->stopping);
	set_server_name(c);
	*out = c;
	return 0;
}

void kube_client_free(struct kube_client *c)
{
	while (c->pool) {
		struct conn *conn = c->pool;
		c->pool = conn->next;
		conn_free(conn);
	}
	if (c->token)
		explicit_bzero(c->token, strlen(c->token));
	free(c->token);
	free(c->host_in_url);
	free(c->connect_to);
	kube_config_fini(&c->config);
	pthread_cond_destroy(&c->stopping);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

void kube_client_stop(struct kube_client *c)
{
	pthread_mutex_lock(&c->lock);
	atomic_store(&c->stopped, true);
	for (struct conn *conn = c->used; conn; conn = conn->next)
		curl_multi_wakeup(conn->multi);
	pthread_cond_broadcast(&c->stopping);
	pthread_mutex_unlock(&c->lock);
}

bool kube_client_sleep(struct kube_client *c, double seconds)
{
	struct timespec t;
	double until;

	clock_gettime(CLOCK_MONOTONIC, &t);
	until = (double)t.tv_sec + (double)t.tv_nsec / 1e9 + (seconds > 0 ? seconds : 0);
	t.tv_sec = (time_t)until;
	t.tv_nsec = (long)((until - (double)t.tv_sec) * 1e9);
	pthread_mutex_lock(&c->lock);
	while (!c->stopped && pthread_cond_timedwait(&c->stopping, &c->lock, &t) == 0)
		;
	pthread_mutex_unlock(&c->lock);
	return !kube_client_stopped(c);
}

bool kube_client_stopped(const struct kube_client *c)
{
	return atomic_load_explicit(&c->stopped, memory_order_relaxed);
}

/* The bearer token now, a copy, or NULL. */
static char *current_token(struct kube_client *c, bool refresh)
{
	struct mu_err err = {0};
	MU_AUTO_BUF file = {0};
	char *copy;

	if (c->config.token && *c->config.token)
		return mu_xstrdup(c->config.token);
	if (!c->config.token_file)
		return NULL;
	pthread_mutex_lock(&c->lock);
	if (!c->token || refresh || time(NULL) - c->token_read >= TOKEN_AGE_S) {
		if (mu_buf_read_file(&file, c->config.token_file, 1 << 20, &err) == 0) {
			while (file.len && strchr("\r\n \t", file.data[file.len - 1]))
				file.data[--file.len] = 0;
			free(c->token);
			c->token = mu_buf_take(&file);
		} else if (!c->token) {
			mu_warn("kube", "token file: %s", err.msg);
		}
		c->token_read = time(NULL);
	}
	copy = c->token ? mu_xstrdup(c->token) : NULL;
	pthread_mutex_unlock(&c->lock);
	return copy;
}

/* NULL when there is no memory or the client was stopped. */
static struct conn *borrow(struct kube_client *c)
{
	struct conn *conn;

	pthread_mutex_lock(&c->lock);
	conn = c->stopped ? NULL : c->pool;
	if (conn) {
		c->pool = conn->next;
	} else if (!c->stopped) {
		conn = MU_NEW(struct conn);
		conn->easy = curl_easy_init();
		conn->multi = curl_multi_init();
		if (!conn->easy || !conn->multi) {
			conn_free(conn);
			conn = NULL;
		}
	}
	if (conn) {
		conn->next = c->used;
		c->used = conn;
	}
	pthread_mutex_unlock(&c->lock);
	return conn;
}

static void give_back(struct kube_client *c, struct conn *conn)
{
	struct conn **at = &c->used;

	curl_easy_reset(conn->easy); /* options go, the connection stays */
	pthread_mutex_lock(&c->lock);
	while (*at != conn)
		at = &(*at)->next;
	*at = conn->next;
	conn->next = c->pool;
	c->pool = conn;
	pthread_mutex_unlock(&c->lock);
}

/* curl_easy_perform that kube_client_stop can end. */
static CURLcode perform(struct kube_client *c, struct conn *conn)
{
	CURLcode result = CURLE_ABORTED_BY_CALLBACK;
	int running = 1, left;
	CURLMsg *done;

	if (curl_multi_add_handle(conn->multi, conn->easy) != CURLM_OK)
		return CURLE_OUT_OF_MEMORY;
	while (running && !kube_client_stopped(c)) {
		if (curl_multi_perform(conn->multi, &running) != CURLM_OK)
			break;
		if (running && curl_multi_poll(conn->multi, NULL, 0, POLL_MS, NULL) != CURLM_OK)
			break;
	}
	while ((done = curl_multi_info_read(conn->multi, &left)))
		if (done->msg == CURLMSG_DONE)
			result = done->data.result;
	curl_multi_remove_handle(conn->multi, conn->easy);
	return result;
}

static void set_blob(CURL *curl, CURLoption option, const struct mu_buf *b)
{
	struct curl_blob blob = {b->data, b->len, CURL_BLOB_COPY};
	if (b->len)
		curl_easy_setopt(curl, option, &blob);
}

static void set_identity(struct kube_client *c, CURL *curl, struct curl_slist **connect_to)
{
	const struct kube_config *k = &c->config;

	if (k->ca_file) { /* by name, so that new connections see a renewed file */
		curl_easy_setopt(curl, CURLOPT_CAINFO, k->ca_file);
		curl_easy_setopt(curl, CURLOPT_CA_CACHE_TIMEOUT, (long)TOKEN_AGE_S);
	} else
		set_blob(curl, CURLOPT_CAINFO_BLOB, &k->ca);
	set_blob(curl, CURLOPT_SSLCERT_BLOB, &k->cert);
	set_blob(curl, CURLOPT_SSLKEY_BLOB, &k->key);
	if (k->insecure) {
		curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 0L);
		curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
	}
	if (k->username) {
		curl_easy_setopt(curl, CURLOPT_HTTPAUTH, CURLAUTH_BASIC);
		curl_easy_setopt(curl, CURLOPT_USERNAME, k->username);
		curl_easy_setopt(curl, CURLOPT_PASSWORD, k->password ? k->password : "");
	}
	if (k->proxy_url)
		curl_easy_setopt(curl, CURLOPT_PROXY, k->proxy_url);
	if (c->connect_to) {
		*connect_to = curl_slist_append(NULL, c->connect_to);
		curl_easy_setopt(curl, CURLOPT_CONNECT_TO, *connect_to);
	}
}

static void set_common(CURL *curl, struct sink *s, const char *url, char *errbuf)
{
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(curl, CURLOPT_TCP_KEEPIDLE, 30L);
	curl_easy_setopt(curl, CURLOPT_TCP_KEEPINTVL, 10L);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, errbuf);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, s);
	curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(curl, CURLOPT_HEADERDATA, s);
}

static void set_method(CURL *curl, const struct kube_request *rq)
{
	if (strcmp(rq->method, "GET") != 0)
		curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, rq->method);
	if (rq->body.len || strcmp(rq->method, "POST") == 0) {
		curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)rq->body.len);
		curl_easy_setopt(curl, CURLOPT_POSTFIELDS, rq->body.data ? rq->body.data : "");
	}
}

static void count(struct kube_client *c, const char *method, long status)
{
	for (int m = 0; m < METHODS; m++)
		if (strcmp(method, method_names[m]) == 0 && status >= 0 && status < STATUS_MAX) {
			pthread_mutex_lock(&c->lock);
			c->counts[m][status]++;
			pthread_mutex_unlock(&c->lock);
		}
}

/* One exchange.  Returns the HTTP status, or a negative code when there was none. */
static long exchange(struct kube_client *c, const struct kube_request *rq, struct sink *s,
		     bool fresh_token, struct mu_err *err)
{
	char errbuf[CURL_ERROR_SIZE] = "";
	struct curl_slist *headers = NULL, *connect_to = NULL;
	struct conn *conn = borrow(c);
	CURL *curl = conn ? conn->easy : NULL;
	MU_AUTO_FREE char *url = mu_xasprintf("%s%s", c->host_in_url, rq->path);
	char *token, *line;
	long status = 0;
	CURLcode rc;

	if (!conn)
		return kube_client_stopped(c)
			   ? mu_fail(err, MU_CANCELLED, "stopped")
			   : mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for a connection");
	token = current_token(c, fresh_token);
	s->curl = curl;
	set_common(curl, s, url, errbuf);
	set_identity(c, curl, &connect_to);
	set_method(curl, rq);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, 10000L);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, rq->timeout_ms ? rq->timeout_ms : 30000L);
	headers = curl_slist_append(headers, "Accept: application/json");
	headers = curl_slist_append(headers, "Expect:");
	headers = curl_slist_append(headers, "User-Agent: muster-operator/" MUSTER_VERSION);
	line = mu_xasprintf("Content-Type: %s",
			    rq->content_type ? rq->content_type : "application/json");
	headers = curl_slist_append(headers, line);
	free(line);
	if (token) {
		line = mu_xasprintf("Authorization: Bearer %s", token);
		headers = curl_slist_append(headers, line);
		explicit_bzero(line, strlen(line));
		explicit_bzero(token, strlen(token));
		free(line);
		free(token);
	}
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	rc = perform(c, conn);
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	curl_slist_free_all(headers);
	give_back(c, conn);
	curl_slist_free_all(connect_to);
	count(c, rq->method, status);
	if (rc == CURLE_OK)
		return status;
	if (kube_client_stopped(c))
		return mu_fail(err, MU_CANCELLED, "stopped");
	if (s->err.code) {
		*err = s->err;
		return -(long)s->err.code;
	}
	return mu_fail(err, rc == CURLE_OPERATION_TIMEDOUT ? MU_DEADLINE_EXCEEDED : MU_UNAVAILABLE,
		       "%s %s: %s", rq->method, c->config.server,
		       *errbuf ? errbuf : curl_easy_strerror(rc));
}

static enum mu_code code_of(long status, const char *reason)
{
	switch (status) {
	case 401:
		return MU_UNAUTHENTICATED;
	case 403:
		return MU_PERMISSION_DENIED;
	case 404:
		return MU_NOT_FOUND;
	case 409:
		return reason && strcmp(reason, "AlreadyExists") == 0 ? MU_ALREADY_EXISTS
								      : MU_ABORTED;
	case 410:
		return MU_OUT_OF_RANGE;
	case 429:
		return MU_RESOURCE_EXHAUSTED;
	default:
		return status >= 500 ? MU_UNAVAILABLE : MU_INVALID_ARGUMENT;
	}
}

/* The error that an answer other than 2xx is: a metav1.Status, or any text. */
static int refused(const struct kube_request *rq, long status, const struct mu_buf *body,
		   struct mu_err *err)
{
	cJSON *json = body->len ? cJSON_ParseWithLength(body->data, body->len) : NULL;
	const char *message = cJSON_GetStringValue(cJSON_GetObjectItem(json, "message"));
	const char *reason = cJSON_GetStringValue(cJSON_GetObjectItem(json, "reason"));
	int rc;

	if (message)
		rc = mu_fail(err, code_of(status, reason), "%s (%ld)", message, status);
	else
		rc = mu_fail(err, code_of(status, reason), "%s %.200s: HTTP status %ld", rq->method,
			     rq->path, status);
	cJSON_Delete(json);
	return rc;
}

/* Is it worth asking again at once, and after how long? */
static bool again_in_place(long status, const struct sink *s, int tries, double *wait)
{
	if (tries + 1 >= IN_PLACE_TRIES)
		return false;
	*wait = s->retry_after > RETRY_AFTER_MAX_S ? RETRY_AFTER_MAX_S : (double)s->retry_after;
	if (status == 401)
		return tries == 0; /* with the token read anew */
	if (status == 429 && *wait <= 0)
		*wait = 0.5 * (1 << tries);
	return status == 429 || (status == 503 && s->retry_after > 0);
}

int kube_call(struct kube_client *c, const struct kube_request *rq, cJSON **out, struct mu_err *err)
{
	bool fresh = false;

	for (int tries = 0;; tries++) {
		struct sink s = {.limit = ANSWER_MAX};
		double wait = 0;
		long status;
		int rc = 0;

		if (kube_client_stopped(c))
			return mu_fail(err, MU_CANCELLED, "stopped");
		status = exchange(c, rq, &s, fresh, err);
		if (status < 0) {
			mu_buf_fini(&s.body);
			return (int)status;
		}
		fresh = status == 401;
		if (again_in_place(status, &s, tries, &wait) && kube_client_sleep(c, wait)) {
			mu_buf_fini(&s.body);
			continue;
		}
		if (status < 200 || status > 299) {
			rc = refused(rq, status, &s.body, err);
		} else if (out) {
			cJSON *json =
			    cJSON_ParseWithLength(s.body.data ? s.body.data : "", s.body.len);
			if (json)
				*out = json;
			else
				rc =
				    mu_fail(err, MU_UNAVAILABLE, "%s %.200s: the answer is no JSON",
					    rq->method, rq->path);
		}
		mu_buf_fini(&s.body);
		return rc;
	}
}

int kube_stream(struct kube_client *c, const char *path, long seconds, kube_chunk_fn *chunk,
		void *arg, struct mu_err *err)
{
	struct kube_request rq = {.method = "GET", .path = path, .timeout_ms = seconds * 1000};
	struct sink s = {.limit = ERROR_BODY_MAX, .chunk = chunk, .arg = arg};
	long status = exchange(c, &rq, &s, false, err);
	int rc = status < 0 ? (int)status : 0;

	if (status == 401)
		free(current_token(c, true));
	if (status >= 0 && status != 200)
		rc = refused(&rq, status, &s.body, err);
	mu_buf_fini(&s.body);
	return rc;
}

static int plain(struct kube_client *c, const char *url, bool post, struct mu_buf *out,
		 struct mu_err *err)
{
	char errbuf[CURL_ERROR_SIZE] = "";
	struct sink s = {.limit = FETCH_MAX};
	long status = 0;
	CURL *curl = curl_easy_init();
	CURLcode rc;

	if (!curl)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for a connection");
	s.curl = curl;
	set_common(curl, &s, url, errbuf);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http");
	curl_easy_setopt(curl, CURLOPT_PROXY, "");
	curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, 1000L);
	if (post)
		curl_easy_setopt(curl, CURLOPT_POSTFIELDS, "");
	rc = curl_easy_perform(curl);
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_cleanup(curl);
	if (rc == CURLE_OK && status >= 200 && status < 300) {
		mu_buf_fini(out);
		*out = s.body;
		return 0;
	}
	mu_buf_fini(&s.body);
	return mu_fail(err, MU_UNAVAILABLE, "%s: %s", url,
		       rc == CURLE_OK ? "refused" : curl_easy_strerror(rc));
}

int kube_fetch(struct kube_client *c, const char *url, struct mu_buf *out, struct mu_err *err)
{
	return plain(c, url, false, out, err);
}

int kube_poke(struct kube_client *c, const char *url, struct mu_err *err)
{
	MU_AUTO_BUF ignored = {0};
	return plain(c, url, true, &ignored, err);
}

void kube_client_metrics(struct kube_client *c, struct mu_buf *out)
{
	mu_buf_puts(out, "# TYPE rest_client_requests_total counter\n");
	pthread_mutex_lock(&c->lock);
	for (int m = 0; m < METHODS; m++)
		for (int s = 0; s < STATUS_MAX; s++)
			if (c->counts[m][s])
				mu_buf_printf(
				    out,
				    "rest_client_requests_total{method=\"%s\",code=\"%d\"} %u\n",
				    method_names[m], s, c->counts[m][s]);
	pthread_mutex_unlock(&c->lock);
}
