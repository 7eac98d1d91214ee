/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 in the alphabet that is safe in URLs, and what else comes as text: examples in JSON. */
#include "task/kernels/formats/base64.h"

#include "task/kernels/args.h"
#include "task/kernels/elems.h"
#include "task/kernels/formats/json_example.h"
#include "task/kernels/kernel_table.h"

static int each(struct kernel_call *c, bool encode, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	bool pad = args_attr_bool(c->node, "pad", false);
	MU_AUTO_BUF b = {0};
	struct mu_tensor *out;
	int rc;

	if ((rc = args_type(c, 0, MU_STRING, err)) ||
	    (rc = kernel_out(c, 0, MU_STRING, &in->shape, &out, err)))
		return rc;
	for (int64_t i = 0; i < in->shape.count; i++) {
		mu_buf_clear(&b);
		if (encode)
			base64_encode(&b, elems_span(in, i), pad);
		else if ((rc = base64_decode(&b, elems_span(in, i), false, err)))
			return rc;
		mu_string_set(&MU_DATA(struct mu_string, out)[i], b.data ? b.data : "", b.len);
	}
	return 0;
}

static int encode(struct kernel_call *c, struct mu_err *err)
{
	return each(c, true, err);
}

static int decode(struct kernel_call *c, struct mu_err *err)
{
	return each(c, false, err);
}

static int decode_examples(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	MU_AUTO_BUF b = {0};
	struct mu_tensor *out;
	int rc;

	if ((rc = args_type(c, 0, MU_STRING, err)) ||
	    (rc = kernel_out(c, 0, MU_STRING, &in->shape, &out, err)))
		return rc;
	for (int64_t i = 0; i < in->shape.count; i++) {
		mu_buf_clear(&b);
		if ((rc = json_example(&b, elems_span(in, i), err)))
			return mu_wrap(err, "Error while parsing JSON");
		mu_string_set(&MU_DATA(struct mu_string, out)[i], b.data ? b.data : "", b.len);
	}
	return 0;
}

static const struct kernel rows[] = {
    {"EncodeBase64", .run = encode},
    {"DecodeBase64", .run = decode},
    {"DecodeJSONExample", .run = decode_examples},
};
KERNEL_TABLE(base64, rows)
