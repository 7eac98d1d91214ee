/* SPDX-License-Identifier: Apache-2.0 */
/* What a request says, whichever form its body has.  Included by those who answer requests. */
#ifndef TESTS_FAKE_SENT_H
#define TESTS_FAKE_SENT_H

#include "lib/kube/kube_pb.h"
#include "operator/control/render.h"

/* runtime.Unknown { typeMeta = 1, raw = 2 } behind the first four bytes, as one object */
static inline cJSON *sent_protobuf(struct mu_span body, const struct kube_fields *fields)
{
	static const struct kube_fields type[] = {
	    {"apiVersion", NULL, 1, KUBE_TEXT}, {"kind", NULL, 2, KUBE_TEXT}, {0}};
	const struct kube_fields around[] = {
	    {"type", type, 1, KUBE_WITHIN}, {"raw", fields, 2, KUBE_WITHIN}, {0}};

	return fields && body.len > 4
		   ? kube_pb_message((struct mu_span){body.data + 4, body.len - 4}, around)
		   : NULL;
}

/* NULL when it says nothing; path: of a collection, where it is protobuf. */
static inline cJSON *sent_object(const char *path, struct mu_span body)
{
	const char *slash = strrchr(path, '/');

	if (!body.len)
		return NULL;
	return slash && kube_pb_begins(*body.data, false)
		   ? sent_protobuf(body, render_fields(slash + 1))
		   : kube_json(body, NULL);
}

#endif
