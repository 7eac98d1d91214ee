/* SPDX-License-Identifier: Apache-2.0 */
#define LOOPS_NAME    loops_generic
#define LOOPS_VARIANT "cpu-generic"
#include "task/kernels/engine/loops/body.h"
