/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a request to the server of probes: there is one whole answer, or the request is not
 * whole; a body is a part of what came. */
#include <stdint.h>
#include <stdlib.h>

#include "lib/base/http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void say(void *ctx, const struct mu_http_request *rq, struct mu_http_answer *out)
{
	const struct mu_buf *in = ctx;
	const char *body = rq->body.data;

	if (strlen(rq->method) > 7 || strlen(rq->path) > 255 || strchr(rq->path, '?'))
		abort();
	if (body < in->data || rq->body.len > (size_t)(in->data + in->len - body))
		abort();
	out->status = 200;
	mu_buf_put(&out->body, body, rq->body.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	MU_AUTO_BUF in = {0};
	MU_AUTO_BUF out = {0};

	mu_buf_put(&in, data, size);
	if (!mu_http_reply(&in, say, &in, &out))
		return 0;
	if (strncmp(out.data, "HTTP/1.1 ", 9) != 0 || !strstr(out.data, "\r\n\r\n"))
		abort();
	return 0;
}
