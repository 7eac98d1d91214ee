/* SPDX-License-Identifier: Apache-2.0 */
/* Functions shared by the subcommands of `muster checkpoint`. */
#ifndef CLI_CHECKPOINT_H
#define CLI_CHECKPOINT_H

#include "lib/tensor/tensor.h"

bool checkpoint_has_numbers(const struct mu_tensor *t);
double checkpoint_value(const struct mu_tensor *t, int64_t i); /* NAN: the tensor has no numbers */
/* As diff(1): 0 if the checkpoints are equal, 1 if they differ, 2 on failure. */
int checkpoint_diff(const char *a, const char *b);

#endif
