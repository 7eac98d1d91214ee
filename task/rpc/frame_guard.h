/* SPDX-License-Identifier: Apache-2.0 */
/* Limits what a client of this process's servers may send before gRPC's own limits apply. */
#ifndef MU_TASK_RPC_FRAME_GUARD_H
#define MU_TASK_RPC_FRAME_GUARD_H

#include <stdbool.h>
#include <stddef.h>

struct frame_guard {
	size_t skip;       /* bytes up to the next frame */
	size_t block;      /* bytes of the unfinished header block */
	size_t before_ack; /* bytes before the client acknowledged SETTINGS */
	unsigned char head[9];
	unsigned n_head;
	bool started, ignored, acknowledged;
};

/* Follows the next bytes of a connection, from its first on; starts with zeros.  NULL, or the limit
 * that the client exceeds. */
const char *frame_guard_follow(struct frame_guard *g, const unsigned char *p, size_t n);

/* Makes the linker take this file out of the static library, also where a sanitizer has an accept4
 * of its own. */
void frame_guard_link(void);

#endif
