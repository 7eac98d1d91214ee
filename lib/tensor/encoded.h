/* SPDX-License-Identifier: Apache-2.0 */
/* Objects that may leave their process: bytes, and the name of what they say.  Who knows the name
 * makes of them what they stand for; to all others, a checkpoint among them, they are bytes. */
#ifndef MU_TENSOR_ENCODED_H
#define MU_TENSOR_ENCODED_H

#include "lib/base/buf.h"
#include "lib/tensor/object.h"

struct mu_encoded {
	struct mu_object object;
	char *kind;
	struct mu_buf bytes;
};

/* Copies the kind, takes the bytes. */
struct mu_object *mu_encoded_new(struct mu_span kind, struct mu_buf *bytes);
const struct mu_encoded *mu_encoded_of(const struct mu_object *o); /* NULL: it is no such object */

/* The body of a VariantTensorDataProto. */
void mu_encoded_write(struct mu_buf *b, const struct mu_encoded *e);
int mu_encoded_parse(struct mu_object **out, struct mu_span proto, struct mu_err *err);

#endif
