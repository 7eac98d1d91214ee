/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints in TensorFlow's first format: one table that holds everything, each tensor or part of
 * one as a message.  Written only, for programs that still save so; what reads them is on the other
 * side. */
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

#endif
