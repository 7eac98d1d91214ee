/* SPDX-License-Identifier: Apache-2.0 */
/* What the readers of data sets share. */
#ifndef CLIENT_DATA_DATASET_H
#define CLIENT_DATA_DATASET_H

#include "muster/data.h"

/* Room for so many rows; their values are still to be set, and classes. */
int labelled_make(struct mu_dataset *d, int64_t rows, int64_t features, struct mu_err *err);
/* bytes.c: what the bytes of x stand for when they are divided by scale; a row of them. */
void bytes_scale(struct mu_dataset *d, double scale);
void bytes_row(const struct mu_dataset *d, const uint8_t *from, float *to);
/* Whole, not negative, and below a limit that a typing error in a column number would break. */
bool labelled_is_class(double label);

#endif
