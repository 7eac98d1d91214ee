/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of CSV as fields, the way TensorFlow reads them: quotes only around whole fields, "" within
 * them one quote, spaces kept. */
#ifndef MU_TASK_KERNELS_IO_CSV_FIELDS_H
#define MU_TASK_KERNELS_IO_CSV_FIELDS_H

#include "lib/tensor/tensor.h"

enum { CSV_MAX_COLUMNS = 4096 };

struct csv_columns {
	char delim;
	bool quotes;
	bool exclude;  /* the listed columns are those to skip */
	bool dataset;  /* of a CSVDataset: an empty line is one empty field, and errors have other
			  texts */
	unsigned most; /* in a dataset: fields of a record */
	struct mu_span na;
	int n_select; /* 0: all count */
	int64_t select[CSV_MAX_COLUMNS];
};
/* The columns named rise from 0 up. */
int csv_check_columns(const struct csv_columns *k, struct mu_err *err);

struct csv_fields {
	struct mu_buf *list;
	unsigned n, cap;
};
void csv_fields_fini(struct csv_fields *f);
/* The fields of a line that count. */
int csv_split(struct mu_span line, const struct csv_columns *k, struct csv_fields *f,
	      struct mu_err *err);
/* Field i as element `at` of out, or the one element of `otherwise` where it says nothing. */
int csv_store(const struct csv_fields *f, const struct csv_columns *k, unsigned i,
	      const struct mu_tensor *otherwise, struct mu_tensor *out, int64_t at,
	      struct mu_err *err);

#endif
