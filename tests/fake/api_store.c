/* SPDX-License-Identifier: Apache-2.0 */
/* The objects, their history, and the responses. One lock protects everything. A watch reads the
 * history from its version on. Included by api_server.c. */
#include "tests/fake/api_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/kube/kube_client.h"

enum {
	API_OBJECTS = 4096,
	API_EVENTS = 65536,
	API_FAULTS = 64,
	API_CONNECTIONS = 128,
	API_LOGS = 16
};

struct api_object {
	char *collection, *ns, *name; /* collection without namespace: "/api/v1/pods" */
	cJSON *json;
};
struct api_event {
	long version;
	const char *type;
	char *collection, *ns, *name, *text;
	bool labelled;
};
struct api_log {
	char pod[64];
	struct mu_buf lines;
	bool ended;
};
struct api_fault_rule {
	char match[128];
	enum api_fault fault;
	int status, seconds, times;
};
struct api_server {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	int fd, port, page;
	bool stopping, down;
	long version, oldest; /* history begins after `oldest` */
	struct api_object objects[API_OBJECTS];
	int n_objects;
	struct api_event *events;
	int n_events;
	struct api_fault_rule faults[API_FAULTS];
	int n_faults, connections[API_CONNECTIONS], n_threads;
	struct mu_buf log;
	struct api_log logs[API_LOGS];
	int n_logs;
};
struct api_request {
	char method[16], url[4096];
	char collection[256], ns[64], name[256], sub[64];
	char *query;
	char *body;
	size_t length;
	bool apply; /* server-side apply: the body is a complete object that may be new */
};

/* ---- the store ---- */

/* Splits "/apis/g/v/namespaces/ns/resource/name/sub" into its parts. */
static void api_split(struct api_request *r, const char *path)
{
	MU_AUTO_FREE char *copy = mu_xstrdup(path);
	char *save = NULL, *parts[12];
	int n = 0, at, prefix;

	r->collection[0] = r->ns[0] = r->name[0] = r->sub[0] = 0;
	for (char *p = strtok_r(copy, "/", &save); p && n < 12; p = strtok_r(NULL, "/", &save))
		parts[n++] = p;
	prefix = n && strcmp(parts[0], "apis") == 0 ? 3 : 2;
	at = prefix;
	for (int i = 0; i < prefix && i < n; i++)
		snprintf(r->collection + strlen(r->collection),
			 sizeof(r->collection) - strlen(r->collection), "/%s", parts[i]);
	if (at + 1 < n && strcmp(parts[at], "namespaces") == 0) {
		snprintf(r->ns, sizeof(r->ns), "%s", parts[at + 1]);
		at += 2;
	}
	if (at < n)
		snprintf(r->collection + strlen(r->collection),
			 sizeof(r->collection) - strlen(r->collection), "/%s", parts[at++]);
	if (at < n)
		snprintf(r->name, sizeof(r->name), "%s", parts[at++]);
	if (at < n)
		snprintf(r->sub, sizeof(r->sub), "%s", parts[at]);
}

static const char *api_text(const cJSON *o, const char *a, const char *b)
{
	const cJSON *x = cJSON_GetObjectItemCaseSensitive(o, a);
	return cJSON_GetStringValue(b ? cJSON_GetObjectItemCaseSensitive(x, b) : x);
}

static void api_set(cJSON *o, const char *key, const char *value)
{
	cJSON_DeleteItemFromObjectCaseSensitive(o, key);
	cJSON_AddStringToObject(o, key, value);
}

static bool api_labelled(const cJSON *o)
{
	const cJSON *labels = cJSON_GetObjectItemCaseSensitive(
	    cJSON_GetObjectItemCaseSensitive(o, "metadata"), "labels");
	return cJSON_GetObjectItemCaseSensitive(labels, "muster.dev/job") != NULL;
}

static struct api_object *api_find(struct api_server *s, const struct api_request *r)
{
	for (int i = 0; i < s->n_objects; i++)
		if (strcmp(s->objects[i].collection, r->collection) == 0 &&
		    strcmp(s->objects[i].ns, r->ns) == 0 &&
		    strcmp(s->objects[i].name, r->name) == 0)
			return &s->objects[i];
	return NULL;
}

