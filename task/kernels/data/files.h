/* SPDX-License-Identifier: Apache-2.0 */
/* Files that a dataset reads one after the other; its first parameter has their names. */
#ifndef MU_TASK_KERNELS_DATA_FILES_H
#define MU_TASK_KERNELS_DATA_FILES_H

#include <stdio.h>

#include "lib/io/tfrecord.h"
#include "task/kernels/data/serializer.h"

struct files {
	int64_t at; /* the index of the file after the current one */
	char *name; /* of the current file; NULL: no file is open */
	FILE *file;
	struct mu_tfrecord_reader *records; /* owns the file */
	/* CSV: the current record.  Fixed-length records: bytes that may be the footer. */
	struct mu_buf buffer;
	char *line;
	size_t line_cap;
};

/* The reader of a file format.  `item` returns 1 with an item, or 0 at the end of the file. */
struct file_format {
	int (*begin)(struct dataset_iterator *it, struct mu_err *err); /* (optional) */
	int (*item)(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err);
};

/* Returns 1 with the next item of all files, or 0 after the last one.  compression: the index of
 * the parameter with the compression type; 0: none. */
int files_next(struct dataset_iterator *it, const struct file_format *k, unsigned compression,
	       struct mu_tensor *out, struct mu_err *err);
/* Saves the file and the position in it, or restores them and opens the file. */
int files_serialize(struct dataset_iterator *it, const struct file_format *k, unsigned compression,
		    struct serializer *ser, struct mu_err *err);
void files_close(struct dataset_iterator *it);
/* Checks that the names and the compression type are strings. */
int files_check(const struct dataset *d, unsigned compression, struct mu_err *err);
/* Fails with errno and the name of the current file. */
int files_fail_errno(const struct files *f, struct mu_err *err);

#endif
