/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the head of a request to the server of probes: there is one whole answer. */
#include <stdint.h>
#include <stdlib.h>

#include "lib/base/http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void say(void *ctx, const char *method, const char *path, struct mu_http_answer *out)
{
	if (strlen(method) > 7 || strlen(path) > 255 || strchr(path, '?'))
		abort();
	out->status = 200;
	mu_buf_puts(&out->body, path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	MU_AUTO_FREE char *head = mu_xstrndup((const char *)data, size);
	MU_AUTO_BUF out = {0};

	mu_http_reply(head, say, NULL, &out);
	if (strncmp(out.data, "HTTP/1.1 ", 9) != 0 || !strstr(out.data, "\r\n\r\n"))
		abort();
	return 0;
}
