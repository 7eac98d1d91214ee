/* SPDX-License-Identifier: Apache-2.0 */
/* Passes the input to frame_guard as data of a client, in two reads.  The first byte is the length
 * of the first read; the result must not depend on it. */
#include <stdint.h>
#include <stdlib.h>

#include "task/rpc/frame_guard.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct frame_guard whole = {0}, split = {0};
	size_t first = size ? data[0] : 0;
	const char *bad;

	if (size == 0 || first > --size)
		return 0;
	data++;
	bad = frame_guard_follow(&split, data, first);
	if (!bad)
		bad = frame_guard_follow(&split, data + first, size - first);
	if ((frame_guard_follow(&whole, data, size) != NULL) != (bad != NULL))
		abort();
	return 0;
}
