/* SPDX-License-Identifier: Apache-2.0 */
/* A scripted Kubernetes API server in one process: it keeps objects of any kind, lists them in
 * pages, streams watches with history, and fails when told to.
 *
 * It knows no schema and no admission.  Included as a .c file by tests, since a test is one
 * program.
 */
#ifndef TESTS_FAKE_API_SERVER_H
#define TESTS_FAKE_API_SERVER_H

#include <cjson/cJSON.h>
#include <stdbool.h>

struct api_server;

enum api_fault {
	API_STATUS,        /* answer with `status` (and Retry-After: `seconds` when not 0) */
	API_TOO_LARGE,     /* answer as if the object were larger than what etcd stores */
	API_HANG_UP,       /* close the connection instead of an answer */
	API_LOSE_ANSWER,   /* do it, then close the connection instead of the answer */
	API_CUT,           /* watches and logs: close in the middle of what comes next */
	API_GONE,          /* watches: an ERROR event with 410 */
	API_SILENT_DELETE, /* watches: swallow the next event */
};

struct api_server *api_server_start(int port); /* 0: any */
void api_server_stop(struct api_server *s);
int api_server_port(struct api_server *s);
/* Pages of at most n objects (0: as asked). */
void api_server_page(struct api_server *s, int n);
/* The next `times` requests whose "METHOD /path?query" contains `match` fail in this way. */
void api_server_fail(struct api_server *s, const char *match, enum api_fault fault, int status,
		     int seconds, int times);
/* Nothing more of that. */
void api_server_heal(struct api_server *s);
/* Forgets all history: watches from before get 410, as after etcd's compaction. */
void api_server_compact(struct api_server *s);
/* Refuses connections and closes those that are open, until up again; objects stay. */
void api_server_down(struct api_server *s, bool down);

/* Objects from the test's side; `path` is the collection's with namespace. */
void api_server_put(struct api_server *s, const char *path, const char *json);
void api_server_delete(struct api_server *s, const char *path, const char *name);
/* Merges a JSON patch; returns false when there is no such object. */
bool api_server_patch(struct api_server *s, const char *path, const char *name, const char *json);
/* A copy, or NULL. */
cJSON *api_server_get(struct api_server *s, const char *path, const char *name);
int api_server_count(struct api_server *s, const char *path);
/* Calls fn for a copy of each object. */
void api_server_each(struct api_server *s, const char *path,
		     void (*fn)(void *arg, const cJSON *object), void *arg);
/* Lines of a pod's log, each with its time before it; `ended`: no more come.  A pod without any
 * has a container that waits to start. */
void api_server_log(struct api_server *s, const char *pod, const char *lines, bool ended);
/* Requests so far whose "METHOD /path" contains `match`. */
int api_server_seen(struct api_server *s, const char *match);

#endif
