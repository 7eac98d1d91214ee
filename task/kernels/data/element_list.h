/* SPDX-License-Identifier: Apache-2.0 */
/* A growing list of elements, and the dataset of such a list.  Each element has n_out tensors. */
#ifndef MU_TASK_KERNELS_DATA_ELEMENT_LIST_H
#define MU_TASK_KERNELS_DATA_ELEMENT_LIST_H

#include "task/kernels/data/dataset.h"

struct element_list {
	struct mu_tensor *t;
	int64_t n, cap;
};

/* Returns the tensors of the next element, all zero.  The caller fills them and increments l->n. */
struct mu_tensor *element_list_next(struct element_list *l, unsigned n_out);
/* Removes the first n elements. */
void element_list_drop(struct element_list *l, int64_t n, unsigned n_out);
void element_list_fini(struct element_list *l, unsigned n_out);

/* Creates a dataset of the list; takes the elements. */
struct dataset *element_list_dataset_new(struct element_list *l, unsigned n_out);
/* Sets `out` to a variant tensor of such a dataset. */
int element_list_to_dataset(struct element_list *l, unsigned n_out, struct mu_tensor *out,
			    struct mu_err *err);
/* True for the dataset of a list. */
bool dataset_is_list(const struct mu_object *o);

#endif
