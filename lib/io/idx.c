/* SPDX-License-Identifier: Apache-2.0 */
/* Format: two zero bytes, element type, rank, dimensions, elements.  Numbers are big-endian. */
#include "lib/io/idx.h"

#include <arpa/inet.h>
#include <endian.h>
#include <string.h>

#include "lib/io/gz.h"

enum { MAX_FILE = 1 << 30 };

static enum mu_dtype type_of(unsigned char code)
{
	switch (code) {
	case 0x08:
		return MU_UINT8;
	case 0x09:
		return MU_INT8;
	case 0x0b:
		return MU_INT16;
	case 0x0c:
		return MU_INT32;
	case 0x0d:
		return MU_FLOAT;
	case 0x0e:
		return MU_DOUBLE;
	}
	return MU_DT_INVALID;
}

#define TO_HOST(bits)                                                                              \
	for (int64_t i = 0; i < t->shape.count; i++)                                               \
	MU_DATA(uint##bits##_t, t)[i] = be##bits##toh(MU_DATA(uint##bits##_t, t)[i])

static void big_endian_to_host(struct mu_tensor *t)
{
	switch (mu_dtype_size(t->dtype)) {
	case 2:
		TO_HOST(16);
		break;
	case 4:
		TO_HOST(32);
		break;
	case 8:
		TO_HOST(64);
		break;
	}
}

static int idx_read_header(struct mu_span file, const char *path, enum mu_dtype *dtype,
			   struct mu_shape *shape, size_t *header_bytes, struct mu_err *err)
{
	const unsigned char *p = (const unsigned char *)file.data;

	if (file.len < 4 || p[0] || p[1] || type_of(p[2]) == MU_DT_INVALID || p[3] > MU_MAX_RANK)
		return mu_fail(err, MU_DATA_LOSS,
			       "%s: offset 0: not an IDX file: expected two bytes of 0, the code "
			       "of a type (8, 9 or 11 to 14) and at most %d dimensions",
			       path, MU_MAX_RANK);
	*dtype = type_of(p[2]);
	*header_bytes = 4 + (size_t)p[3] * 4;
	*shape = mu_shape_scalar();
	if (file.len < *header_bytes)
		return mu_fail(err, MU_DATA_LOSS, "%s: offset %zu: the dimensions are truncated",
			       path, file.len);
	for (unsigned d = 0; d < p[3]; d++) {
		uint32_t dim;
		memcpy(&dim, p + 4 + 4 * d, 4);
		int rc = mu_shape_push(shape, ntohl(dim), err);
		if (rc)
			return mu_wrap(err, "%s: offset %u", path, 4 + 4 * d);
	}
	return 0;
}

/* Allocates a tensor for the elements, if their size equals n_bytes, the bytes after the header. */
static int new_tensor(struct mu_tensor *out, enum mu_dtype dtype, const struct mu_shape *shape,
		      size_t header_bytes, uint64_t n_bytes, const char *path, struct mu_err *err)
{
	size_t size = mu_dtype_size(dtype);

	if (n_bytes % size || n_bytes / size != (uint64_t)shape->count)
		return mu_fail(
		    err, MU_DATA_LOSS,
		    "%s: offset %zu: shape %s of %s does not fit the %llu bytes that follow", path,
		    header_bytes, mu_shape_str(shape), mu_dtype_name(dtype),
		    (unsigned long long)n_bytes);
	if (mu_tensor_new(out, dtype, shape, err))
		return mu_wrap(err, "%s", path);
	return 0;
}

int mu_idx_read(struct mu_tensor *out, const char *path, struct mu_err *err)
{
	MU_AUTO_BUF file = {0};
	struct mu_shape shape = {0};
	enum mu_dtype dtype = MU_DT_INVALID;
	struct mu_tensor t;
	size_t header_bytes = 0;
	int rc;

	if ((rc = mu_gz_read_file(&file, path, MAX_FILE, err)) ||
	    (rc = idx_read_header(mu_buf_span(&file), path, &dtype, &shape, &header_bytes, err)) ||
	    (rc = new_tensor(&t, dtype, &shape, header_bytes, file.len - header_bytes, path, err)))
		return rc;
	memcpy(t.data, file.data + header_bytes, file.len - header_bytes);
	big_endian_to_host(&t);
	*out = t;
	return 0;
}
