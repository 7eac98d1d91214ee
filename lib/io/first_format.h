/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints in TensorFlow's first format: one table that holds everything, each tensor or part of
 * one as a message.  Written for programs that still save so; read because the trained models of
 * those days were given away in it. */
#ifndef MU_IO_FIRST_FORMAT_H
#define MU_IO_FIRST_FORMAT_H

#include "lib/io/bundle.h"

struct mu_first_format {
	const char *name;
	const struct mu_slice *slice; /* NULL: the whole tensor */
	const struct mu_tensor *tensor;
};
/* Written aside, synced and renamed.  The same name may come several times, with parts that do not
 * overlap. */
int mu_first_format_write(const char *path, const struct mu_first_format *items, unsigned n,
			  struct mu_err *err);

struct mu_first_reader;
/* The files that match the pattern, which together hold one checkpoint: read and checked as a
 * whole. NOT_FOUND where none does. */
int mu_first_format_open(struct mu_first_reader **out, const char *pattern, struct mu_err *err);
void mu_first_reader_free(struct mu_first_reader *r);
MU_AUTO_DEFINE(mu_first_reader_free, struct mu_first_reader)
/* A new tensor, put together from its parts; slice: (optional) only that. */
int mu_first_format_read(const struct mu_first_reader *r, const char *name,
			 const struct mu_slice *slice, struct mu_tensor *out, struct mu_err *err);
/* One file that is in memory already; borrows the bytes. */
int mu_first_format_parse(struct mu_first_reader **out, struct mu_span file, const char *path,
			  struct mu_err *err);

#endif
