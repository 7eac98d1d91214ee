/* SPDX-License-Identifier: Apache-2.0 */
/* Functions shared by the readers of data sets. */
#ifndef MU_CLIENT_DATA_DATASET_H
#define MU_CLIENT_DATA_DATASET_H

#include "muster/data.h"

/* Allocates rows. The caller sets the values, the labels and `classes`. */
int dataset_alloc(struct mu_dataset *d, int64_t rows, int64_t features, struct mu_err *err);
/* bytes.c: bytes_table_init computes the float for each byte value; bytes_to_floats converts one
 * row. */
void bytes_table_init(struct mu_dataset *d, double scale);
void bytes_to_floats(const struct mu_dataset *d, const uint8_t *from, float *to);
/* True for an integer from 0 to MAX_CLASSES. */
bool dataset_is_class(double label);

#endif
