/* SPDX-License-Identifier: Apache-2.0 */
/* Serializable variant objects: bytes and the name of their format.  Kernels decode the
 * formats that they support.  Checkpoints and other tasks treat the objects as bytes. */
#ifndef MU_LIB_TENSOR_ENCODED_H
#define MU_LIB_TENSOR_ENCODED_H

#include "lib/base/buf.h"
#include "lib/tensor/object.h"

struct mu_encoded {
	struct mu_object object;
	char *kind;
	struct mu_buf bytes;
};

/* Copies the kind and moves the bytes into the object. */
struct mu_object *mu_encoded_new(struct mu_span kind, struct mu_buf *bytes);
const struct mu_encoded *
mu_encoded_of(const struct mu_object *o); /* NULL: another kind of object */

/* Writes the body of a VariantTensorDataProto. */
void mu_encoded_write(struct mu_buf *b, const struct mu_encoded *e);
int mu_encoded_parse(struct mu_object **out, struct mu_span proto, struct mu_err *err);

#endif
