/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of a function of a graph's library, as servers expand SymbolicGradient. */
#ifndef MU_LIB_GRAD_FUNCTION_GRADIENT_H
#define MU_LIB_GRAD_FUNCTION_GRADIENT_H

#include "lib/graph/library.h"

/* Returns a new body (library.h) for the function (x…, dy…) -> dx… of the function y… = f(x…) with
 * this body.  Each output of f has a dy, and each argument a dx.  A dx on which no dy
 * depends is zeros.  A body with a while loop, or with an op without a gradient, fails with
 * UNIMPLEMENTED. */
int mu_function_gradient(const struct mu_graph *body, struct mu_graph **out, struct mu_err *err);

#endif
