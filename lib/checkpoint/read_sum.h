/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a range of a file and computes its checksum, in parallel. */
#ifndef MU_LIB_CHECKPOINT_READ_SUM_H
#define MU_LIB_CHECKPOINT_READ_SUM_H

#include <stdint.h>

/* A parallel for: runs body(arg, from, to) over [0, n), in pieces of at least `grain`, and waits.
 */
struct mu_parallel_for {
	void (*run)(void *ctx, int64_t n, int64_t grain,
		    void (*body)(void *arg, int64_t from, int64_t to), void *arg);
	void *ctx;
}; /* run NULL: only the calling thread */

/* Returns 0, an errno, or -1 if the file ends too early.  *crc is the checksum of the bytes. */
int mu_read_sum(int fd, uint64_t offset, void *to, uint64_t size,
		const struct mu_parallel_for *parallel_for, uint32_t *crc);

#endif
