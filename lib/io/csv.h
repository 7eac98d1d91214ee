/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of numbers as comma-separated text, plain or gzipped. */
#ifndef MU_IO_CSV_H
#define MU_IO_CSV_H

#include "lib/tensor/tensor.h"

/* Every row must have the same number of fields, each a number.  A first row that is no numbers is
 * taken as a heading and left out; empty lines and lines that start with # too.  The result is a
 * double tensor [rows, fields]; a bad field names file, line and column.
 * check (may be NULL): whether a row is one that the caller can use; else it says why not.
 * skip_bad: a bad row is told in the log and left out. */
typedef bool (*mu_csv_check)(const double *row, int64_t fields, char *why, size_t size);
int mu_csv_read(struct mu_tensor *out, const char *path, mu_csv_check check, bool skip_bad,
		struct mu_err *err);
/* The same from text at hand. */
int mu_csv_parse(struct mu_tensor *out, struct mu_span text, const char *source,
		 struct mu_err *err);

#endif
