/* SPDX-License-Identifier: Apache-2.0 */
/* Splits CSV lines into fields by TensorFlow's rules: quotes enclose whole fields, "" within them
 * is one quote, spaces are part of the field. */
#ifndef MU_TASK_KERNELS_IO_CSV_FIELDS_H
#define MU_TASK_KERNELS_IO_CSV_FIELDS_H

#include "lib/tensor/tensor.h"

enum { CSV_MAX_COLUMNS = 4096 };

struct csv_columns {
	char delim;
	bool quotes;
	bool exclude; /* `select` lists the columns to skip */
	bool dataset; /* CSVDataset: an empty line is one empty field; errors have other texts */
	unsigned max_fields; /* in a dataset: fields of a record */
	struct mu_span na;
	int n_select; /* 0: all columns */
	int64_t select[CSV_MAX_COLUMNS];
};
/* Checks that `select` is strictly increasing and not negative. */
int csv_check_columns(const struct csv_columns *k, struct mu_err *err);

struct csv_fields {
	struct mu_buf *list;
	unsigned n, cap;
};
void csv_fields_fini(struct csv_fields *f);
/* Splits a line into its selected fields. */
int csv_split(struct mu_span line, const struct csv_columns *k, struct csv_fields *f,
	      struct mu_err *err);
/* Stores field i as element `at` of out.  An empty or NA field is the element of default_value; it
 * is an error if default_value has none. */
int csv_store(const struct csv_fields *f, const struct csv_columns *k, unsigned i,
	      const struct mu_tensor *default_value, struct mu_tensor *out, int64_t at,
	      struct mu_err *err);

#endif
