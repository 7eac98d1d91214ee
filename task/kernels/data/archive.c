/* SPDX-License-Identifier: Apache-2.0 */
#include "task/kernels/data/archive.h"

int archive_broken(struct mu_err *err)
{
	return mu_invalid(err, "the iterator's saved state is cut short, or of another pipeline");
}

static int read_varint(struct archive *a, uint64_t *v, struct mu_err *err)
{
	return mu_pb_varint(&a->from, v) ? 0 : archive_broken(err);
}

int archive_number(struct archive *a, int64_t *v, int64_t least, int64_t most, struct mu_err *err)
{
	uint64_t x;

	if (!archive_reads(a)) {
		mu_pb_put_varint(a->to, (uint64_t)*v);
		return 0;
	}
	MU_RETURN_IF_ERROR(read_varint(a, &x, err));
	if ((int64_t)x < least || (int64_t)x > most)
		return archive_broken(err);
	*v = (int64_t)x;
	return 0;
}

int archive_word(struct archive *a, uint32_t *v, struct mu_err *err)
{
	int64_t x = *v;

	MU_RETURN_IF_ERROR(archive_number(a, &x, 0, UINT32_MAX, err));
	*v = (uint32_t)x;
	return 0;
}

int archive_flag(struct archive *a, bool *v, struct mu_err *err)
{
	int64_t x = *v;

	MU_RETURN_IF_ERROR(archive_number(a, &x, 0, 1, err));
	*v = x;
	return 0;
}

int archive_span(struct archive *a, struct mu_span *s, struct mu_err *err)
{
	uint64_t n;

	if (!archive_reads(a)) {
		mu_pb_put_varint(a->to, s->len);
		mu_buf_put(a->to, s->data, s->len);
		return 0;
	}
	MU_RETURN_IF_ERROR(read_varint(a, &n, err));
	if (n > (uint64_t)(a->from.end - a->from.at))
		return archive_broken(err);
	*s = (struct mu_span){a->from.at, n};
	a->from.at += n;
	return 0;
}

int archive_bytes(struct archive *a, struct mu_buf *b, struct mu_err *err)
{
	struct mu_span s = mu_buf_span(b);
	int rc = archive_span(a, &s, err);

	if (rc || !archive_reads(a))
		return rc;
	mu_buf_clear(b);
	mu_buf_put(b, s.data, s.len);
	return 0;
}
