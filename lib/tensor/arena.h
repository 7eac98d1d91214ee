/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of large tensors in one shared memory file, so that tasks on the same host can map a
 * tensor instead of receiving a copy (docs/peer-stream.md).
 *
 * Once started, mu_tensor_new allocates ARENA_MIN_BYTES or more bytes here.  Free blocks are cached
 * for the next tensors, up to the recent peak of bytes in use and at least up to ARENA_CACHE_BYTES.
 * The pages of other free blocks are returned to the system. */
#ifndef MU_LIB_TENSOR_ARENA_H
#define MU_LIB_TENSOR_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

enum { ARENA_MIN_BYTES = 64 << 10, ARENA_CACHE_BYTES = 256 << 20 };

/* Starts the arena; later calls have no effect.  After an error (no memfd, no /proc, an address
 * space limit) tensors use malloc. */
int arena_start(struct mu_err *err);
bool arena_started(void);
/* Returns the read-only descriptor for importing tasks, owned by the arena; -1: not started. */
int arena_fd(void);
void *arena_alloc(size_t bytes); /* page aligned, not zeroed; NULL: too small, or no space left */
void arena_free(void *p, size_t bytes); /* with the size of the allocation */
/* Sets the offset of p in the file; false: p is not in the arena. */
bool arena_offset(const void *p, uint64_t *offset);
size_t arena_cached_bytes(void); /* bytes of cached free blocks */

#endif
