/* SPDX-License-Identifier: Apache-2.0 */
/* BMP files to pixels. */
#include "lib/io/bmp.h"
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/image/image.h"

bool image_is_bmp(const struct kernel_call *c)
{
	const struct mu_tensor *in = kernel_in(c, 0);

	return in->dtype == MU_STRING && !in->shape.rank && elems_span(in, 0).len >= 2 &&
	       memcmp(elems_span(in, 0).data, "BM", 2) == 0;
}

int image_from_bmp(struct kernel_call *c, enum mu_dtype t, struct mu_err *err)
{
	int64_t channels = args_attr_int(c->node, "channels", 0);
	struct mu_tensor *out;
	struct mu_shape shape;
	struct mu_bmp bmp;
	int rc;

	if (channels && channels != 3 && channels != 4)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "`channels` must be 0, 3 or 4 for BMP, but got %lld",
			       (long long)channels);
	if ((rc = mu_bmp_open(&bmp, elems_span(kernel_in(c, 0), 0), err)))
		return rc;
	unsigned n = channels ? (unsigned)channels : bmp.channels;
	if ((rc = mu_shape_set(&shape, 3, (int64_t[]){bmp.height, bmp.width, n}, err)) ||
	    (rc = kernel_out(c, 0, MU_UINT8, &shape, &out, err)))
		return rc;
	mu_bmp_pixels(&bmp, n, out->data);
	return image_widen(c, t, err);
}

static int decode(struct kernel_call *c, struct mu_err *err)
{
	int rc = args_type(c, 0, MU_STRING, err);

	if (rc || (rc = args_rank(c, 0, 0, err)))
		return rc;
	if (!image_is_bmp(c))
		return image_unknown(c, err);
	return image_from_bmp(c, MU_UINT8, err);
}

static const struct kernel rows[] = {
    {"DecodeBmp", KERNEL_EXPENSIVE, .run = decode},
};
KERNEL_TABLE(image_bmp, rows)