/* Gives the object the next version and notifies the watches. */
static void api_changed(struct api_server *s, struct api_object *o, const char *type)
{
	cJSON *metadata = cJSON_GetObjectItemCaseSensitive(o->json, "metadata");
	struct api_event *e = &s->events[s->n_events];
	char version[32];

	snprintf(version, sizeof(version), "%ld", ++s->version);
	api_set(metadata, "resourceVersion", version);
	if (s->n_events < API_EVENTS) {
		*e = (struct api_event){.version = s->version,
					.type = type,
					.collection = mu_xstrdup(o->collection),
					.ns = mu_xstrdup(o->ns),
					.name = mu_xstrdup(o->name),
					.text = cJSON_PrintUnformatted(o->json),
					.labelled = api_labelled(o->json)};
		s->n_events++;
	}
	pthread_cond_broadcast(&s->changed);
}

static struct api_object *api_add(struct api_server *s, const struct api_request *r, cJSON *json)
{
	struct api_object *o = &s->objects[s->n_objects];
	cJSON *metadata = cJSON_GetObjectItemCaseSensitive(json, "metadata");
	char uid[64], now[32];
	time_t t = time(NULL);

	if (s->n_objects == API_OBJECTS || !metadata)
		abort();
	s->n_objects++;
	*o = (struct api_object){mu_xstrdup(r->collection), mu_xstrdup(r->ns),
				 mu_xstrdup(api_text(json, "metadata", "name")), json};
	snprintf(uid, sizeof(uid), "uid-%ld", s->version + 1);
	strftime(now, sizeof(now), "%Y-%m-%dT%H:%M:%SZ", gmtime(&t));
	api_set(metadata, "uid", uid);
	api_set(metadata, "creationTimestamp", now);
	api_set(metadata, "namespace", r->ns);
	api_changed(s, o, "ADDED");
	return o;
}

static void api_remove(struct api_server *s, struct api_object *o)
{
	api_changed(s, o, "DELETED");
	free(o->collection);
	free(o->ns);
	free(o->name);
	cJSON_Delete(o->json);
	*o = s->objects[--s->n_objects];
}

static void api_merge(cJSON *to, const cJSON *patch)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, patch)
	{
		cJSON *old = cJSON_GetObjectItemCaseSensitive(to, item->string);
		if (cJSON_IsObject(item) && cJSON_IsObject(old)) {
			api_merge(old, item);
			continue;
		}
		cJSON_DeleteItemFromObjectCaseSensitive(to, item->string);
		if (cJSON_IsObject(item))
			api_merge(cJSON_AddObjectToObject(to, item->string), item);
		else if (!cJSON_IsNull(item))
			cJSON_AddItemToObject(to, item->string, cJSON_Duplicate(item, true));
	}
}

/* ---- responses ---- */

static bool api_send(int fd, const char *data, size_t n)
{
	while (n) {
		ssize_t sent = send(fd, data, n, MSG_NOSIGNAL);
		if (sent <= 0)
			return false;
		data += sent;
		n -= (size_t)sent;
	}
	return true;
}

static bool api_answer(int fd, int status, int retry_after, const char *body)
{
	MU_AUTO_BUF b = {0};

	mu_buf_printf(&b, "HTTP/1.1 %d X\r\nContent-Type: application/json\r\n", status);
	if (retry_after)
		mu_buf_printf(&b, "Retry-After: %d\r\n", retry_after);
	mu_buf_printf(&b, "Content-Length: %zu\r\n\r\n%s", strlen(body), body);
	return api_send(fd, b.data, b.len);
}

static bool api_send_object(int fd, int status, int retry_after, const cJSON *object)
{
	MU_AUTO_FREE char *text = cJSON_PrintUnformatted(object);

	return api_answer(fd, status, retry_after, text);
}

static cJSON *api_status_object(int status, const char *reason)
{
	MU_AUTO_FREE char *text = mu_xasprintf("{\"kind\":\"Status\",\"code\":%d,\"reason\":\"%s\","
					       "\"message\":\"scripted: %s\"}",
					       status, reason, reason);
	return cJSON_Parse(text);
}

static bool api_status(int fd, int status, int retry_after, const char *reason)
{
	cJSON *o = api_status_object(status, reason);
	bool go_on = api_send_object(fd, status, retry_after, o);

	cJSON_Delete(o);
	return go_on;
}

static long api_number(const char *query, const char *key, long default_value)
{
	const char *at = query ? strstr(query, key) : NULL;
	return at ? strtol(at + strlen(key), NULL, 10) : default_value;
}

/* Supports only a field selector on metadata.name. */
static bool api_named_in_query(const struct api_request *r, const char *name)
{
	static const char key[] = "fieldSelector=metadata.name%3D";
	const char *at = r->query ? strstr(r->query, key) : NULL;
	size_t n = at ? strcspn(at + strlen(key), "&") : 0;

	return !at || (strlen(name) == n && strncmp(at + strlen(key), name, n) == 0);
}

static bool api_selected(const struct api_request *r, bool labelled)
{
	return !r->query || !strstr(r->query, "labelSelector=") || labelled;
}

