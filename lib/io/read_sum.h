/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a stretch of a file and checksums it, by as many threads as the caller has to offer. */
#ifndef MU_IO_READ_SUM_H
#define MU_IO_READ_SUM_H

#include <stdint.h>

/* Runs body(arg, from, to) over [0, n), at least `grain` a piece, and returns when all is done. */
struct mu_spread {
	void (*run)(void *how, int64_t n, int64_t grain,
		    void (*body)(void *arg, int64_t from, int64_t to), void *arg);
	void *how;
}; /* run NULL: the calling thread alone */

/* 0, an errno, or -1 when the file ends too early.  *crc is that of the bytes. */
int mu_read_sum(int fd, uint64_t offset, void *to, uint64_t size, const struct mu_spread *spread,
		uint32_t *crc);

#endif
