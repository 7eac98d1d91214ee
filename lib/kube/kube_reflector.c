/* SPDX-License-Identifier: Apache-2.0 */
/* The list-and-watch protocol:
 *
 *	list (pages of up to 250) -> version V -> watch from V with bookmarks -> an event moves V
 *	  end of the watch (timeout of server or client): watch again from V
 *	  error: wait, watch again from V; after the third error in a row: list again
 *	  410, as status or as ERROR event: V is too old, list again
 *
 * A random watch time of 5 to 10 minutes spreads the reconnects of many watchers.  The backoff
 * between failures grows from 0.8 s to 30 s; a success resets it.  The reflector logs the first
 * failure and the recovery, but no failures between them. */
#include <stdatomic.h>
#include <stdio.h>

#include "lib/base/backoff.h"
#include "lib/base/log.h"
#include "lib/base/random.h"
#include "lib/kube/kube_stream.h"
#include "lib/net/http_url.h"

enum {
	LIST_PAGE_OBJECTS =
	    250, /* objects; a page is one JSON tree, about 8 times as large as its text */
	LIST_MS = 60000,
	WATCH_MIN_S = 300,
	WATCH_SPREAD_S = 300,
	WATCH_TIMEOUT_MARGIN_S = 30,
	WATCH_FAILURES_MAX = 2
};
/* PAUSE_S: a watch that ends at once is not a failure, but must not spin. */
static const double BACKOFF_FIRST_S = 0.8, BACKOFF_MAX_S = 30, PAUSE_S = 0.05;

/* ---- lines of JSON: a line within one chunk is passed without a copy ---- */

enum { LINE_MAX_BYTES = 8 << 20 };

static int deliver(struct kube_lines *l, const char *line, size_t len, struct mu_err *err)
{
	if (len && line[len - 1] == '\r')
		len--;
	return len ? l->line(l->arg, line, len, err) : 0;
}

int kube_lines_feed(void *lines, const char *data, size_t len, struct mu_err *err)
{
	struct kube_lines *l = lines;

	while (len) {
		const char *newline = memchr(data, '\n', len);
		size_t n = newline ? (size_t)(newline - data) : len;
		bool is_cut = l->piece_max && l->rest.len + n > l->piece_max;

		if (is_cut)
			n = l->piece_max - l->rest.len;
		else if (l->rest.len + n > LINE_MAX_BYTES)
			return mu_fail(err, MU_RESOURCE_EXHAUSTED,
				       "a watch event of more than %d MiB", LINE_MAX_BYTES >> 20);
		if (!(newline || is_cut) || l->rest.len)
			mu_buf_put(&l->rest, data, n);
		if (!newline && !is_cut)
			return 0;
		MU_RETURN_IF_ERROR(l->rest.len ? deliver(l, l->rest.data, l->rest.len, err)
					       : deliver(l, data, n, err));
		mu_buf_clear(&l->rest);
		n += !is_cut; /* the newline */
		data += n;
		len -= n;
	}
	return 0;
}

static const char *version_of(const cJSON *object)
{
	return cJSON_GetStringValue(
	    cJSON_GetObjectItem(cJSON_GetObjectItem(object, "metadata"), "resourceVersion"));
}

int kube_list(struct kube_client *c, const char *path, const char *selector, kube_item_fn *item,
	      void *arg, char **version, struct mu_err *err)
{
	MU_AUTO_FREE char *token = NULL;
	int limit = LIST_PAGE_OBJECTS, rc;

	for (;;) {
		MU_AUTO_BUF url = {0};
		cJSON *page = NULL;
		const cJSON *object;
		const char *next;

		mu_buf_printf(&url, "%s?limit=%d", path, limit);
		if (selector)
			mu_buf_printf(&url, "&labelSelector=%s", selector);
		if (token) {
			mu_buf_puts(&url, "&continue=");
			mu_http_url_escape(&url, token);
		}
		rc = kube_call(c,
			       &(struct kube_request){
				   .method = "GET", .path = url.data, .timeout_ms = LIST_MS},
			       &page, err);
		if (rc == -MU_RESOURCE_EXHAUSTED && (limit /= 4))
			continue;
		if (rc < 0)
			return mu_wrap(err, "list %s", path);
		cJSON_ArrayForEach(object, cJSON_GetObjectItemCaseSensitive(page, "items"))
		{
			item(arg, object);
		}
		next = cJSON_GetStringValue(
		    cJSON_GetObjectItem(cJSON_GetObjectItem(page, "metadata"), "continue"));
		free(token);
		token = next && *next ? mu_xstrdup(next) : NULL;
		if (!token) {
			const char *v = version_of(page);
			*version = mu_xstrdup(v ? v : "0");
		}
		cJSON_Delete(page);
		if (!token)
			return 0;
	}
}