/* The objects of a page; *more is the position of the next page, or 0. */
static cJSON *api_page(struct api_server *s, const struct api_request *r, long *more)
{
	long limit = api_number(r->query, "limit=", 0), from = api_number(r->query, "continue=", 0);
	cJSON *items = cJSON_CreateArray();
	long n = 0;

	if (s->page)
		limit = s->page;
	*more = 0;
	for (int i = 0; i < s->n_objects; i++) {
		struct api_object *o = &s->objects[i];

		if (strcmp(o->collection, r->collection) != 0 ||
		    (r->ns[0] && strcmp(o->ns, r->ns) != 0) ||
		    !api_selected(r, api_labelled(o->json)))
			continue;
		if (n++ < from)
			continue;
		if (limit && n > from + limit)
			*more = from + limit;
		else
			cJSON_AddItemToArray(items, cJSON_Duplicate(o->json, true));
	}
	return items;
}

/* Sends a page; the continue token is the number of objects already sent. */
static bool api_list(struct api_server *s, int fd, const struct api_request *r)
{
	cJSON *all = cJSON_CreateObject(), *metadata;
	char text[32];
	long more;
	bool go_on;

	cJSON_AddItemToObject(all, "items", api_page(s, r, &more));
	metadata = cJSON_AddObjectToObject(all, "metadata");
	snprintf(text, sizeof(text), "%ld", s->version);
	cJSON_AddStringToObject(metadata, "resourceVersion", text);
	snprintf(text, sizeof(text), "%ld", more);
	if (more)
		cJSON_AddStringToObject(metadata, "continue", text);
	go_on = api_send_object(fd, 200, 0, all);
	cJSON_Delete(all);
	return go_on;
}

/* Removes and returns the fault for this request, if there is one. */
static bool api_take_fault(struct api_server *s, const char *request_line, bool watch,
			   struct api_fault_rule *out)
{
	for (int i = 0; i < s->n_faults; i++) {
		struct api_fault_rule *f = &s->faults[i];
		if (f->times <= 0 || !strstr(request_line, f->match) ||
		    (f->fault >= API_CUT) != watch)
			continue;
		f->times--;
		*out = *f;
		return true;
	}
	return false;
}

static bool api_chunk(int fd, struct mu_span text)
{
	MU_AUTO_BUF b = {0};

	mu_buf_printf(&b, "%zx\r\n", text.len);
	mu_buf_put(&b, text.data, text.len);
	mu_buf_puts(&b, "\r\n");
	return api_send(fd, b.data, b.len);
}

static bool api_send_watch_event(int fd, const char *type, const cJSON *object)
{
	MU_AUTO_FREE char *text = cJSON_PrintUnformatted(object);
	MU_AUTO_BUF b = {0};

	mu_buf_printf(&b, "{\"type\":\"%s\",\"object\":%s}\n", type, text);
	return api_chunk(fd, mu_buf_span(&b));
}

/* Sends one event to the watcher; false ends the watch. The lock is held. */
static bool api_send_event(struct api_server *s, int fd, const struct api_request *r,
			   const struct api_event *e)
{
	struct api_fault_rule fault;
	cJSON *object;

	if (!api_take_fault(s, r->url, true, &fault)) {
		bool sent;

		object = cJSON_Parse(e->text);
		sent = api_send_watch_event(fd, e->type, object);
		cJSON_Delete(object);
		return sent;
	}
	if (fault.fault == API_SILENT_DELETE)
		return true;
	if (fault.fault == API_GONE) {
		object = api_status_object(410, "Expired");
		api_send_watch_event(fd, "ERROR", object);
		cJSON_Delete(object);
	} else {
		api_send(fd, "40\r\n{\"type\":\"ADD", 16);
	}
	return false;
}

static void api_watch(struct api_server *s, int fd, const struct api_request *r)
{
	long from = api_number(r->query, "resourceVersion=", 0);
	MU_AUTO_BUF head = {0};
	char peek;
	int next = 0;

	if (from < s->oldest) {
		api_status(fd, 410, 0, "Expired");
		return;
	}
	mu_buf_printf(&head, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
			     "Transfer-Encoding: chunked\r\n\r\n");
	api_send(fd, head.data, head.len);
	while (!s->stopping && !s->down) {
		struct timespec t;

		for (; next < s->n_events; next++) {
			const struct api_event *e = &s->events[next];
			if (e->version <= from || strcmp(e->collection, r->collection) != 0 ||
			    (r->ns[0] && strcmp(e->ns, r->ns) != 0) ||
			    !api_selected(r, e->labelled) || !api_named_in_query(r, e->name))
				continue;
			if (!api_send_event(s, fd, r, e))
				return;
		}
		clock_gettime(CLOCK_REALTIME, &t);
		t.tv_sec++;
		pthread_cond_timedwait(&s->changed, &s->lock, &t);
		if (recv(fd, &peek, 1, MSG_PEEK | MSG_DONTWAIT) == 0)
			return;
	}
}

