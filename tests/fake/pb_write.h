/* SPDX-License-Identifier: Apache-2.0 */
/* Objects as protobuf, the way a real API server writes them, by the tables that the reader has:
 * what is in no table is not there, and in its place come fields that nobody knows.  Included by
 * tests. */
#ifndef TESTS_FAKE_PB_WRITE_H
#define TESTS_FAKE_PB_WRITE_H

#include <stdio.h>

#include "lib/base/pb.h"
#include "lib/kube/kube_http.h"
#include "lib/kube/kube_pb.h"
#include "operator/control/cache.h"

static const struct {
	const char *collection;
	const struct kube_fields *fields;
} pb_kinds[] = {
    {"/api/v1/pods", cache_pod_fields},
    {"/api/v1/services", cache_owned_fields},
    {"/api/v1/nodes", cache_node_fields},
    {"/apis/networking.k8s.io/v1/networkpolicies", cache_owned_fields},
};

static inline void pb_write_time(struct mu_buf *b, uint32_t number, const cJSON *time)
{
	double t = cJSON_IsNumber(time) ? time->valuedouble
					: time_from_rfc3339(cJSON_GetStringValue(time));
	size_t at = mu_pb_begin(b, number);

	if (t != 0) { /* a time that is none is empty */
		mu_pb_put_int(b, 1, (int64_t)t);
		mu_pb_put_int(b, 2, 0);
	}
	mu_pb_end(b, at);
}

static inline void pb_write_entry(struct mu_buf *b, const struct kube_fields *f, const cJSON *item)
{
	size_t at = mu_pb_begin(b, f->number), amount;

	mu_pb_put_str(b, 1, item->string);
	if (f->form == KUBE_AMOUNTS) {
		amount = mu_pb_begin(b, 2);
		mu_pb_put_str(b, 1, item->valuestring);
		mu_pb_end(b, amount);
	} else {
		mu_pb_put_str(b, 2, item->valuestring);
	}
	mu_pb_end(b, at);
}

static inline void pb_write_message(struct mu_buf *b, const cJSON *object,
				    const struct kube_fields *fields);

static inline void pb_write_below(struct mu_buf *b, const struct kube_fields *f,
				  const cJSON *object)
{
	size_t at = mu_pb_begin(b, f->number);

	pb_write_message(b, object, f->below);
	mu_pb_end(b, at);
}

static inline void pb_write_field(struct mu_buf *b, const struct kube_fields *f, const cJSON *value)
{
	const cJSON *item;

	switch (f->form) {
	case KUBE_TEXT:
		mu_pb_put_str(b, f->number, cJSON_IsString(value) ? value->valuestring : "");
		return;
	case KUBE_NUMBER:
		mu_pb_put_int(b, f->number, (int64_t)cJSON_GetNumberValue(value));
		return;
	case KUBE_TRUTH:
		mu_pb_put_int(b, f->number, cJSON_IsTrue(value));
		return;
	case KUBE_TIME:
		pb_write_time(b, f->number, value);
		return;
	case KUBE_OBJECT:
		pb_write_below(b, f, value);
		return;
	case KUBE_LIST:
		cJSON_ArrayForEach(item, value) pb_write_below(b, f, item);
		return;
	case KUBE_TEXTS:
	case KUBE_AMOUNTS:
		cJSON_ArrayForEach(item, value) pb_write_entry(b, f, item);
		return;
	case KUBE_WORDS: /* no table of the cache has these */
	case KUBE_AMOUNT:
	case KUBE_PORT:
	case KUBE_WITHIN:
		return;
	}
}

static inline void pb_write_message(struct mu_buf *b, const cJSON *object,
				    const struct kube_fields *fields)
{
	mu_pb_put_str(b, 1000, "a field of some later version");
	for (; fields->name; fields++) {
		const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, fields->name);

		if (value && !cJSON_IsNull(value))
			pb_write_field(b, fields, value);
		else if (fields->form == KUBE_TEXT) /* as the server does with what is not set */
			mu_pb_put_str(b, fields->number, "");
	}
	mu_pb_put_int(b, 1001, -1);
}

/* With what is around an object. */
static inline void pb_write(struct mu_buf *b, const cJSON *object, const struct kube_fields *fields)
{
	size_t at;

	mu_buf_put(b, "k8s", 4);
	at = mu_pb_begin(b, 1);
	mu_pb_put_str(b, 1, "v1");
	mu_pb_put_str(b, 2, "Kind");
	mu_pb_end(b, at);
	at = mu_pb_begin(b, 2);
	pb_write_message(b, object, fields);
	mu_pb_end(b, at);
	mu_pb_put_str(b, 3, "");
	mu_pb_put_str(b, 4, "");
}

/* As a frame of a watch. */
static inline void pb_write_event(struct mu_buf *b, const char *type, const cJSON *object,
				  const struct kube_fields *fields)
{
	size_t head = b->len, at, raw;
	uint32_t n;

	mu_buf_put(b, "\0\0\0", 4);
	mu_pb_put_str(b, 1, type);
	at = mu_pb_begin(b, 2);
	raw = mu_pb_begin(b, 1);
	pb_write(b, object, fields);
	mu_pb_end(b, raw);
	mu_pb_end(b, at);
	n = (uint32_t)(b->len - head - 4);
	for (int i = 0; i < 4; i++)
		b->data[head + (size_t)i] = (char)(n >> (24 - 8 * i));
}

#endif
