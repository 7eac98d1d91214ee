/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of the API with only the members that somebody looks at.
 *
 * A pod is some 6 KB of which we want twenty values: its tree costs more than the network it came
 * by.  Here what is not wanted is stepped over, not read; it must only be JSON as far as strings
 * and brackets go.
 */
#ifndef KUBE_JSON_H
#define KUBE_JSON_H

#include <cjson/cJSON.h>

#include "lib/base/buf.h"

/* What a field is in protobuf (kube_pb.h). */
enum kube_form {
	KUBE_TEXT,
	KUBE_NUMBER,
	KUBE_TRUTH,
	KUBE_TIME,   /* becomes a number of seconds, where JSON has it as a text */
	KUBE_OBJECT, /* these two with `below` */
	KUBE_LIST,
	KUBE_WORDS,   /* a list of texts */
	KUBE_TEXTS,   /* a map to texts */
	KUBE_AMOUNT,  /* a quantity, which becomes a text */
	KUBE_AMOUNTS, /* a map to quantities */
	KUBE_PORT,    /* a number or a name */
	KUBE_WITHIN,  /* an object with `below` that JSON does not know: its members stand beside it
		       */
};
/* The wanted members of an object; a row without a name ends them.  Those of an array's elements
 * are named as the array's own. */
struct kube_fields {
	const char *name;
	const struct kube_fields *below; /* NULL: all that is there */
	uint32_t number;                 /* in protobuf; 0: it has none */
	enum kube_form form;
};
/* `below` of a member that is wanted as it stands: a cJSON_Raw.  Its brackets close, and that is
 * all that is known of it. */
extern const struct kube_fields kube_as_text[];
/* Whether objects of these can be had as protobuf too. */
static inline bool kube_fields_in_protobuf(const struct kube_fields *fields)
{
	return fields && fields->number;
}

/* The object in `text` with what `fields` names (NULL: everything); NULL when it is none. */
cJSON *kube_json(struct mu_span text, const struct kube_fields *fields);
/* Likewise of a watch event {"type":…,"object":…}; an error's object is kept whole. */
cJSON *kube_json_event(struct mu_span text, const struct kube_fields *fields);

/* ---- for those who make such objects ---- */
/* A node with that text, which cJSON_malloc made, or NULL, and then there is no node. */
cJSON *kube_json_text(char *text);
/* Appends it under a name that outlives it. */
void kube_json_put(cJSON *to, const char *name, cJSON *item);

/* ---- lists, as they come ---- */
/* Cuts {"kind":…,"metadata":…,"items":[…]} into its items; the rest gathers in `envelope`. */
typedef int kube_element_fn(void *arg, struct mu_span element, struct mu_err *err);
struct kube_items {
	struct mu_buf envelope, element; /* free both with kube_items_fini */
	kube_element_fn *fn;
	void *arg;
	int depth;
	bool in_string, escaped, in_items;
};
/* A kube_chunk_fn. */
int kube_items_feed(void *items, const char *data, size_t len, struct mu_err *err);
void kube_items_fini(struct kube_items *items);

#endif
