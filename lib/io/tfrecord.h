/* SPDX-License-Identifier: Apache-2.0 */
/* TFRecord files: length, its checksum, data, its checksum; again and again. */
#ifndef MU_IO_TFRECORD_H
#define MU_IO_TFRECORD_H

#include <stdio.h>

#include "lib/base/buf.h"

enum { MU_TFRECORD_HEAD = 12, MU_TFRECORD_FOOT = 4 };

struct mu_tfrecord_writer;
/* append: goes on behind what is there.  Output is buffered until flush or close. */
int mu_tfrecord_create(struct mu_tfrecord_writer **out, const char *path, bool append,
		       struct mu_err *err);
int mu_tfrecord_write(struct mu_tfrecord_writer *w, struct mu_span record, struct mu_err *err);
int mu_tfrecord_flush(struct mu_tfrecord_writer *w, bool sync, struct mu_err *err);
int mu_tfrecord_close(struct mu_tfrecord_writer *w, struct mu_err *err); /* frees w always */
void mu_tfrecord_frame(struct mu_buf *out, struct mu_span record);       /* appends one frame */

struct mu_tfrecord_reader;
int mu_tfrecord_open(struct mu_tfrecord_reader **out, const char *path, struct mu_err *err);
/* Takes the file, which may be one that cannot be sought in: then nothing is tried again. */
struct mu_tfrecord_reader *mu_tfrecord_read(FILE *file, const char *path);
/* 1 with *record (borrowed until the next call), 0 at the end.  A record truncated by the end of
 * the file is OUT_OF_RANGE (a writer may still be at it: the next call tries again), a wrong
 * checksum or a length over 1 GiB is DATA_LOSS; both name file and offset. */
int mu_tfrecord_next(struct mu_tfrecord_reader *r, struct mu_span *record, struct mu_err *err);
/* Goes on behind a record that mu_tfrecord_next would not give; DATA_LOSS or OUT_OF_RANGE when its
 * length is not to be trusted or leads beyond the file, so that nothing can be found there. */
int mu_tfrecord_skip(struct mu_tfrecord_reader *r, struct mu_err *err);
/* The file was moved to this place before the reader has read. */
void mu_tfrecord_is_at(struct mu_tfrecord_reader *r, uint64_t offset);
uint64_t mu_tfrecord_offset(const struct mu_tfrecord_reader *r); /* of the next record */
void mu_tfrecord_reader_free(struct mu_tfrecord_reader *r);
MU_AUTO_DEFINE(mu_tfrecord_reader_free, struct mu_tfrecord_reader)

#endif
