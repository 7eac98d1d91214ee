/* SPDX-License-Identifier: Apache-2.0 */
/* Slices of partitioned variables, in three forms.  mu_slice: from SaveV2's shape_and_slices.
 * bundle_slice: TensorSliceProto, where length -1 is the whole dimension.  box: resolved to start
 * and length, for intersection and copying.  Private to the bundle files. */
#ifndef MU_LIB_CHECKPOINT_BUNDLE_SLICE_H
#define MU_LIB_CHECKPOINT_BUNDLE_SLICE_H

#include "lib/checkpoint/bundle_table.h"

/* Field numbers of SavedTensorSlices and its messages, the V1 format. */
enum {
	SLICES_META = 1,
	SLICES_DATA = 2,
	META_TENSOR = 1,
	META_VERSIONS = 2,
	TENSOR_NAME = 1,
	TENSOR_SHAPE = 2,
	TENSOR_TYPE = 3,
	TENSOR_SLICE = 4,
	DATA_NAME = 1,
	DATA_SLICE = 2,
	DATA_VALUES = 3,
};

struct box {
	int rank;
	int64_t start[MU_MAX_RANK], length[MU_MAX_RANK]; /* resolved: no -1 */
};
/* OUT_OF_RANGE if the slice exceeds the shape. */
int box_of_bundle_slice(struct box *out, const struct bundle_slice *e, const struct mu_shape *full,
			struct mu_err *err);
void box_of_slice(struct box *out, const struct mu_slice *s);
struct bundle_slice bundle_slice_of(const struct mu_slice *s);
/* Writes a TensorSliceProto as the field `number`. */
void bundle_slice_write(struct mu_buf *b, uint32_t number, const struct bundle_slice *e);
/* Parses the body of a TensorSliceProto; false: malformed. */
bool bundle_slice_parse(struct mu_span s, struct bundle_slice *out);
/* Computes the intersection; false if it is empty. */
bool box_intersect(struct box *out, const struct box *a, const struct box *b);
int64_t box_count(const struct box *b);
/* Copies the box `common` of the variable from a tensor with from_box to a tensor with to_box. */
void box_copy(struct mu_tensor *to, const struct box *to_box, const struct mu_tensor *from,
	      const struct box *from_box, const struct box *common);

#endif
