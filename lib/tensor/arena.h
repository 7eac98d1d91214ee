/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of large tensors in one shared memory file, so that a task on the same host can be shown a
 * tensor where it lies instead of being sent its bytes (docs/peer-stream.md).
 *
 * Once started, mu_tensor_new takes what is ARENA_LEAST or larger from here.  Blocks that were
 * given back are kept for the next tensor of their size, up to ARENA_KEEP bytes; the pages of what
 * is over it go back to the system. */
#ifndef MU_TENSOR_ARENA_H
#define MU_TENSOR_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

enum { ARENA_LEAST = 64 << 10, ARENA_KEEP = 256 << 20 };

/* Once a process; later calls do nothing.  Without it (an error: no memfd, no /proc, an address
 * space limit) everything works as before. */
int arena_start(struct mu_err *err);
bool arena_started(void);
/* Read only, owned by the arena; what a borrower is given.  -1: not started. */
int arena_fd(void);
void *arena_alloc(size_t bytes); /* page aligned, not zeroed; NULL: too small, or none left */
void arena_free(void *p, size_t bytes); /* with the size it was asked with */
/* Where in the file p lies; false: not in the arena. */
bool arena_offset(const void *p, uint64_t *offset);
size_t arena_kept(void); /* bytes of blocks kept for later */

#endif
