/* SPDX-License-Identifier: Apache-2.0 */
/* ReadFile, WriteFile, MatchingFiles and ImmutableConst; DecodeRaw and DecodePaddedRaw, which
 * convert bytes to numbers. */
#include <string.h>

#include "lib/io/folders.h"
#include "lib/io/match_files.h"
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/io/file_error.h"

static int read_whole(const char *path, struct mu_buf *b, struct mu_err *err)
{
	return file_error(mu_buf_read_file(b, path, mu_tensor_limit, err), path, err);
}

static int read_file(struct kernel_call *c, struct mu_err *err)
{
	MU_AUTO_FREE char *path = NULL;
	MU_AUTO_BUF b = {0};

	if (kernel_in(c, 0)->shape.rank)
		return mu_invalid(err, "Input filename tensor must be scalar, but had shape: %s",
				  mu_shape_str(&kernel_in(c, 0)->shape));
	MU_RETURN_IF_ERROR(args_string(c, 0, &path, err));
	MU_RETURN_IF_ERROR(read_whole(path, &b, err));
	return kernel_out_string(c, 0, mu_buf_span(&b), err);
}

/* ImmutableConst: reads a tensor's elements from the start of a file. */
static int immutable_const(struct kernel_call *c, struct mu_err *err)
{
	enum mu_dtype type = args_attr_type(c->node, "dtype", MU_FLOAT);
	const struct mu_pshape *want = mu_node_attr(c->node, "shape")->shape;
	struct mu_shape shape;
	struct mu_tensor *out;
	MU_AUTO_BUF b = {0};

	if (!mu_dtype_size(type))
		return mu_invalid(err, "Sorry, %s is not currently supported for ImmutableConstOp.",
				  mu_dtype_name(type));
	if (want->rank < 0)
		return mu_invalid(err, "the shape must be known");
	MU_RETURN_IF_ERROR(mu_shape_set(&shape, want->rank, want->dim, err));
	MU_RETURN_IF_ERROR(
	    read_whole(args_attr_string(c->node, "memory_region_name", ""), &b, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, type, &shape, &out, err));
	if (mu_tensor_bytes(out) > b.len)
		return mu_fail(err, MU_INTERNAL,
			       "Readonly memory region has wrong length (%zu) when allocating %zu",
			       b.len, mu_tensor_bytes(out));
	if (out->shape.count)
		memcpy(out->data, b.data, mu_tensor_bytes(out));
	return 0;
}

static int write_file(struct kernel_call *c, struct mu_err *err)
{
	MU_AUTO_FREE char *path = NULL;

	MU_RETURN_IF_ERROR(args_string(c, 0, &path, err));
	if (kernel_in(c, 1)->shape.count != 1)
		return mu_invalid(err, "Contents tensor must be scalar");
	struct mu_span text = elems_span(kernel_in(c, 1), 0);
	MU_RETURN_IF_ERROR(mu_make_folders(path, err));
	return mu_write_unsynced(path, text.data, text.len, err);
}

static int matching_files(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	struct mu_tensor *out;
	glob_t matches = {0};
	int rc = 0;

	if (in->shape.rank > 1)
		return mu_invalid(
		    err, "Input patterns tensor must be scalar or vector, but had shape: %s",
		    mu_shape_str(&in->shape));
	for (int64_t i = 0; !rc && i < in->shape.count; i++) {
		struct mu_span s = elems_span(in, i);
		MU_AUTO_FREE char *pattern = mu_xstrndup(s.data, s.len);
		rc = mu_match_files(&matches, pattern, err);
	}
	struct mu_shape shape = mu_shape_vec((int64_t)matches.gl_pathc);
	if (!rc && !(rc = kernel_out(c, 0, MU_STRING, &shape, &out, err)))
		for (size_t i = 0; i < matches.gl_pathc; i++)
			mu_string_set(&MU_DATA(struct mu_string, out)[i], matches.gl_pathv[i],
				      strlen(matches.gl_pathv[i]));
	globfree(&matches);
	return rc;
}

static void swap_bytes(char *p, size_t bytes, size_t size)
{
	for (; bytes >= size; bytes -= size, p += size)
		for (size_t i = 0; i < size / 2; i++) {
			char swap = p[i];
			p[i] = p[size - 1 - i];
			p[size - 1 - i] = swap;
		}
}

/* The size of a number; a complex element has two. */
static size_t number_size(enum mu_dtype t)
{
	return mu_dtype_size(mu_dtype_part(t));
}

/* Decodes the first `length` bytes of every string as elements of out_type. Shorter strings are
 * padded with zeros. */
static int file_decode(struct kernel_call *c, size_t length, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	enum mu_dtype t = args_attr_type(c->node, "out_type", MU_UINT8);
	size_t size = mu_dtype_size(t);
	struct mu_shape shape = in->shape;
	struct mu_tensor *out;

	if (!size)
		return args_no_kernel(c, t, err);
	if (length % size)
		return mu_invalid(
		    err, "Input to %s has length %zu that is not a multiple of %zu, the size of %s",
		    c->node->op, length, size, mu_dtype_name(t));
	MU_RETURN_IF_ERROR(mu_shape_push(&shape, (int64_t)(length / size), err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, t, &shape, &out, err));
	for (int64_t i = 0; i < in->shape.count && length; i++) {
		struct mu_span s = elems_span(in, i);
		char *to = (char *)out->data + (size_t)i * length;
		size_t n = s.len < length ? s.len : length;
		memcpy(to, s.data, n);
		memset(to + n, 0, length - n);
		if (!args_attr_bool(c->node, "little_endian", true))
			swap_bytes(to, length, number_size(t));
	}
	return 0;
}

static int decode_raw(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	size_t len = 0;

	for (int64_t i = 0; i < in->shape.count; i++) {
		struct mu_span s = elems_span(in, i);
		if (i && s.len != len)
			return mu_invalid(err,
					  "DecodeRaw requires input strings to all be the same "
					  "size, but element %lld has size %zu != %zu",
					  (long long)i, len, s.len);
		len = s.len;
	}
	return file_decode(c, len, err);
}

static int decode_padded_raw(struct kernel_call *c, struct mu_err *err)
{
	int64_t length;

	MU_RETURN_IF_ERROR(args_int(c, 1, &length, err));
	if (length <= 0)
		return mu_invalid(err, "fixed_length must be greater than 0, not %lld",
				  (long long)length);
	return file_decode(c, (size_t)length, err);
}

static const struct kernel rows[] = {
    {"ReadFile", KERNEL_SLOW, .run = read_file},
    {"WriteFile", KERNEL_SLOW, .run = write_file},
    {"MatchingFiles", KERNEL_SLOW, .run = matching_files},
    {"ImmutableConst", KERNEL_NO_FOLD, .run = immutable_const},
    {"DecodeRaw", .run = decode_raw},
    {"DecodePaddedRaw", .run = decode_padded_raw},
};
KERNEL_TABLE(io_file, rows)
