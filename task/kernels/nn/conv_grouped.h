/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MU_TASK_KERNELS_NN_CONV_GROUPED_H
#define MU_TASK_KERNELS_NN_CONV_GROUPED_H

#include "task/kernels/nn/conv.h"

/* True for groups of few filters, float or double. */
bool conv_grouped_supports(const struct conv *g, enum conv_direction direction);
/* Bytes of working memory. */
size_t conv_grouped_scratch(const struct conv *g);
/* Like conv_plain, in the calling thread. */
void conv_grouped(const struct conv *g, enum conv_direction direction, char *x, char *w, char *y,
		  char *scratch);

#endif
