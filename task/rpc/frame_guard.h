/* SPDX-License-Identifier: Apache-2.0 */
/* Limits the data that a client may send before gRPC's own limits apply. */
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

/* Parses the next received bytes of a connection.  g is zero at its start.  Returns NULL, or a text
 * with the limit that the client exceeds. */
const char *frame_guard_follow(struct frame_guard *g, const unsigned char *p, size_t n);

/* An empty function, whose call makes the linker include this file from the static library, also
 * where a sanitizer defines accept4. */
void frame_guard_link(void);

#endif
