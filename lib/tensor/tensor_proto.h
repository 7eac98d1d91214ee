/* SPDX-License-Identifier: Apache-2.0 */
/* TensorProto and TensorShapeProto, read and written by hand.
 *
 * Reading accepts every form TensorFlow writes: tensor_content, or the typed lists in which the
 * last value repeats to fill the shape and an empty list means zeros.  Element counts are checked
 * against the bytes that are there (a splat may be as large as mu_tensor_limit allows).
 */
#ifndef MU_TENSOR_TENSOR_PROTO_H
#define MU_TENSOR_TENSOR_PROTO_H

#include "lib/base/pb.h"
#include "lib/tensor/tensor.h"

int mu_tensor_parse(struct mu_tensor *out, struct mu_span proto, struct mu_err *err);
int mu_shape_parse(struct mu_shape *out, struct mu_span proto, struct mu_err *err); /* all known */
int mu_pshape_parse(struct mu_pshape *out, struct mu_span proto, struct mu_err *err);

/* Writes the body of a TensorProto.  Plain types go to tensor_content. */
void mu_tensor_write(struct mu_buf *b, const struct mu_tensor *t);
/* Writes dtype and shape and, for a plain type, the tag and length of tensor_content but not the
 * content itself, which the caller sends after it from t->data: the zero-copy form.  Returns the
 * number of payload bytes left out (0: everything is in b, as for strings). */
size_t mu_tensor_write_head(struct mu_buf *b, const struct mu_tensor *t);
void mu_shape_write(struct mu_buf *b, const struct mu_shape *s); /* body of a TensorShapeProto */
void mu_pshape_write(struct mu_buf *b, const struct mu_pshape *s);

#endif
