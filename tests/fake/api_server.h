/* SPDX-License-Identifier: Apache-2.0 */
/* A scripted Kubernetes API server in the process of the test. It stores objects of any kind, lists
 * them in pages, streams watches with history, and injects faults. It has no schema and no
 * admission. A test is one program, so it includes the .c file. */
#ifndef MU_TESTS_FAKE_API_SERVER_H
#define MU_TESTS_FAKE_API_SERVER_H

#include <cjson/cJSON.h>
#include <stdbool.h>

struct api_server;

enum api_fault {
	API_STATUS,        /* respond with `status` (and Retry-After: `seconds` if not 0) */
	API_TOO_LARGE,     /* respond as if etcd rejected the size of the object */
	API_HANG_UP,       /* close the connection without a response */
	API_LOSE_ANSWER,   /* execute the request, then close the connection without a response */
	API_CUT,           /* watches and logs: close the connection within the next line */
	API_GONE,          /* watches: an ERROR event with 410 */
	API_SILENT_DELETE, /* watches: drop the next event */
};

struct api_server *api_server_start(int port); /* 0: any free port */
void api_server_stop(struct api_server *s);
int api_server_port(struct api_server *s);
/* Limits pages to n objects (0: as requested). */
void api_server_page(struct api_server *s, int n);
/* Makes the next `times` requests whose "METHOD /path?query" contains `match` fail. */
void api_server_fail(struct api_server *s, const char *match, enum api_fault fault, int status,
		     int seconds, int times);
/* Removes all faults. */
void api_server_heal(struct api_server *s);
/* Deletes the history: older watches get 410, as after a compaction of etcd. */
void api_server_compact(struct api_server *s);
/* Refuses and closes connections until it is up again; objects are kept. */
void api_server_down(struct api_server *s, bool down);

/* Direct access to objects; `path` is the collection, with the namespace. */
void api_server_put(struct api_server *s, const char *path, const char *json);
void api_server_delete(struct api_server *s, const char *path, const char *name);
/* Applies a JSON merge patch; false if the object does not exist. */
bool api_server_patch(struct api_server *s, const char *path, const char *name, const char *json);
/* Returns a copy of the object, or NULL. */
cJSON *api_server_get(struct api_server *s, const char *path, const char *name);
int api_server_count(struct api_server *s, const char *path);
/* Calls fn for a copy of each object. */
void api_server_each(struct api_server *s, const char *path,
		     void (*fn)(void *arg, const cJSON *object), void *arg);
/* Appends lines with timestamps to a pod's log; `ended`: the log is complete. A pod without a log
 * has a container that waits to start. */
void api_server_log(struct api_server *s, const char *pod, const char *lines, bool ended);
/* Number of requests so far whose "METHOD /path" contains `match`. */
int api_server_seen(struct api_server *s, const char *match);

#endif
