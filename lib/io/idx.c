/* SPDX-License-Identifier: Apache-2.0 */
/* Two zero bytes, element type, rank, the dimensions, the elements; numbers are big-endian. */
#include "lib/io/idx.h"

#include <arpa/inet.h>
#include <endian.h>

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

static void to_host(struct mu_tensor *t)
{
	for (int64_t i = 0; i < t->shape.count; i++)
		switch (mu_dtype_size(t->dtype)) {
		case 2:
			MU_DATA(uint16_t, t)[i] = be16toh(MU_DATA(uint16_t, t)[i]);
			break;
		case 4:
			MU_DATA(uint32_t, t)[i] = be32toh(MU_DATA(uint32_t, t)[i]);
			break;
		case 8:
			MU_DATA(uint64_t, t)[i] = be64toh(MU_DATA(uint64_t, t)[i]);
			break;
		}
}

static int read_head(struct mu_span file, const char *path, enum mu_dtype *dtype,
		     struct mu_shape *shape, size_t *head, struct mu_err *err)
{
	const unsigned char *p = (const unsigned char *)file.data;

	if (file.len < 4 || p[0] || p[1] || type_of(p[2]) == MU_DT_INVALID || p[3] > MU_MAX_RANK)
		return mu_fail(err, MU_DATA_LOSS, "%s: offset 0: not an IDX file", path);
	*dtype = type_of(p[2]);
	*head = 4 + (size_t)p[3] * 4;
	*shape = mu_shape_scalar();
	if (file.len < *head)
		return mu_fail(err, MU_DATA_LOSS, "%s: offset %zu: the dimensions are cut short",
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

int mu_idx_read(struct mu_tensor *out, const char *path, struct mu_err *err)
{
	MU_AUTO_BUF file = {0};
	struct mu_shape shape = {0};
	enum mu_dtype dtype = MU_DT_INVALID;
	struct mu_tensor t;
	size_t head = 0;
	int rc;

	if ((rc = mu_gz_read_file(&file, path, MAX_FILE, err)) ||
	    (rc = read_head(mu_buf_span(&file), path, &dtype, &shape, &head, err)))
		return rc;
	size_t have = file.len - head, size = mu_dtype_size(dtype);
	if (have % size || have / size != (uint64_t)shape.count)
		return mu_fail(
		    err, MU_DATA_LOSS,
		    "%s: offset %zu: shape %s of %s does not fit the %zu bytes that follow", path,
		    head, mu_shape_str(&shape), mu_dtype_name(dtype), have);
	if ((rc = mu_tensor_new(&t, dtype, &shape, err)))
		return mu_wrap(err, "%s", path);
	memcpy(t.data, file.data + head, have);
	to_host(&t);
	*out = t;
	return 0;
}
