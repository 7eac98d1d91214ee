/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of numbers as comma-separated text, plain or gzipped. */
#ifndef MU_LIB_IO_CSV_H
#define MU_LIB_IO_CSV_H

#include "lib/tensor/tensor.h"

/* Every row must have the same number of fields, each a number.  A heading, empty lines and lines
 * that start with # are skipped.  The result is a double tensor [rows, fields].  Errors name file,
 * line and column.
 * check: (optional) returns true if the caller can use the row, else writes the reason.
 * skip_bad: invalid rows are logged and skipped. */
typedef bool (*mu_csv_check)(const double *row, int64_t fields, char *reason, size_t size);
int mu_csv_read(struct mu_tensor *out, const char *path, mu_csv_check check, bool skip_bad,
		struct mu_err *err);
/* Parses text in memory. */
int mu_csv_parse(struct mu_tensor *out, struct mu_span text, const char *source, mu_csv_check check,
		 bool skip_bad, struct mu_err *err);

#endif
