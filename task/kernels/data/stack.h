/* SPDX-License-Identifier: Apache-2.0 */
/* Batches several elements into one. */
#ifndef MU_TASK_KERNELS_DATA_STACK_H
#define MU_TASK_KERNELS_DATA_STACK_H

#include "task/kernels/data/dataset.h"

/* Stacks component k of n elements.  by_count: the shapes may differ if the numbers of values are
 * equal. */
int stack_elements(struct mu_tensor *const *element, int64_t n, unsigned k, bool by_count,
		   struct mu_tensor *out, struct mu_err *err);
/* Draws up to `want` elements with `next` and stacks them.  Returns 1, or 0 at the end; with
 * drop_remainder also if there are fewer elements.  padded: pads the elements as the parameters of
 * a PaddedBatchDataset require. */
typedef int draw_element_fn(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err);
int draw_batch(struct dataset_iterator *it, int64_t want, bool drop_remainder, bool padded,
	       draw_element_fn *next, struct mu_tensor *out, struct mu_err *err);

#endif
