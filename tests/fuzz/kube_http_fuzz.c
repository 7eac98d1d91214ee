/* SPDX-License-Identifier: Apache-2.0 */
/* What a server may answer: it reads the same wherever the network cuts it. */
#include <stdint.h>
#include <stdlib.h>

#include "lib/kube/kube_http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int collect(void *arg, const char *data, size_t len, struct mu_err *err)
{
	mu_buf_put(arg, data, len);
	return 0;
}

static int feed(struct kube_http *h, struct mu_buf *body, const char *data, size_t size,
		size_t piece)
{
	int rc = 0;

	*h = (struct kube_http){.body = collect, .arg = body};
	for (size_t at = 0; at < size && rc == 0; at += piece)
		rc = kube_http_feed(h, data + at, size - at < piece ? size - at : piece, NULL);
	kube_http_fini(h);
	return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	MU_AUTO_BUF whole = {0};
	MU_AUTO_BUF cut = {0};
	struct kube_http a, b;
	int rc = feed(&a, &whole, (const char *)data, size, size ? size : 1);

	if (feed(&b, &cut, (const char *)data, size, 3) != rc || a.status != b.status ||
	    (rc == 0 && a.state != b.state) || !mu_span_eq(mu_buf_span(&whole), mu_buf_span(&cut)))
		abort();
	return 0;
}
