/* SPDX-License-Identifier: Apache-2.0 */
/* What an API server, or whoever answers in its place, may send: no member comes that
 * was not wanted, and lists and lines come out the same wherever the network cuts them. */
#include <stdint.h>
#include <stdlib.h>

#include "lib/kube/kube_stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct kube_fields name[] = {{.name = "a"}, {0}};
static const struct kube_fields wanted[] = {{.name = "b", .below = name}, {.name = "c"}, {0}};

static void check_members(const cJSON *o, const char *first, const char *second)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, o)
	{
		if (strcmp(item->string, first) != 0 && strcmp(item->string, second) != 0)
			abort();
	}
}

/* There is nothing but the wanted members, and choosing them again changes nothing. */
static void check_object(struct mu_span text)
{
	cJSON *once = kube_json(text, wanted), *again, *item;
	MU_AUTO_FREE char *a = once ? cJSON_PrintUnformatted(once) : NULL;
	MU_AUTO_FREE char *b = NULL;

	if (!once)
		return;
	check_members(once, "b", "c");
	cJSON_ArrayForEach(item, once)
	{
		if (strcmp(item->string, "b") == 0 && cJSON_IsObject(item))
			check_members(item, "a", "a");
	}
	cJSON_Delete(once);
	again = kube_json(mu_span_of(a), wanted);
	b = cJSON_PrintUnformatted(again);
	cJSON_Delete(again);
	if (!b || strcmp(a, b) != 0)
		abort();
}

static int collect(void *arg, struct mu_span element, struct mu_err *err)
{
	mu_buf_put(arg, element.data, element.len);
	mu_buf_putc(arg, '\n');
	return 0;
}

static int collect_line(void *arg, const char *line, size_t len, struct mu_err *err)
{
	return collect(arg, (struct mu_span){line, len}, err);
}

/* Feeds the text in pieces of `step` bytes. */
static void feed(kube_chunk_fn *fn, void *arg, struct mu_span text, size_t step)
{
	for (size_t at = 0; at < text.len; at += step)
		if (fn(arg, text.data + at, text.len - at < step ? text.len - at : step, NULL) < 0)
			return;
}

static void cut(struct mu_span text, size_t step, struct mu_buf *out)
{
	struct kube_items items = {.fn = collect, .arg = out};
	struct kube_lines lines = {.line = collect_line, .arg = out};

	feed(kube_items_feed, &items, text, step);
	kube_items_fini(&items);
	feed(kube_lines_feed, &lines, text, step);
	mu_buf_fini(&lines.rest);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mu_span text = {(const char *)data, size};
	MU_AUTO_BUF whole = {0};
	MU_AUTO_BUF parts = {0};

	check_object(text);
	cut(text, size + 1, &whole);
	cut(text, 1 + size % 7, &parts);
	if (whole.len != parts.len || (whole.len && memcmp(whole.data, parts.data, whole.len) != 0))
		abort();
	return 0;
}
