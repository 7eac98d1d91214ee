/* SPDX-License-Identifier: Apache-2.0 */
/* Stand-ins for what libpng, zlib and cJSON read and write, in programs that are built without
 * them: kernels that GPU tests never run refer to these functions. */
#include "lib/base/err.h"
#include "lib/io/json.h"
#include "lib/io/png.h"
#include "lib/io/unpack.h"

static int without(struct mu_err *err)
{
	return mu_fail(err, MU_UNIMPLEMENTED,
		       "this program is built without libpng, zlib and cJSON");
}

int mu_png_write(struct mu_buf *out, const void *pixels, const struct mu_png_shape *s,
		 struct mu_err *err)
{
	return without(err);
}

int mu_png_open(struct mu_png *p, struct mu_span file, struct mu_err *err)
{
	return without(err);
}

int mu_png_read(struct mu_png *p, unsigned channels, unsigned bits, void *out, struct mu_err *err)
{
	return without(err);
}

void mu_png_fini(struct mu_png *p)
{
}

int mu_unpack_open(FILE **out, const char *path, struct mu_span packing, struct mu_err *err)
{
	return without(err);
}

int mu_json_parse(struct mu_doc **out, struct mu_span text, const char *source, struct mu_err *err)
{
	return without(err);
}
