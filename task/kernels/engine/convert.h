/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MU_TASK_KERNELS_ENGINE_CONVERT_H
#define MU_TASK_KERNELS_ENGINE_CONVERT_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/tensor/tensor.h"

/* out[i] = (to) in[i] for plain numeric types, bool and the 16-bit floats.  Returns false if there
 * is no such conversion. */
bool convert(enum mu_dtype to, void *out, enum mu_dtype from, const void *in, int64_t n);
bool convert_supports(enum mu_dtype to, enum mu_dtype from);
/* Element i of a tensor of numbers. */
double convert_element(const struct mu_tensor *t, int64_t i);
/* Converts a tensor: *out is a reference to `in` if it has this type, else new memory. */
int convert_tensor(struct mu_tensor *out, enum mu_dtype to, const struct mu_tensor *in,
		   struct mu_err *err);

/* True if element i, or any element, is 0; for numbers of all types. */
bool convert_is_zero(const struct mu_tensor *t, int64_t i);
bool convert_any_zero(const struct mu_tensor *t);

#endif
