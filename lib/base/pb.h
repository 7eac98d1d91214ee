/* SPDX-License-Identifier: Apache-2.0 */
/* Hand-written protocol-buffer wire format, for messages that are frequent, large or recursive.
 *
 * Reading: walk the fields of a message with mu_pb_next; each field borrows the message's bytes.
 *
 *	struct mu_pb m = mu_pb_of(span);
 *	struct mu_pb_field f;
 *	while (mu_pb_next(&m, &f)) {
 *		if (f.number == 1)
 *			name = f.bytes;
 *		if (f.number == 2)
 *			n = (int64_t)f.value;
 *	}
 *	if (m.bad)
 *		return mu_fail(err, MU_INVALID_ARGUMENT, "… is truncated");
 *
 * f.bytes is empty unless f.type is MU_PB_BYTES.  Callers that recurse into nested messages must
 * stop at MU_PB_MAX_DEPTH.
 *
 * Writing appends to a mu_buf.  A nested message is opened, filled and closed:
 *	size_t at = mu_pb_begin(b, 2); … mu_pb_end(b, at);
 */
#ifndef MU_LIB_BASE_PB_H
#define MU_LIB_BASE_PB_H

#include "lib/base/buf.h"

enum { MU_PB_MAX_DEPTH = 64 };
enum mu_pb_type { MU_PB_VARINT = 0, MU_PB_FIXED64 = 1, MU_PB_BYTES = 2, MU_PB_FIXED32 = 5 };

struct mu_pb {
	const char *at, *end;
	bool bad; /* malformed or truncated */
};
struct mu_pb_field {
	uint32_t number;
	enum mu_pb_type type;
	uint64_t value;       /* varint, fixed64, fixed32 */
	struct mu_span bytes; /* MU_PB_BYTES, else empty with data "" */
};

struct mu_pb mu_pb_of(struct mu_span s);
bool mu_pb_next(struct mu_pb *m, struct mu_pb_field *f);
/* Counts the length-delimited fields of this number. */
unsigned mu_pb_count(struct mu_span message, uint32_t number);
bool mu_pb_varint(struct mu_pb *m, uint64_t *out); /* one raw varint, for packed lists */
bool mu_pb_fixed32(struct mu_pb *m, uint32_t *out);
/* Reads the next value of a packed list of numbers with this wire type; false at its end. */
bool mu_pb_packed_next(struct mu_pb *m, enum mu_pb_type wire, uint64_t *out);
float mu_pb_float(const struct mu_pb_field *f);   /* of a FIXED32 field */
double mu_pb_double(const struct mu_pb_field *f); /* of a FIXED64 field */

/* These functions also write zeros, which proto3 omits; callers skip them where that matters. */
void mu_pb_put_varint(struct mu_buf *b, uint64_t v); /* raw */
void mu_pb_put_tag(struct mu_buf *b, uint32_t number, enum mu_pb_type type);
void mu_pb_put_int(struct mu_buf *b, uint32_t number, int64_t v);
void mu_pb_put_bytes(struct mu_buf *b, uint32_t number, struct mu_span s);
void mu_pb_put_str(struct mu_buf *b, uint32_t number, const char *s);
void mu_pb_put_float(struct mu_buf *b, uint32_t number, float v);
void mu_pb_put_double(struct mu_buf *b, uint32_t number, double v);
void mu_pb_put_fixed32(struct mu_buf *b, uint32_t number, uint32_t v);
void mu_pb_put_fixed64(struct mu_buf *b, uint32_t number, uint64_t v);
size_t mu_pb_begin(struct mu_buf *b, uint32_t number); /* opens a nested message */
void mu_pb_end(struct mu_buf *b, size_t at);           /* closes it */
size_t mu_pb_varint_size(uint64_t v);

#endif