int kube_event_read(const cJSON *json, enum kube_change *change, const cJSON **object,
		    struct mu_err *err)
{
	static const char *const names[] = {"ADDED", "MODIFIED", "DELETED", "BOOKMARK", NULL};
	const char *type = cJSON_GetStringValue(cJSON_GetObjectItem(json, "type"));
	const cJSON *o = cJSON_GetObjectItem(json, "object");
	const char *message = cJSON_GetStringValue(cJSON_GetObjectItem(o, "message"));

	if (!type || !cJSON_IsObject(o))
		return mu_fail(err, MU_UNAVAILABLE, "a watch event without type or object");
	*object = o;
	*change = (enum kube_change)mu_word_index(type, names);
	if (mu_word_index(type, names) >= 0)
		return 0;
	if (strcmp(type, "ERROR") == 0 &&
	    cJSON_GetNumberValue(cJSON_GetObjectItem(o, "code")) == 410)
		return mu_fail(err, MU_OUT_OF_RANGE, "%s", message ? message : "too old");
	return mu_fail(err, MU_UNAVAILABLE, "watch event %s: %s", type,
		       message ? message : "no message");
}

static void report_recovery(struct kube_reflector *r)
{
	if (atomic_exchange(&r->n_failures, 0))
		mu_info("kube", "watching %s again", r->name);
}

static int on_line(void *reflector, const char *line, size_t len, struct mu_err *err)
{
	struct kube_reflector *r = reflector;
	cJSON *event = kube_json((struct mu_span){line, len});
	enum kube_change change;
	const cJSON *object;
	const char *version;
	int rc;

	if (!event)
		return mu_fail(err, MU_UNAVAILABLE, "a watch event is not valid JSON");
	rc = kube_event_read(event, &change, &object, err);
	if (rc == 0) {
		report_recovery(r);
		if (change == KUBE_DELETED)
			r->on_delete(r->arg, object);
		else if (change != KUBE_BOOKMARK)
			r->on_upsert(r->arg, object);
		version = version_of(object);
		if (version && *version) {
			free(r->version);
			r->version = mu_xstrdup(version);
		}
	}
	cJSON_Delete(event);
	return rc;
}

static int list_all(struct kube_reflector *r, struct mu_err *err)
{
	char *version = NULL;

	r->list_begin(r->arg);
	MU_RETURN_IF_ERROR(
	    kube_list(r->client, r->path, r->selector, r->on_upsert, r->arg, &version, err));
	if (r->version && strtoull(version, NULL, 10) < strtoull(r->version, NULL, 10)) {
		/* etcd was restored: stored objects may have higher versions */
		free(version);
		free(mu_steal(&r->version));
		r->list_begin(r->arg);
		r->list_end(r->arg);
		return list_all(r, err);
	}
	r->list_end(r->arg);
	free(r->version);
	r->version = version;
	r->list_again = false;
	report_recovery(r);
	atomic_store(&r->synced, true);
	return 0;
}

static int watch_once(struct kube_reflector *r, struct mu_err *err)
{
	long seconds = WATCH_MIN_S + (uint32_t)mu_random_u64() % WATCH_SPREAD_S;
	struct kube_lines lines = {.line = on_line, .arg = r};
	MU_AUTO_BUF url = {0};
	int rc;

	mu_buf_printf(&url,
		      "%s?watch=1&allowWatchBookmarks=true&timeoutSeconds=%ld&resourceVersion=%s",
		      r->path, seconds, r->version);
	if (r->selector)
		mu_buf_printf(&url, "&labelSelector=%s", r->selector);
	rc = kube_stream(r->client,
			 &(struct kube_stream){.path = url.data,
					       .seconds = seconds + WATCH_TIMEOUT_MARGIN_S,
					       .chunk = kube_lines_feed,
					       .arg = &lines},
			 err);
	mu_buf_fini(&lines.rest);
	return rc < 0 ? mu_wrap(err, "watch %s", r->name) : 0;
}

void *kube_reflector_run(void *reflector)
{
	struct kube_reflector *r = reflector;

	while (!kube_client_stopped(r->client)) {
		struct mu_err err = {0};
		double wait = PAUSE_S;
		int rc = r->version && !r->list_again ? watch_once(r, &err) : list_all(r, &err);

		if (kube_client_stopped(r->client))
			break;
		if (rc == -MU_OUT_OF_RANGE) {
			r->list_again = true;
			wait = BACKOFF_FIRST_S;
			mu_debug("kube", "%s: history is gone, listing again", r->name);
		} else if (rc < 0) {
			int failures = atomic_fetch_add(&r->n_failures, 1);

			wait = mu_backoff(failures, BACKOFF_FIRST_S, BACKOFF_MAX_S);
			r->list_again = r->list_again || failures >= WATCH_FAILURES_MAX;
			if (failures == 0)
				mu_warn("kube", "%s; trying again until it works", err.msg);
		}
		kube_client_sleep(r->client, wait);
	}
	free(mu_steal(&r->version));
	return NULL;
}
