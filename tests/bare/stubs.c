/* SPDX-License-Identifier: Apache-2.0 */
/* Stubs of the functions that use libpng, zlib and cJSON, for programs that are built without
 * them: kernels that GPU tests never run refer to these functions. */
#include "lib/base/err.h"
#include "lib/io/compress.h"
#include "lib/io/decompress.h"
#include "lib/io/json.h"
#include "lib/io/png.h"
#include "task/kernels/image/gif.h"

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

int mu_decompress_open(FILE **out, const char *path, struct mu_span compression, struct mu_err *err)
{
	return without(err);
}

int mu_compression_window(struct mu_span compression, int *window, struct mu_err *err)
{
	return without(err);
}

int mu_decompress_bytes(struct mu_buf *out, struct mu_span in, struct mu_span compression,
			size_t limit, struct mu_err *err)
{
	return without(err);
}

int mu_compress_create(FILE **out, const char *path, struct mu_span compression, struct mu_err *err)
{
	return without(err);
}

int mu_json_parse(struct mu_doc **out, struct mu_span text, const char *source, struct mu_err *err)
{
	return without(err);
}

int gif_read(struct mu_span file, bool all, gif_alloc_fn *alloc, void *arg, struct mu_err *err)
{
	return without(err);
}
