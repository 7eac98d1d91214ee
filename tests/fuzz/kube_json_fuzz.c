/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the input as replies of an untrusted API server.  A printed object is unchanged when it is
 * parsed again.  Lines do not depend on how the network splits them. */
#include <stdint.h>
#include <stdlib.h>

#include "lib/kube/kube_stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A printed object is unchanged when it is parsed again. */
static void check_object(struct mu_span text)
{
	cJSON *once = kube_json(text), *again;
	MU_AUTO_FREE char *a = once ? cJSON_PrintUnformatted(once) : NULL;
	MU_AUTO_FREE char *b = NULL;

	if (!once)
		return;
	cJSON_Delete(once);
	again = kube_json(mu_span_of(a));
	b = cJSON_PrintUnformatted(again);
	cJSON_Delete(again);
	if (!b || strcmp(a, b) != 0)
		abort();
}

static int collect_line(void *arg, const char *line, size_t len, struct mu_err *err)
{
	mu_buf_put(arg, line, len);
	mu_buf_putc(arg, '\n');
	return 0;
}

/* Feeds the text in pieces of `step` bytes. */
static void feed(kube_chunk_fn *fn, void *arg, struct mu_span text, size_t step)
{
	for (size_t at = 0; at < text.len; at += step)
		if (fn(arg, text.data + at, text.len - at < step ? text.len - at : step, NULL) < 0)
			return;
}

static void split_lines(struct mu_span text, size_t step, struct mu_buf *out)
{
	struct kube_lines lines = {.line = collect_line, .arg = out};

	feed(kube_lines_feed, &lines, text, step);
	mu_buf_fini(&lines.rest);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mu_span text = {(const char *)data, size};
	MU_AUTO_BUF whole = {0};
	MU_AUTO_BUF parts = {0};

	check_object(text);
	split_lines(text, size + 1, &whole);
	split_lines(text, 1 + size % 7, &parts);
	if (whole.len != parts.len || (whole.len && memcmp(whole.data, parts.data, whole.len) != 0))
		abort();
	return 0;
}
