/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of the API with only the members that the caller reads. */
#ifndef KUBE_JSON_H
#define KUBE_JSON_H

#include <cjson/cJSON.h>

#include "lib/base/buf.h"

/* The wanted members of an object; a row without a name ends them.  Those of an array's elements
 * are named as the array's own. */
struct kube_fields {
	const char *name;
	const struct kube_fields *below; /* NULL: all that is there */
};

/* The object in `text` with what `fields` names (NULL: everything); NULL when it is none. */
cJSON *kube_json(struct mu_span text, const struct kube_fields *fields);
/* Likewise of a watch event {"type":…,"object":…}; an error's object is kept whole. */
cJSON *kube_json_event(struct mu_span text, const struct kube_fields *fields);

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
