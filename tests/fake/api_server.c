/* SPDX-License-Identifier: Apache-2.0 */
/* The server: pod logs, connections (one thread each), and the functions for tests. A test is one
 * program, so this file and the store are included. */
#include "tests/fake/api_store.c"

/* ---- logs of pods ---- */

/* The requested lines from *at on; advances *at to the end. */
static void api_put_lines(struct mu_buf *out, const struct api_log *log, size_t *at,
			  const char *since, long tail)
{
	const char *end = log->lines.data + log->lines.len;
	long left = 0;

	for (const char *p = log->lines.data; p < end; p++)
		left += *p == '\n';
	for (const char *line = log->lines.data + *at, *next; line < end; line = next, left--) {
		next = memchr(line, '\n', (size_t)(end - line));
		next = next ? next + 1 : end;
		if ((!since || strncmp(line, since, 19) >= 0) && (tail < 0 || left <= tail))
			mu_buf_put(out, line, (size_t)(next - line));
	}
	*at = log->lines.len;
}

static struct api_log *api_find_log(struct api_server *s, const char *pod)
{
	for (int i = 0; i < s->n_logs; i++)
		if (strcmp(s->logs[i].pod, pod) == 0)
			return &s->logs[i];
	return NULL;
}

/* Sends a pod's log; false closes the connection. The lock is held, except during waits. */
static bool api_send_log(struct api_server *s, int fd, const struct api_request *r)
{
	const struct api_log *log = api_find_log(s, r->name);
	static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
				   "Transfer-Encoding: chunked\r\n\r\n";
	const char *since = strstr(r->query, "sinceTime=");
	bool follow = strstr(r->query, "follow=true");
	struct api_fault_rule fault;
	char peek;

	if (!log || strstr(r->query, "previous=true"))
		return api_status(fd, 400, 0, "BadRequest");
	api_send(fd, head, strlen(head));
	for (size_t at = 0; !s->stopping && !s->down;) {
		MU_AUTO_BUF lines = {0};
		struct timespec t;

		api_put_lines(&lines, log, &at, since ? since + 10 : NULL,
			      api_number(r->query, "tailLines=", -1));
		if (lines.len && !api_chunk(fd, mu_buf_span(&lines)))
			return false;
		if (lines.len && api_take_fault(s, r->url, true, &fault)) {
			api_send(fd, "40\r\n2026", 8);
			return false;
		}
		if (!follow || log->ended)
			return api_send(fd, "0\r\n\r\n", 5);
		clock_gettime(CLOCK_REALTIME, &t);
		t.tv_sec++;
		pthread_cond_timedwait(&s->changed, &s->lock, &t);
		if (recv(fd, &peek, 1, MSG_PEEK | MSG_DONTWAIT) == 0)
			return false;
	}
	return false;
}

/* ---- connections ---- */

struct api_connection {
	struct api_server *server;
	int fd, slot;
};

/* Reads one request; false if the peer has disconnected. */
static bool api_read(int fd, struct mu_buf *in, struct api_request *r)
{
	char chunk[8192], *end;
	size_t head, length = 0;
	ssize_t n;

	mu_buf_reserve(in, 1);
	in->data[in->len] = 0;
	while (!(end = strstr(in->data, "\r\n\r\n"))) {
		if ((n = recv(fd, chunk, sizeof(chunk), 0)) <= 0 || in->len > 65536)
			return false;
		mu_buf_put(in, chunk, (size_t)n);
	}
	head = (size_t)(end - in->data) + 4;
	end = strcasestr(in->data, "\r\ncontent-length:");
	if (end && end < in->data + head)
		length = strtoul(end + 17, NULL, 10);
	while (in->len < head + length) {
		if ((n = recv(fd, chunk, sizeof(chunk), 0)) <= 0)
			return false;
		mu_buf_put(in, chunk, (size_t)n);
	}
	if (sscanf(in->data, "%15s %4095s", r->method, r->url) != 2)
		return false;
	end = strcasestr(in->data, "\r\ncontent-type: application/apply-patch");
	r->apply = end && end < in->data + head;
	r->body = mu_xstrndup(in->data + head, length);
	r->length = length;
	memmove(in->data, in->data + head + length, in->len - head - length);
	in->len -= head + length;
	return true;
}