/* As for a resource with a status subresource: the generation counts changes of the spec. */
static void api_count_generation(cJSON *o, const cJSON *patch)
{
	const cJSON *spec = cJSON_GetObjectItemCaseSensitive(o, "spec");
	const cJSON *new_spec = cJSON_GetObjectItemCaseSensitive(patch, "spec");
	cJSON *metadata = cJSON_GetObjectItemCaseSensitive(o, "metadata");
	cJSON *generation = cJSON_GetObjectItemCaseSensitive(metadata, "generation");

	if (new_spec && !cJSON_Compare(spec, new_spec, true) && generation)
		cJSON_SetNumberValue(generation, generation->valuedouble + 1);
}

static bool api_send_log(struct api_server *s, int fd, const struct api_request *r);

/* Executes the request; false closes the connection. The lock is held. */
static bool api_serve(struct api_server *s, int fd, struct api_request *r, bool silent)
{
	struct api_object *o = r->name[0] ? api_find(s, r) : NULL;
	cJSON *body = kube_json((struct mu_span){r->body, r->length});
	const char *uid = api_text(body, "preconditions", "uid");
	int status = 200;

	if (strcmp(r->sub, "log") == 0 && r->query) {
		cJSON_Delete(body);
		return api_send_log(s, fd, r);
	}
	if (r->apply && !o && body) {
		cJSON_AddNumberToObject(cJSON_GetObjectItemCaseSensitive(body, "metadata"),
					"generation", 1);
		o = api_add(s, r, body);
		body = NULL;
		status = 201;
	} else if (strcmp(r->method, "POST") == 0 && body) {
		snprintf(r->name, sizeof(r->name), "%s", api_text(body, "metadata", "name"));
		if (api_find(s, r)) {
			cJSON_Delete(body);
			return silent ? false : api_status(fd, 409, 0, "AlreadyExists");
		}
		o = api_add(s, r, body);
		body = NULL;
		status = 201;
	} else if (r->name[0] && !o) {
		cJSON_Delete(body);
		return silent ? false : api_status(fd, 404, 0, "NotFound");
	} else if (!r->name[0]) {
		cJSON_Delete(body);
		return silent ? false : api_list(s, fd, r);
	} else if (strcmp(r->method, "DELETE") == 0) {
		bool other = uid && strcmp(uid, api_text(o->json, "metadata", "uid")) != 0;
		cJSON_Delete(body);
		if (!other)
			api_remove(s, o);
		return silent ? false : api_status(fd, other ? 409 : 200, 0, "Conflict");
	} else if (strcmp(r->method, "PATCH") == 0 && body) {
		api_count_generation(o->json, body);
		api_merge(o->json, body);
		api_changed(s, o, "MODIFIED");
	} else if (strcmp(r->method, "PUT") == 0 && body) {
		api_merge(o->json, body);
		api_changed(s, o, "MODIFIED");
	}
	cJSON_Delete(body);
	return silent ? false : api_send_object(fd, status, 0, o->json);
}

static bool api_handle(struct api_server *s, int fd, struct api_request *r)
{
	MU_AUTO_FREE char *request_line = mu_xasprintf("%s %s", r->method, r->url);
	MU_AUTO_FREE char *path = mu_xstrndup(r->url, strcspn(r->url, "?"));
	struct api_fault_rule fault;
	bool watch, go_on = false;

	r->query = strchr(r->url, '?');
	api_split(r, path);
	watch = r->query && strstr(r->query, "watch=1");
	pthread_mutex_lock(&s->lock);
	mu_buf_printf(&s->log, "%s%s\n", watch ? "WATCH " : "", request_line);
	if (s->down)
		go_on = false;
	else if (!api_take_fault(s, request_line, false, &fault))
		go_on = watch ? (api_watch(s, fd, r), false) : api_serve(s, fd, r, false);
	else if (fault.fault == API_STATUS)
		go_on = api_status(fd, fault.status, fault.seconds, "Scripted");
	else if (fault.fault == API_TOO_LARGE)
		go_on = api_status(fd, 500, 0, "etcdserver: request is too large");
	else if (fault.fault == API_LOSE_ANSWER)
		api_serve(s, fd, r, true);
	pthread_mutex_unlock(&s->lock);
	return go_on;
}
