/* SPDX-License-Identifier: Apache-2.0 */
/* What an API server, or whoever answers in its place, may send as protobuf: a watch and a list
 * must cut the same wherever the network cuts them, and pods and nodes go into the cache. */
#include <stdint.h>
#include <stdlib.h>

#include "lib/kube/kube_pb.h"
#include "operator/control/cache.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct kube_fields *const kinds[] = {cache_pod_fields, cache_node_fields,
						  cache_owned_fields};

static void print(struct mu_buf *out, cJSON *object)
{
	MU_AUTO_FREE char *text = object ? cJSON_PrintUnformatted(object) : NULL;

	cJSON_Delete(object);
	mu_buf_printf(out, "%s\n", text ? text : "none");
}

static int item(void *out, struct mu_span message, struct mu_err *err)
{
	for (unsigned i = 0; i < MU_COUNT(kinds); i++)
		print(out, kube_pb_message(message, kinds[i]));
	return 0;
}

static int frame(void *out, struct mu_span text, struct mu_err *err)
{
	for (unsigned i = 0; i < MU_COUNT(kinds); i++)
		print(out, kube_pb_event(text, kinds[i]));
	return 0;
}

/* Fed in steps, until one is refused; both say what they made of it. */
static void cut(struct mu_span text, size_t step, struct mu_buf *watch, struct mu_buf *list)
{
	struct kube_frames frames = {.frame = frame, .arg = watch};
	struct kube_pb_items items = {.fn = item, .arg = list};
	int watching = 0, listing = 0;

	for (size_t at = 0; at < text.len; at += step) {
		size_t n = text.len - at < step ? text.len - at : step;

		if (watching == 0)
			watching = kube_frames_feed(&frames, text.data + at, n, NULL);
		if (listing == 0)
			listing = kube_pb_items_feed(&items, text.data + at, n, NULL);
	}
	mu_buf_printf(watch, "%d", watching);
	mu_buf_printf(list, "%d", items.whole && listing == 0);
	if (items.around)
		print(list, mu_steal(&items.around));
	mu_buf_fini(&frames.rest);
	kube_pb_items_fini(&items);
}

static void same(const struct mu_buf *a, const struct mu_buf *b)
{
	if (a->len != b->len || memcmp(a->data, b->data, a->len) != 0)
		abort();
}

static void nothing(void *arg, const char *key)
{
}

static void nothing_of_pod(void *arg, const char *key, enum pod_news news)
{
}

static void into_the_cache(struct mu_span text)
{
	cJSON *pod = kube_pb(text, cache_pod_fields), *node = kube_pb(text, cache_node_fields);
	struct cache c;

	cache_init(&c, nothing, NULL);
	c.pod_changed = nothing_of_pod;
	if (pod) {
		cache_pod_seen(&c, pod);
		cache_pod_gone(&c, pod);
	}
	if (node)
		cache_node_seen(&c, node);
	cache_fini(&c);
	cJSON_Delete(pod);
	cJSON_Delete(node);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mu_span text = {(const char *)data, size};
	MU_AUTO_BUF watch = {0};
	MU_AUTO_BUF list = {0};
	MU_AUTO_BUF watch_cut = {0};
	MU_AUTO_BUF list_cut = {0};

	cut(text, size + 1, &watch, &list);
	cut(text, 1 + size % 7, &watch_cut, &list_cut);
	same(&watch, &watch_cut);
	same(&list, &list_cut);
	into_the_cache(text);
	return 0;
}
