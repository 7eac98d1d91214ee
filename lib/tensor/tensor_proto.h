/* SPDX-License-Identifier: Apache-2.0 */
/* Hand-written encoding of TensorProto and TensorShapeProto.
 *
 * The parser accepts every form that TensorFlow writes: tensor_content, or typed lists.  The last
 * value of a list repeats to fill the shape; an empty list means zeros.  Element counts are checked
 * against the message size.  A repeated value may fill a tensor of up to mu_tensor_limit bytes.
 */
#ifndef MU_LIB_TENSOR_TENSOR_PROTO_H
#define MU_LIB_TENSOR_TENSOR_PROTO_H

#include "lib/base/pb.h"
#include "lib/tensor/tensor.h"

int mu_tensor_parse(struct mu_tensor *out, struct mu_span proto, struct mu_err *err);
int mu_shape_parse(struct mu_shape *out, struct mu_span proto, struct mu_err *err); /* all known */
int mu_pshape_parse(struct mu_pshape *out, struct mu_span proto, struct mu_err *err);

/* Writes the body of a TensorProto.  Plain types go to tensor_content. */
void mu_tensor_write(struct mu_buf *b, const struct mu_tensor *t);
/* Writes a TensorProto without the bytes of tensor_content, which the caller sends next from
 * t->data without a copy.  Returns the number of these bytes.  0: b has the whole message, as for
 * strings. */
size_t mu_tensor_write_head(struct mu_buf *b, const struct mu_tensor *t);
void mu_shape_write(struct mu_buf *b, const struct mu_shape *s); /* body of a TensorShapeProto */
void mu_pshape_write(struct mu_buf *b, const struct mu_pshape *s);

#endif