static void *api_connection_run(void *arg)
{
	struct api_connection *c = arg;
	struct api_server *s = c->server;
	MU_AUTO_BUF in = {0};
	struct api_request r = {.method = ""};
	bool go_on = true;

	while (go_on && api_read(c->fd, &in, &r)) {
		go_on = api_handle(s, c->fd, &r);
		free(r.body);
	}
	pthread_mutex_lock(&s->lock);
	s->connections[c->slot] = 0;
	close(c->fd);
	s->n_threads--;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	free(c);
	return NULL;
}

static void api_accept(struct api_server *s, int fd)
{
	struct api_connection *c = MU_NEW(struct api_connection);
	pthread_t thread;
	int slot = 0;

	pthread_mutex_lock(&s->lock);
	while (slot < API_CONNECTIONS && s->connections[slot])
		slot++;
	*c = (struct api_connection){s, fd, slot};
	if (s->down || slot == API_CONNECTIONS ||
	    pthread_create(&thread, NULL, api_connection_run, c) != 0) {
		close(fd);
		free(c);
	} else {
		pthread_detach(thread);
		s->connections[slot] = fd;
		s->n_threads++;
	}
	pthread_mutex_unlock(&s->lock);
}

static void *api_server_run(void *arg)
{
	struct api_server *s = arg;

	for (;;) {
		struct pollfd p = {s->fd, POLLIN, 0};
		int fd;

		pthread_mutex_lock(&s->lock);
		fd = s->stopping;
		pthread_mutex_unlock(&s->lock);
		if (fd)
			return NULL;
		if (poll(&p, 1, 50) <= 0)
			continue;
		fd = accept(s->fd, NULL, NULL);
		if (fd >= 0)
			api_accept(s, fd);
	}
}

struct api_server *api_server_start(int port)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_port = htons((uint16_t)port),
				.sin_addr = {htonl(INADDR_LOOPBACK)}};
	struct api_server *s = MU_NEW(struct api_server);
	socklen_t n = sizeof(a);
	int on = 1;

	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->changed, NULL);
	s->events = MU_NEW_ARRAY(struct api_event, API_EVENTS + 1);
	s->version = 100;
	s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(s->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(s->fd, (struct sockaddr *)&a, sizeof(a)) || listen(s->fd, 64) ||
	    getsockname(s->fd, (struct sockaddr *)&a, &n))
		abort();
	s->port = ntohs(a.sin_port);
	pthread_create(&s->thread, NULL, api_server_run, s);
	return s;
}

static void api_cut_all(struct api_server *s)
{
	for (int i = 0; i < API_CONNECTIONS; i++)
		if (s->connections[i])
			shutdown(s->connections[i], SHUT_RDWR);
	pthread_cond_broadcast(&s->changed);
}

void api_server_stop(struct api_server *s)
{
	pthread_mutex_lock(&s->lock);
	s->stopping = true;
	api_cut_all(s);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	pthread_mutex_lock(&s->lock);
	while (s->n_threads) {
		api_cut_all(s);
		pthread_cond_wait(&s->changed, &s->lock);
	}
	while (s->n_objects)
		api_remove(s, &s->objects[0]);
	pthread_mutex_unlock(&s->lock);
	for (int i = 0; i < s->n_events; i++) {
		free(s->events[i].collection);
		free(s->events[i].ns);
		free(s->events[i].name);
		free(s->events[i].text);
	}
	for (int i = 0; i < s->n_logs; i++)
		mu_buf_fini(&s->logs[i].lines);
	close(s->fd);
	free(s->events);
	mu_buf_fini(&s->log);
	free(s);
}

int api_server_port(struct api_server *s)
{
	return s->port;
}

void api_server_page(struct api_server *s, int n)
{
	s->page = n;
}

void api_server_fail(struct api_server *s, const char *match, enum api_fault fault, int status,
		     int seconds, int times)
{
	struct api_fault_rule *f;

	pthread_mutex_lock(&s->lock);
	f = &s->faults[s->n_faults++ % API_FAULTS];
	*f = (struct api_fault_rule){"", fault, status, seconds, times};
	snprintf(f->match, sizeof(f->match), "%s", match);
	pthread_mutex_unlock(&s->lock);
}

