/* SPDX-License-Identifier: Apache-2.0 */
/* The static shape rules named in the op table.  A rule sees a struct mu_shape_ctx and fills what
 * it can of ctx->out; what it leaves is unknown.  It fails only on what could never run. */
#ifndef MU_OPS_SHAPE_H
#define MU_OPS_SHAPE_H

#include "lib/ops/op_def.h"

#endif
