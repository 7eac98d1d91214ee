/* SPDX-License-Identifier: Apache-2.0 */
/* The positions of cursors as bytes, with which checkpoints save and restore iterators.
 *
 * Each function writes its argument or reads it back, so that one function of a dataset kind does
 * both, in the same order.  Archives are untrusted input: numbers are checked against bounds, and a
 * size is checked against the remaining bytes before memory is allocated. */
#ifndef MU_TASK_KERNELS_DATA_ARCHIVE_H
#define MU_TASK_KERNELS_DATA_ARCHIVE_H

#include "lib/base/pb.h"
#include "task/kernels/data/dataset.h"

struct element_list;
struct archive {
	struct mu_buf *to; /* NULL: the archive is read */
	struct mu_pb from;
	int depth; /* of elements within elements */
};

static inline bool archive_reads(const struct archive *a)
{
	return !a->to;
}
int archive_broken(struct mu_err *err); /* the error for invalid bytes */
int archive_number(struct archive *a, int64_t *v, int64_t least, int64_t most, struct mu_err *err);
int archive_word(struct archive *a, uint32_t *v, struct mu_err *err);
int archive_flag(struct archive *a, bool *v, struct mu_err *err);
int archive_span(struct archive *a, struct mu_span *s, struct mu_err *err); /* reading borrows */
int archive_bytes(struct archive *a, struct mu_buf *b, struct mu_err *err); /* reading replaces */
/* ---- archive_element.c ---- */
/* n tensors; reading makes new ones, all or none. */
int archive_element(struct archive *a, struct mu_tensor *t, unsigned n, struct mu_err *err);
int archive_element_list(struct archive *a, struct element_list *l, unsigned n_out,
			 struct mu_err *err);
/* The state of a cursor and of those below it; reading requires a newly opened cursor. */
int archive_cursor(struct archive *a, struct cursor *c, struct mu_err *err);
/* The state of an optional cursor: reading opens or closes it. */
int archive_cursor_in(struct archive *a, const struct dataset *d, struct caller *who,
		      struct cursor **c, struct mu_err *err);

#endif
