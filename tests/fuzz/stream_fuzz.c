/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the input as the frames of a stream, each head by the parser of its type.  The payload
 * length of a parsed tensor must match its header. */
#include <stdint.h>
#include <stdlib.h>

#include "task/peer/stream_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int read_head(const struct stream_header *h, struct mu_span head)
{
	struct stream_tensor tensor;
	struct stream_hello hello;
	struct stream_run run;
	struct mu_err err, run_err;

	switch (h->type) {
	case STREAM_HELLO:
	case STREAM_WELCOME:
		return stream_hello_parse(&hello, head, &err);
	case STREAM_RUN:
		return stream_run_parse(&run, head, &err);
	case STREAM_RUN_DONE:
		return stream_run_done_parse(&run_err, head, &err);
	case STREAM_TENSOR:
		if (stream_tensor_parse(&tensor, h, head, &err))
			return -1;
		if (tensor.raw &&
		    (uint64_t)tensor.shape.count * mu_dtype_size(tensor.dtype) != h->payload_len)
			abort();
		return 0;
	default:
		return 0;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mu_span all = {(const char *)data, size};
	struct stream_header h;
	struct stream_offer offer;

	mu_tensor_limit = 1 << 20;
	stream_offer_parse(&offer, all);
	while (all.len >= STREAM_HEADER && !stream_header_parse(&h, all.data, NULL)) {
		size_t n = STREAM_HEADER + h.head_len;

		if (all.len < n ||
		    read_head(&h, (struct mu_span){all.data + STREAM_HEADER, h.head_len}) ||
		    all.len - n < h.payload_len)
			return 0;
		all.data += n + h.payload_len;
		all.len -= n + h.payload_len;
	}
	return 0;
}
