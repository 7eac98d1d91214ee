/* SPDX-License-Identifier: Apache-2.0 */
/* Where cursors are, as bytes: how iterators get into checkpoints and out of them.
 *
 * One function of a kind does both: each call writes what it is given, or reads it back into the
 * same place, in the same order.  What is read was written by a stranger: numbers come with their
 * bounds, and nothing takes memory that bytes do not stand for. */
#ifndef MU_TASK_KERNELS_DATA_ARCHIVE_H
#define MU_TASK_KERNELS_DATA_ARCHIVE_H

#include "lib/base/pb.h"
#include "task/kernels/data/dataset.h"

struct archive {
	struct mu_buf *to; /* NULL: it is read */
	struct mu_pb from;
	int depth; /* of elements within elements */
};

static inline bool archive_reads(const struct archive *a)
{
	return !a->to;
}
int archive_broken(struct mu_err *err); /* what is read cannot be */
int archive_number(struct archive *a, int64_t *v, int64_t least, int64_t most, struct mu_err *err);
int archive_word(struct archive *a, uint32_t *v, struct mu_err *err);
int archive_flag(struct archive *a, bool *v, struct mu_err *err);
int archive_bytes(struct archive *a, struct mu_buf *b, struct mu_err *err); /* reading replaces */
/* n tensors; reading makes new ones, all or none. */
int archive_element(struct archive *a, struct mu_tensor *t, unsigned n, struct mu_err *err);
/* The state of a cursor and of those below it; reading requires a newly opened cursor. */
int archive_cursor(struct archive *a, struct cursor *c, struct mu_err *err);
/* The state of an optional cursor: reading opens or closes it. */
int archive_cursor_in(struct archive *a, const struct dataset *d, struct caller *who,
		      struct cursor **c, struct mu_err *err);

/* A dataset that is a list of elements, in place of one that functions made (group.c). */
bool dataset_is_list(const struct mu_object *o);
int archive_list(struct archive *a, struct mu_object **o, struct mu_err *err);

#endif
