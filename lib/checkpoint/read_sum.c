/* SPDX-License-Identifier: Apache-2.0 */
/* The range is split into blocks with separate checksums, which are combined at the end.  A block
 * is read in pieces, so that each piece is still in the cache for its checksum. */
#include "lib/checkpoint/read_sum.h"

#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/io/crc32c.h"

enum { BLOCK = 1 << 20, PIECE = 128 << 10 };

struct range_read {
	int fd;
	uint64_t offset, size;
	char *to;
	uint32_t *sums; /* by block */
	_Atomic int failed;
};

static int read_piece(const struct range_read *j, uint64_t at, uint64_t n)
{
	while (n) {
		ssize_t k = pread(j->fd, j->to + at, n, (off_t)(j->offset + at));
		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return k ? errno : -1;
		at += (uint64_t)k;
		n -= (uint64_t)k;
	}
	return 0;
}

static uint64_t block_end(const struct range_read *j, int64_t b)
{
	uint64_t end = (uint64_t)(b + 1) * BLOCK;

	return end < j->size ? end : j->size;
}

static void read_blocks(void *arg, int64_t from, int64_t to)
{
	struct range_read *j = arg;

	for (int64_t b = from; b < to; b++) {
		uint64_t end = block_end(j, b);
		for (uint64_t at = (uint64_t)b * BLOCK; at < end && !j->failed;) {
			uint64_t n = end - at < PIECE ? end - at : PIECE;
			int error = read_piece(j, at, n);
			if (error)
				j->failed = error;
			else
				j->sums[b] = mu_crc32c(j->sums[b], j->to + at, n);
			at += n;
		}
	}
}

int mu_read_sum(int fd, uint64_t offset, void *to, uint64_t size,
		const struct mu_parallel_for *parallel_for, uint32_t *crc)
{
	int64_t blocks = (int64_t)((size + BLOCK - 1) / BLOCK);
	MU_AUTO_FREE uint32_t *sums = MU_NEW_ARRAY(uint32_t, (size_t)blocks + 1);
	struct range_read j = {.fd = fd, .offset = offset, .size = size, .to = to, .sums = sums};

	if (parallel_for->run && blocks > 1)
		parallel_for->run(parallel_for->ctx, blocks, 1, read_blocks, &j);
	else
		read_blocks(&j, 0, blocks);
	if (j.failed)
		return j.failed;
	uint32_t sum = 0;
	for (int64_t b = 0; b < blocks; b++)
		sum = mu_crc32c_join(sum, sums[b], block_end(&j, b) - (uint64_t)b * BLOCK);
	*crc = sum;
	return 0;
}
