/* SPDX-License-Identifier: Apache-2.0 */
/* Objects as the API server keeps them: protobuf, which the kinds that come with Kubernetes can be
 * had in.  It is half the bytes of JSON, what is not wanted is passed over in one step, and the
 * server writes an event once for all watchers that read it so, its own controllers among them.
 *
 *	an object   "k8s\0", then runtime.Unknown { raw = 2 }: the message itself
 *	a list      the same, its message { metadata = 1, items = 2 … }, as it comes
 *	a watch     frames, four bytes of length before each: metav1.WatchEvent { type = 1,
 *	            object = 2 { raw = 1 } }, the object as above
 *
 * They become the trees that kube_json makes of the same members, but that a time is a number, and
 * that a text which is empty is left out, as JSON mostly does.
 */
#ifndef KUBE_PB_H
#define KUBE_PB_H

#include <cjson/cJSON.h>

#include "lib/kube/kube_json.h"

/* Whether what begins with this byte is one of these; labelled: its Content-Type says so, which
 * whoever stands before a server may have changed.  JSON never begins with a 'k', and frames of a
 * watch begin with a zero, those of less than 16 MiB. */
bool kube_pb_begins(char first, bool labelled);
/* The object with what `fields` names; NULL when it is none, or the fields have no numbers. */
cJSON *kube_pb(struct mu_span text, const struct kube_fields *fields);
/* Likewise of a message that nothing is around. */
cJSON *kube_pb_message(struct mu_span message, const struct kube_fields *fields);
/* Likewise of a watch event, as {"type":…,"object":…}; an error's object is a metav1.Status. */
cJSON *kube_pb_event(struct mu_span frame, const struct kube_fields *fields);
/* Whether it is UTF-8, without zeros. */
bool kube_pb_is_text(struct mu_span text);
/* Of metav1.Status, in either form: its code, reason and message. */
extern const struct kube_fields kube_pb_status[];

/* ---- watches, as they come ---- */
typedef int kube_frame_fn(void *arg, struct mu_span frame, struct mu_err *err);
struct kube_frames {
	struct mu_buf rest; /* to be freed */
	kube_frame_fn *frame;
	void *arg;
};
/* A kube_chunk_fn: feeds a chunk of any size; a frame over 8 MiB is an error. */
int kube_frames_feed(void *frames, const char *data, size_t len, struct mu_err *err);

/* ---- lists, as they come ---- */
enum kube_pb_place { KUBE_PB_MAGIC, KUBE_PB_OUTER, KUBE_PB_LIST };
struct kube_pb_items {
	struct mu_buf rest; /* free with kube_pb_items_fini */
	cJSON *around; /* {"metadata":{"continue":…,"resourceVersion":…}}, once it has come */
	kube_element_fn *fn; /* gets each item's message */
	void *arg;
	enum kube_pb_place place;
	uint64_t left; /* of the list */
	bool whole;    /* it has come to its end */
};
/* A kube_chunk_fn. */
int kube_pb_items_feed(void *items, const char *data, size_t len, struct mu_err *err);
void kube_pb_items_fini(struct kube_pb_items *items);

#endif
