/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces jpeg.c in a build without libjpeg. */
#include "task/kernels/image/jpeg.h"

static int fail_no_jpeg(struct mu_err *err)
{
	return mu_fail(err, MU_UNIMPLEMENTED,
		       "this build has no JPEG: libjpeg was not there when it was made");
}

int jpeg_shape(struct mu_span file, struct jpeg_shape *out, struct mu_err *err)
{
	return fail_no_jpeg(err);
}

int jpeg_read(struct mu_span file, const struct jpeg_read_options *options, jpeg_alloc_fn *alloc,
	      void *arg, struct mu_err *err)
{
	return fail_no_jpeg(err);
}

int jpeg_write(struct mu_buf *b, const unsigned char *pixels, const struct jpeg_shape *s,
	       const struct jpeg_write_options *options, struct mu_err *err)
{
	return fail_no_jpeg(err);
}
