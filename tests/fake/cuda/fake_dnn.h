/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of the stand-in's cuDNN. */
#ifndef MU_TESTS_FAKE_DNN_H
#define MU_TESTS_FAKE_DNN_H

#include <stdbool.h>
#include <stdlib.h>

#include "task/kernels/engine/cuda/types.h"
#include "tests/fake/cuda/fake_cuda.h"

struct library {
	void *stream;
};
struct tensor {
	int format, type, n, c, h, w;
};

int fake_dnn_give(void **out, size_t bytes);
int fake_dnn_take_back(void *what);
/* A descriptor of this struct: how it is made and given back. */
#define FAKE_DNN_MAKER(kind)                                                                       \
	int fake_##kind##_new(void **out)                                                          \
	{                                                                                          \
		return fake_dnn_give(out, sizeof(struct kind));                                    \
	}                                                                                          \
	int fake_##kind##_free(void *what)                                                         \
	{                                                                                          \
		return fake_dnn_take_back(what);                                                   \
	}

/* All of it on the device. */
bool fake_dnn_holds(cuda_ptr at, int type, size_t a, size_t b, size_t c, size_t d);
bool fake_dnn_is_tensor(cuda_ptr at, const struct tensor *t);
bool fake_dnn_is_number(const void *at, int type, double wanted);

#define FAKE_DNN_MADE(kind)                                                                        \
	int fake_##kind##_new(void **out);                                                         \
	int fake_##kind##_free(void *what);
FAKE_DNN_MADE(tensor)
FAKE_DNN_MADE(filter)
FAKE_DNN_MADE(conv)
FAKE_DNN_MADE(pool)

/* ---- fake_dnn_layers.c ---- */

int fake_pool_set(void *pool, int mode, int nan, int size_h, int size_w, int pad_h, int pad_w,
		  int stride_h, int stride_w);
int fake_pool(void *library, void *pool, const void *alpha, void *x_is, cuda_ptr x,
	      const void *beta, void *y_is, cuda_ptr y);
int fake_pool_back(void *library, void *pool, const void *alpha, void *y_is, cuda_ptr y,
		   void *dy_is, cuda_ptr dy, void *x_is, cuda_ptr x, const void *beta, void *dx_is,
		   cuda_ptr dx);
int fake_norm_derive(void *channels, void *image, int mode);
int fake_norm_train(void *library, int mode, const void *alpha, const void *beta, void *x_is,
		    cuda_ptr x, void *y_is, cuda_ptr y, void *channels, cuda_ptr scale,
		    cuda_ptr offset, double factor, cuda_ptr mean, cuda_ptr variance,
		    double epsilon, cuda_ptr own_mean, cuda_ptr own_inverse);
int fake_norm_back(void *library, int mode, const void *alpha, const void *beta,
		   const void *alpha_sums, const void *beta_sums, void *x_is, cuda_ptr x,
		   void *dy_is, cuda_ptr dy, void *dx_is, cuda_ptr dx, void *channels,
		   cuda_ptr scale, cuda_ptr dscale, cuda_ptr doffset, double epsilon,
		   cuda_ptr own_mean, cuda_ptr own_inverse);

#endif