void api_server_heal(struct api_server *s)
{
	pthread_mutex_lock(&s->lock);
	s->n_faults = 0;
	pthread_mutex_unlock(&s->lock);
}

void api_server_compact(struct api_server *s)
{
	pthread_mutex_lock(&s->lock);
	s->oldest = s->version;
	api_cut_all(s);
	pthread_mutex_unlock(&s->lock);
}

void api_server_down(struct api_server *s, bool down)
{
	pthread_mutex_lock(&s->lock);
	s->down = down;
	if (down)
		api_cut_all(s);
	pthread_mutex_unlock(&s->lock);
}

/* ---- functions for tests ---- */

void api_server_put(struct api_server *s, const char *path, const char *json)
{
	struct api_request r = {.method = ""};

	api_split(&r, path);
	pthread_mutex_lock(&s->lock);
	api_add(s, &r, cJSON_Parse(json));
	pthread_mutex_unlock(&s->lock);
}

static struct api_object *api_named(struct api_server *s, const char *path, const char *name)
{
	struct api_request r = {.method = ""};

	api_split(&r, path);
	snprintf(r.name, sizeof(r.name), "%s", name);
	return api_find(s, &r);
}

void api_server_delete(struct api_server *s, const char *path, const char *name)
{
	struct api_object *o;

	pthread_mutex_lock(&s->lock);
	o = api_named(s, path, name);
	if (o)
		api_remove(s, o);
	pthread_mutex_unlock(&s->lock);
}

bool api_server_patch(struct api_server *s, const char *path, const char *name, const char *json)
{
	struct api_object *o;
	cJSON *patch = cJSON_Parse(json);

	pthread_mutex_lock(&s->lock);
	o = api_named(s, path, name);
	if (o) {
		api_merge(o->json, patch);
		api_changed(s, o, "MODIFIED");
	}
	pthread_mutex_unlock(&s->lock);
	cJSON_Delete(patch);
	return o != NULL;
}

cJSON *api_server_get(struct api_server *s, const char *path, const char *name)
{
	struct api_object *o;
	cJSON *copy;

	pthread_mutex_lock(&s->lock);
	o = api_named(s, path, name);
	copy = o ? cJSON_Duplicate(o->json, true) : NULL;
	pthread_mutex_unlock(&s->lock);
	return copy;
}

void api_server_each(struct api_server *s, const char *path,
		     void (*fn)(void *arg, const cJSON *object), void *arg)
{
	struct api_request r = {.method = ""};
	cJSON **copies = MU_NEW_ARRAY(cJSON *, API_OBJECTS);
	int n = 0;

	api_split(&r, path);
	pthread_mutex_lock(&s->lock);
	for (int i = 0; i < s->n_objects; i++)
		if (strcmp(s->objects[i].collection, r.collection) == 0 &&
		    (!r.ns[0] || strcmp(s->objects[i].ns, r.ns) == 0))
			copies[n++] = cJSON_Duplicate(s->objects[i].json, true);
	pthread_mutex_unlock(&s->lock);
	for (int i = 0; i < n; i++) {
		fn(arg, copies[i]);
		cJSON_Delete(copies[i]);
	}
	free(copies);
}

static void api_count_one(void *arg, const cJSON *object)
{
	++*(int *)arg;
}

int api_server_count(struct api_server *s, const char *path)
{
	int n = 0;
	api_server_each(s, path, api_count_one, &n);
	return n;
}

void api_server_log(struct api_server *s, const char *pod, const char *lines, bool ended)
{
	struct api_log *log;

	pthread_mutex_lock(&s->lock);
	log = api_find_log(s, pod);
	if (!log && s->n_logs == API_LOGS)
		abort();
	if (!log) {
		log = &s->logs[s->n_logs++];
		snprintf(log->pod, sizeof(log->pod), "%s", pod);
	}
	mu_buf_puts(&log->lines, lines);
	log->ended = ended;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

int api_server_seen(struct api_server *s, const char *match)
{
	int n = 0;

	pthread_mutex_lock(&s->lock);
	for (const char *at = s->log.data; at && (at = strstr(at, match)); at++)
		n++;
	pthread_mutex_unlock(&s->lock);
	return n;
}
