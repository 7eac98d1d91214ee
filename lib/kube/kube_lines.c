/* SPDX-License-Identifier: Apache-2.0 */
/* A watch is one JSON object a line, cut anywhere by the network.  A line within one
 * chunk is passed without a copy. */
#include "lib/kube/kube_stream.h"

enum { LINE_MAX_BYTES = 8 << 20 };

static int deliver(struct kube_lines *l, const char *line, size_t len, struct mu_err *err)
{
	if (len && line[len - 1] == '\r')
		len--;
	return len ? l->line(l->arg, line, len, err) : 0;
}

int kube_lines_feed(void *lines, const char *data, size_t len, struct mu_err *err)
{
	struct kube_lines *l = lines;

	while (len) {
		const char *newline = memchr(data, '\n', len);
		size_t n = newline ? (size_t)(newline - data) : len;

		if (l->rest.len + n > LINE_MAX_BYTES)
			return mu_fail(err, MU_RESOURCE_EXHAUSTED,
				       "a watch event of more than %d MiB", LINE_MAX_BYTES >> 20);
		if (!newline || l->rest.len)
			mu_buf_put(&l->rest, data, n);
		if (!newline)
			return 0;
		MU_RETURN_IF_ERROR(l->rest.len ? deliver(l, l->rest.data, l->rest.len, err)
					       : deliver(l, data, n, err));
		mu_buf_clear(&l->rest);
		data += n + 1;
		len -= n + 1;
	}
	return 0;
}
