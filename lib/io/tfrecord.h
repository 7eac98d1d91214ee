/* SPDX-License-Identifier: Apache-2.0 */
/* TFRecord files: a sequence of length, checksum of the length, data, checksum of the data. */
#ifndef MU_LIB_IO_TFRECORD_H
#define MU_LIB_IO_TFRECORD_H

#include <stdio.h>

#include "lib/base/buf.h"

enum { MU_TFRECORD_HEADER = 12, MU_TFRECORD_FOOTER = 4 }; /* bytes */

struct mu_tfrecord_writer;
/* append: writes after the existing records.  Output is buffered until flush or close. */
int mu_tfrecord_create(struct mu_tfrecord_writer **out, const char *path, bool append,
		       struct mu_err *err);
int mu_tfrecord_write(struct mu_tfrecord_writer *w, struct mu_span record, struct mu_err *err);
int mu_tfrecord_flush(struct mu_tfrecord_writer *w, bool sync, struct mu_err *err);
int mu_tfrecord_close(struct mu_tfrecord_writer *w, struct mu_err *err); /* frees w always */
void mu_tfrecord_frame(struct mu_buf *out, struct mu_span record);       /* appends one frame */

struct mu_tfrecord_reader;
int mu_tfrecord_open(struct mu_tfrecord_reader **out, const char *path, struct mu_err *err);
/* The reader closes the file.  If it is not seekable, mu_tfrecord_next cannot retry a truncated
 * record. */
struct mu_tfrecord_reader *mu_tfrecord_read(FILE *file, const char *path);
/* Returns 1 with *record (borrowed until the next call), 0 at the end.  A record truncated by the
 * end of the file is OUT_OF_RANGE; the next call tries again, because a writer may be appending.  A
 * wrong checksum or a length over 1 GiB is DATA_LOSS.  Errors name file and offset. */
int mu_tfrecord_next(struct mu_tfrecord_reader *r, struct mu_span *record, struct mu_err *err);
/* As mu_tfrecord_next, for files to which no writer appends: a truncated record is DATA_LOSS.  For
 * the ops of a graph, where OUT_OF_RANGE means the end of the data. */
int mu_tfrecord_next_complete(struct mu_tfrecord_reader *r, struct mu_span *record,
			      struct mu_err *err);
/* Skips a record for which mu_tfrecord_next has failed.  DATA_LOSS or OUT_OF_RANGE if its length
 * has a wrong checksum or exceeds the file, so that the next record cannot be found. */
int mu_tfrecord_skip(struct mu_tfrecord_reader *r, struct mu_err *err);
/* Sets the current offset of the file in a new reader. */
void mu_tfrecord_set_offset(struct mu_tfrecord_reader *r, uint64_t offset);
uint64_t mu_tfrecord_offset(const struct mu_tfrecord_reader *r); /* of the next record */
void mu_tfrecord_reader_free(struct mu_tfrecord_reader *r);
MU_AUTO_DEFINE(mu_tfrecord_reader_free, struct mu_tfrecord_reader)

#endif
