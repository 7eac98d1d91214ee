/* SPDX-License-Identifier: Apache-2.0 */
/* All kernels, one unit: compiled by nvcc to the image of the plug-in, and by the C compiler for the
 * tests (tests/fake/cuda/kernels.c). */
#include "task/kernels/cuda/conv.h"
#include "task/kernels/cuda/elementwise.h"
#include "task/kernels/cuda/matmul.h"
#include "task/kernels/cuda/move.h"
#include "task/kernels/cuda/norm.h"
#include "task/kernels/cuda/places.h"
#include "task/kernels/cuda/pool.h"
#include "task/kernels/cuda/random.h"
#include "task/kernels/cuda/rank.h"
#include "task/kernels/cuda/reduce.h"
#include "task/kernels/cuda/resize.h"
#include "task/kernels/cuda/rows.h"
#include "task/kernels/cuda/scan.h"
#include "task/kernels/cuda/scatter.h"
#include "task/kernels/cuda/segment.h"
#include "task/kernels/cuda/update.h"
