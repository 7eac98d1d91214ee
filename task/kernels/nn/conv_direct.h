/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions as sums over the input itself, without a matrix of patches; for conv_fast.c. */
#ifndef MU_TASK_KERNELS_NN_CONV_DIRECT_H
#define MU_TASK_KERNELS_NN_CONV_DIRECT_H

#include "task/kernels/nn/conv.h"

struct tile_loops;

struct conv_direct {
	struct conv g; /* for an input's gradient: the convolution of the output's gradient */
	bool rotated;  /* … the filter is rotated by 180 degrees, channels and filters swapped */
	size_t size;   /* bytes of an element */
	const struct tile_loops *tile;
	int64_t width, strips;      /* filters of a strip; number of strips */
	int64_t run, taps;          /* elements under a row of the filter, and under all of it */
	int64_t pitch;              /* elements of a row of a band */
	int64_t rows;               /* output rows of a band, at most */
	int64_t image_bands, bands; /* bands of an image, and of the batch */
	size_t band_size;           /* bytes of the copy of a band */
};

/* Returns false for shapes for which patches are as fast: groups, dilation, outputs of few columns,
 * and rows that do not fit a cache. Also for an input's gradient with strides or few channels, and
 * for the gradient of a large filter. */
bool conv_direct_init(struct conv_direct *d, const struct conv *g, enum conv_direction direction);
/* Computes the output from the input, or the input's gradient from the output's. */
int conv_direct_run(struct kernel_call *c, const struct conv_direct *d, const void *from,
		    const void *filter, void *to, struct mu_err *err);
/* Computes the filter's gradient from bands [from, to), from < to, in the calling thread. */
void conv_direct_filter(const struct conv_direct *d, const char *input, const char *grad,
			int64_t from, int64_t to, char *filter);

#endif
