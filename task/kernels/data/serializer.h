/* SPDX-License-Identifier: Apache-2.0 */
/* Saves the state of dataset iterators as bytes and restores it, for checkpoints.
 *
 * Each function writes its argument or reads it back, so that one function of a dataset kind does
 * both, in the same order.  The bytes are untrusted input: numbers are checked against bounds, and
 * a size is checked against the remaining bytes before memory is allocated. */
#ifndef MU_TASK_KERNELS_DATA_SERIALIZER_H
#define MU_TASK_KERNELS_DATA_SERIALIZER_H

#include "lib/base/pb.h"
#include "task/kernels/data/dataset.h"

struct element_list;
struct serializer {
	struct mu_buf *to; /* NULL: restores from `from` */
	struct mu_pb from;
	int depth; /* of elements within elements */
};

static inline bool serializer_is_reading(const struct serializer *ser)
{
	return !ser->to;
}
int serializer_fail(struct mu_err *err); /* the error for invalid bytes */
int serialize_number(struct serializer *ser, int64_t *v, int64_t min, int64_t max,
		     struct mu_err *err);
int serialize_word(struct serializer *ser, uint32_t *v, struct mu_err *err);
int serialize_flag(struct serializer *ser, bool *v, struct mu_err *err);
int serialize_span(struct serializer *ser, struct mu_span *s,
		   struct mu_err *err); /* reading borrows */
int serialize_bytes(struct serializer *ser, struct mu_buf *b,
		    struct mu_err *err); /* reading replaces */
/* ---- serialize_element.c ---- */
/* n tensors.  Restoring creates all of them or, after a failure, none. */
int serialize_element(struct serializer *ser, struct mu_tensor *t, unsigned n, struct mu_err *err);
int serialize_element_list(struct serializer *ser, struct element_list *l, unsigned n_out,
			   struct mu_err *err);
/* The state of an iterator and of its input iterators; restoring requires a newly opened iterator.
 */
int serialize_dataset_iterator(struct serializer *ser, struct dataset_iterator *it,
			       struct mu_err *err);
/* The state of an optional iterator; restoring opens or closes it. */
int serialize_optional_iterator(struct serializer *ser, const struct dataset *d,
				struct caller *caller, struct dataset_iterator **it,
				struct mu_err *err);

#endif
