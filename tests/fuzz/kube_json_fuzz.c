/* SPDX-License-Identifier: Apache-2.0 */
/* What an API server, or whoever answers in its place, may send: choosing members must find what
 * cJSON finds, and lists and lines must come out the same wherever the network cuts them. */
#include <stdint.h>
#include <stdlib.h>

#include "lib/kube/kube_stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct kube_fields name[] = {{.name = "a"}, {0}};
static const struct kube_fields wanted[] = {{.name = "b", .below = name}, {.name = "c"}, {0}};

/* The slow way. */
static void prune(cJSON *o, const struct kube_fields *fields)
{
	for (cJSON *item = o->child, *next; item; item = next) {
		const struct kube_fields *f = fields;

		next = item->next;
		if (cJSON_IsArray(o)) {
			if (cJSON_IsObject(item))
				prune(item, fields);
			continue;
		}
		while (f->name && strcmp(f->name, item->string) != 0)
			f++;
		if (!f->name)
			cJSON_Delete(cJSON_DetachItemViaPointer(o, item));
		else if (f->below && (cJSON_IsObject(item) || cJSON_IsArray(item)))
			prune(item, f->below);
	}
}

static void compare(struct mu_span text)
{
	cJSON *fast = kube_json(text, wanted), *slow;
	MU_AUTO_FREE char *a = fast ? cJSON_PrintUnformatted(fast) : NULL;
	MU_AUTO_FREE char *b = NULL;
	const char *end = NULL;

	cJSON_Delete(fast);
	/* a name may be written with escapes, which we take for another name */
	if (memchr(text.data, '\\', text.len) || memchr(text.data, 0, text.len))
		return;
	/* cJSON takes any control character for a space; JSON has but these, and so have we */
	for (size_t i = 0; i < text.len; i++)
		if ((unsigned char)text.data[i] < ' ' && !strchr("\t\n\r", text.data[i]))
			return;
	slow = cJSON_ParseWithLengthOpts(text.data, text.len, &end, false);
	while (slow && end < text.data + text.len && (unsigned char)*end <= ' ')
		end++;
	if (cJSON_IsObject(slow) && end == text.data + text.len) {
		prune(slow, wanted);
		b = cJSON_PrintUnformatted(slow);
		if (!a || strcmp(a, b) != 0)
			abort();
	}
	cJSON_Delete(slow);
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

	compare(text);
	cut(text, size + 1, &whole);
	cut(text, 1 + size % 7, &parts);
	if (whole.len != parts.len || (whole.len && memcmp(whole.data, parts.data, whole.len) != 0))
		abort();
	return 0;
}
