/* SPDX-License-Identifier: Apache-2.0 */
/* Lists and watches the objects of one kind.
 *
 * kube_lines splits a byte stream into lines.  kube_list reads a list page by page.  kube_reflector
 * is a thread that lists and watches until the client stops, and calls a handler. */
#ifndef MU_LIB_KUBE_KUBE_STREAM_H
#define MU_LIB_KUBE_KUBE_STREAM_H

#include "lib/kube/kube_client.h"

/* ---- lines of JSON ---- */
typedef int kube_line_fn(void *arg, const char *line, size_t len, struct mu_err *err);
struct kube_lines {
	struct mu_buf rest; /* start of a line */
	size_t piece_max;   /* a longer line is passed in pieces of this size; 0: it is an error */
	kube_line_fn *line; /* empty lines are skipped */
	void *arg;
};
/* A kube_chunk_fn: feeds a chunk of any size; by default a line over 8 MiB is an error. */
int kube_lines_feed(void *lines, const char *data, size_t len, struct mu_err *err);

/* ---- lists ---- */
typedef void kube_item_fn(void *arg, const cJSON *object);
/* Calls `item` for each object of all pages.  Pages are smaller if a response is too large.
 * *version is new memory.  An expired continue token (410) is OUT_OF_RANGE: list again. */
int kube_list(struct kube_client *c, const char *path, const char *selector, kube_item_fn *item,
	      void *arg, char **version, struct mu_err *err);

/* ---- watch events ---- */
enum kube_change { KUBE_ADDED, KUBE_MODIFIED, KUBE_DELETED, KUBE_BOOKMARK };
/* Reads {"type":…,"object":…}.  An ERROR event becomes an error with its message (410:
 * OUT_OF_RANGE). */
int kube_event_read(const cJSON *json, enum kube_change *change, const cJSON **object,
		    struct mu_err *err);

/* ---- reflector ---- */
struct kube_reflector {
	struct kube_client *client;
	const char *name;     /* for the log: "pods" */
	char *path;           /* "/api/v1/pods" */
	const char *selector; /* label selector, escaped; NULL: none */
	/* The handler; called from the reflector's thread only. */
	void (*list_begin)(void *arg);                     /* a full list starts */
	void (*on_upsert)(void *arg, const cJSON *object); /* listed, added or changed */
	void (*on_delete)(void *arg, const cJSON *object); /* deleted */
	void (*list_end)(void *arg); /* the list is complete; unlisted objects are deleted */
	void *arg;
	/* private */
	char *version;
	bool list_again;        /* the version is too old, or a watch from it keeps failing */
	_Atomic bool synced;    /* one full list was delivered */
	_Atomic int n_failures; /* attempts since the last success */
};
/* Runs until the client is stopped; a start routine for pthread_create. */
void *kube_reflector_run(void *reflector);

#endif
