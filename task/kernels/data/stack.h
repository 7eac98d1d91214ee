/* SPDX-License-Identifier: Apache-2.0 */
/* Batches several elements into one. */
#ifndef MU_TASK_KERNELS_DATA_STACK_H
#define MU_TASK_KERNELS_DATA_STACK_H

#include "task/kernels/data/dataset.h"

/* Component k of n elements as one tensor.  by_count: their shapes may differ where their numbers
 * of values are the same. */
int stack_elements(struct mu_tensor *const *element, int64_t n, unsigned k, bool by_count,
		   struct mu_tensor *out, struct mu_err *err);
/* A batch of `want` elements that `next` gives; 0 at the end, where a part of a batch counts unless
 * `whole`.  padded: d is a padded batch, whose parameters say to which shapes. */
typedef int draw_element_fn(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err);
int draw_batch(struct dataset_iterator *it, int64_t want, bool drop_remainder, bool padded,
	       draw_element_fn *next, struct mu_tensor *out, struct mu_err *err);

#endif
