/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of a function of a graph's library, as servers expand SymbolicGradient. */
#ifndef MU_LIB_GRAD_FUNCTION_GRADIENT_H
#define MU_LIB_GRAD_FUNCTION_GRADIENT_H

#include "lib/graph/library.h"

/* Returns a new body (library.h) for the function (x…, dy…) -> dx… of the function y… = f(x…) with
 * this body.  There is a dy for each output of f, and a dx for each argument.  A dx that no dy
 * depends on is zeros.  A body with a while loop, or with an op without a gradient, fails with
 * UNIMPLEMENTED. */
int mu_function_gradient(const struct mu_graph *body, struct mu_graph **out, struct mu_err *err);

#endif
