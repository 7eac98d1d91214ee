/* SPDX-License-Identifier: Apache-2.0 */
/* What the verbs of `muster checkpoint` share. */
#ifndef CLI_CHECKPOINT_H
#define CLI_CHECKPOINT_H

#include "lib/tensor/tensor.h"

bool checkpoint_has_numbers(const struct mu_tensor *t);
double checkpoint_value(const struct mu_tensor *t, int64_t i); /* NAN: not a number at all */
/* As diff(1): 0 when they are the same, 1 when not. */
int checkpoint_diff(const char *a, const char *b);

#endif
