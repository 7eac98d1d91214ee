/* SPDX-License-Identifier: Apache-2.0 */
/* Internal functions of the cuDNN fake. */
#ifndef MU_TESTS_FAKE_CUDA_FAKE_DNN_H
#define MU_TESTS_FAKE_CUDA_FAKE_DNN_H

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

int fake_dnn_create_descriptor(void **out, size_t bytes);
int fake_dnn_take_back(void *what);
/* Defines the create and destroy functions of a descriptor type. */
#define FAKE_DNN_MAKER(kind)                                                                       \
	int fake_##kind##_new(void **out)                                                          \
	{                                                                                          \
		return fake_dnn_create_descriptor(out, sizeof(struct kind));                       \
	}                                                                                          \
	int fake_##kind##_free(void *what)                                                         \
	{                                                                                          \
		return fake_dnn_take_back(what);                                                   \
	}

/* True if the whole tensor is in device memory. */
bool fake_dnn_holds(cuda_ptr at, int type, size_t a, size_t b, size_t c, size_t d);
bool fake_dnn_is_tensor(cuda_ptr at, const struct tensor *t);
bool fake_dnn_is_number(const void *at, int type, double wanted);

#define FAKE_DNN_MADE(kind)                                                                        \
	int fake_##kind##_new(void **out);                                                         \
	int fake_##kind##_free(void *what);
FAKE_DNN_MADE(tensor)
FAKE_DNN_MADE(filter)
FAKE_DNN_MADE(conv)

#endif
