/* SPDX-License-Identifier: Apache-2.0 */
/* EncodeBase64 and DecodeBase64 (the URL-safe alphabet), DecodeJSONExample, DecodeCompressed. */
#include "task/kernels/text/base64.h"

#include "lib/io/decompress.h"
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/io/json_example.h"

/* Converts a string. */
typedef int text_fn(struct mu_buf *out, struct mu_span in, struct mu_err *err);

static int map_strings(struct kernel_call *c, text_fn *convert_text, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	MU_AUTO_BUF b = {0};
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(kernel_out(c, 0, MU_STRING, &in->shape, &out, err));
	for (int64_t i = 0; i < in->shape.count; i++) {
		mu_buf_clear(&b);
		MU_RETURN_IF_ERROR(convert_text(&b, elems_span(in, i), err));
		mu_string_set(&MU_DATA(struct mu_string, out)[i], b.data, b.len);
	}
	return 0;
}

enum { MAX_DECOMPRESSED_BYTES = 1 << 30 };

static int decode_compressed(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	struct mu_span kind = mu_span_of(args_attr_string(c->node, "compression_type", ""));
	struct mu_tensor *out;
	int window;

	if (mu_compression_window(kind, &window, err))
		return mu_invalid(err, "Only ZLIB, GZIP or NONE are supported compressions");
	MU_RETURN_IF_ERROR(kernel_out(c, 0, MU_STRING, &in->shape, &out, err));
	for (int64_t i = 0; i < in->shape.count; i++) {
		MU_AUTO_BUF b = {0};
		MU_RETURN_IF_ERROR(
		    mu_decompress_bytes(&b, elems_span(in, i), kind, MAX_DECOMPRESSED_BYTES, err));
		mu_string_set(&MU_DATA(struct mu_string, out)[i], b.data, b.len);
	}
	return 0;
}

static int encode_padded(struct mu_buf *out, struct mu_span in, struct mu_err *err)
{
	base64_encode(out, in, true);
	return 0;
}

static int encode_unpadded(struct mu_buf *out, struct mu_span in, struct mu_err *err)
{
	base64_encode(out, in, false);
	return 0;
}

static int decode_url_safe(struct mu_buf *out, struct mu_span in, struct mu_err *err)
{
	return base64_decode(out, in, false, err);
}

static int convert_example(struct mu_buf *out, struct mu_span in, struct mu_err *err)
{
	return json_example(out, in, err) ? mu_wrap(err, "Error while parsing JSON") : 0;
}

static int encode_base64(struct kernel_call *c, struct mu_err *err)
{
	return map_strings(
	    c, args_attr_bool(c->node, "pad", false) ? encode_padded : encode_unpadded, err);
}

KERNEL_RUN(decode_base64, map_strings(c, decode_url_safe, err))
KERNEL_RUN(decode_examples, map_strings(c, convert_example, err))

static const struct kernel rows[] = {
    {"EncodeBase64", .run = encode_base64},
    {"DecodeBase64", .run = decode_base64},
    {"DecodeJSONExample", .run = decode_examples},
    {"DecodeCompressed", .run = decode_compressed},
};
KERNEL_TABLE(text_base64_ops, rows)
