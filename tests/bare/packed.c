/* SPDX-License-Identifier: Apache-2.0 */
/* What zlib reads and writes, in programs that are built without it: kernels that a test of the
 * GPU's never runs name these functions. */
#include "lib/base/err.h"
#include "lib/io/png.h"
#include "lib/io/unpack.h"

static int no_zlib(struct mu_err *err)
{
	return mu_fail(err, MU_UNIMPLEMENTED, "this program is built without zlib");
}

int mu_png_write(struct mu_buf *out, const void *pixels, const struct mu_png_shape *s,
		 struct mu_err *err)
{
	return no_zlib(err);
}

int mu_png_open(struct mu_png *p, struct mu_span file, struct mu_err *err)
{
	return no_zlib(err);
}

unsigned mu_png_channels(const struct mu_png *p)
{
	return 0;
}

int mu_png_rows(struct mu_png *p, struct mu_err *err)
{
	return no_zlib(err);
}

int mu_png_pixels(const struct mu_png *p, unsigned channels, unsigned bits, void *out,
		  struct mu_err *err)
{
	return no_zlib(err);
}

void mu_png_fini(struct mu_png *p)
{
}

int mu_unpack_open(FILE **out, const char *path, struct mu_span packing, struct mu_err *err)
{
	return no_zlib(err);
}
