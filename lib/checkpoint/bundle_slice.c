/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/checkpoint/bundle_slice.h"

#include <ctype.h>

#include "lib/base/pb.h"

static const char *skip_chars(const char *at, const char *end, char c)
{
	while (at < end && *at == c)
		at++;
	return at;
}

static bool parse_number(const char **at, const char *end, int64_t *out)
{
	int64_t v = 0;
	const char *p = *at;

	while (p < end && isdigit((unsigned char)*p)) {
		if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *p - '0', &v))
			return false;
		p++;
	}
	if (p == *at)
		return false;
	*at = p;
	*out = v;
	return true;
}

/* Parses "-" or "start,length" for dimension d of the variable. */
static bool parse_range(const char **at, const char *end, struct mu_slice *s, int d)
{
	s->start[d] = 0;
	s->length[d] = -1;
	if (*at < end && **at == '-') {
		++*at;
		return true;
	}
	if (!parse_number(at, end, &s->start[d]) || *at == end || *(*at)++ != ',' ||
	    !parse_number(at, end, &s->length[d]))
		return false;
	return s->start[d] <= s->full.dim[d] && s->length[d] <= s->full.dim[d] - s->start[d];
}

static bool slice_parse(struct mu_slice *s, struct mu_span spec, struct mu_err *err)
{
	const char *at = spec.data, *end = spec.data + spec.len, *slice_text = end;

	while (slice_text > at && slice_text[-1] != ' ')
		slice_text--;
	s->full = s->shape = mu_shape_scalar();
	for (at = skip_chars(at, slice_text, ' '); at < slice_text;
	     at = skip_chars(at, slice_text, ' ')) {
		int64_t dim;
		if (!parse_number(&at, slice_text, &dim) || mu_shape_push(&s->full, dim, err))
			return false;
	}
	s->is_whole = true;
	at = slice_text;
	for (int d = 0; d < s->full.rank; d++) {
		if ((d && (at == end || *at++ != ':')) || !parse_range(&at, end, s, d))
			return false;
		int64_t n = s->length[d] < 0 ? s->full.dim[d] : s->length[d];
		if (mu_shape_push(&s->shape, n, err))
			return false;
		s->is_whole = s->is_whole && n == s->full.dim[d];
	}
	return at == end;
}

int mu_slice_parse(struct mu_slice *out, bool *is_slice, struct mu_span spec, struct mu_err *err)
{
	struct mu_slice s = {0};

	if (!spec.len) {
		*is_slice = false;
		return 0;
	}
	if (!slice_parse(&s, spec, err))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "'%.*s' is not a shape and slice, like \"10 4 0,5:-\"",
			       spec.len > 200 ? 200 : (int)spec.len, spec.data);
	*out = s;
	*is_slice = true;
	return 0;
}

void bundle_slice_write(struct mu_buf *b, uint32_t number, const struct bundle_slice *e)
{
	size_t slice = mu_pb_begin(b, number);

	for (int d = 0; d < e->rank; d++) {
		size_t at = mu_pb_begin(b, 1);
		if (e->length[d] >= 0) {
			if (e->start[d])
				mu_pb_put_int(b, 1, e->start[d]);
			mu_pb_put_int(b, 2, e->length[d]);
		}
		mu_pb_end(b, at);
	}
	mu_pb_end(b, slice);
}

int box_of_bundle_slice(struct box *out, const struct bundle_slice *e, const struct mu_shape *full,
			struct mu_err *err)
{
	struct box b = {.rank = e->rank};

	if (e->rank != full->rank)
		return mu_fail(err, MU_OUT_OF_RANGE, "a slice has %d dimensions, its variable %d",
			       e->rank, full->rank);
	for (int d = 0; d < e->rank; d++) {
		b.start[d] = e->length[d] < 0 ? 0 : e->start[d];
		b.length[d] = e->length[d] < 0 ? full->dim[d] : e->length[d];
		if (b.start[d] < 0 || b.start[d] > full->dim[d] ||
		    b.length[d] > full->dim[d] - b.start[d])
			return mu_fail(err, MU_OUT_OF_RANGE, "a slice lies outside of shape %s",
				       mu_shape_str(full));
	}
	*out = b;
	return 0;
}

void box_of_slice(struct box *out, const struct mu_slice *s)
{
	*out = (struct box){.rank = s->full.rank};
	for (int d = 0; d < s->full.rank; d++) {
		out->start[d] = s->start[d];
		out->length[d] = s->shape.dim[d];
	}
}

struct bundle_slice bundle_slice_of(const struct mu_slice *s)
{
	struct bundle_slice e = {.rank = s->full.rank};

	memcpy(e.start, s->start, sizeof e.start);
	memcpy(e.length, s->length, sizeof e.length);
	return e;
}

bool box_intersect(struct box *out, const struct box *a, const struct box *b)
{
	struct box m = {.rank = a->rank};

	for (int d = 0; d < a->rank; d++) {
		int64_t a_end = a->start[d] + a->length[d], b_end = b->start[d] + b->length[d];
		m.start[d] = a->start[d] > b->start[d] ? a->start[d] : b->start[d];
		m.length[d] = (a_end < b_end ? a_end : b_end) - m.start[d];
		if (m.length[d] <= 0)
			return false;
	}
	*out = m;
	return true;
}

int64_t box_count(const struct box *b)
{
	int64_t n = 1;

	for (int d = 0; d < b->rank; d++)
		n *= b->length[d];
	return n;
}

/* Returns the offset, in elements, of point `at` of the variable in a tensor with the box `b`. */
static int64_t offset_in(const struct box *b, const int64_t *at)
{
	int64_t o = 0;

	for (int d = 0; d < b->rank; d++)
		o = o * b->length[d] + (at[d] - b->start[d]);
	return o;
}

void box_copy(struct mu_tensor *to, const struct box *to_box, const struct mu_tensor *from,
	      const struct box *from_box, const struct box *common)
{
	int rank = common->rank;
	int64_t at[MU_MAX_RANK], run = rank ? common->length[rank - 1] : 1;
	size_t size = mu_dtype_size(to->dtype);

	memcpy(at, common->start, sizeof at);
	for (;;) {
		int64_t t = offset_in(to_box, at), f = offset_in(from_box, at);
		if (to->dtype == MU_STRING)
			for (int64_t i = 0; i < run; i++) {
				struct mu_string *s = &MU_DATA(struct mu_string, from)[f + i];
				mu_string_set(&MU_DATA(struct mu_string, to)[t + i], s->data,
					      s->len);
			}
		else
			memcpy((char *)to->data + (size_t)t * size,
			       (const char *)from->data + (size_t)f * size, (size_t)run * size);
		int d = rank - 2; /* the next row */
		while (d >= 0 && ++at[d] == common->start[d] + common->length[d]) {
			at[d] = common->start[d];
			d--;
		}
		if (d < 0)
			return;
	}
}
