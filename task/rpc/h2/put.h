/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes put one after the other; each returns what follows. */
#ifndef MU_TASK_RPC_H2_PUT_H
#define MU_TASK_RPC_H2_PUT_H

#include <string.h>

#include "task/rpc/h2/frame.h"

static inline char *h2_put_bytes(char *p, const void *data, size_t len)
{
	if (len)
		memcpy(p, data, len);
	return p + len;
}
/* What goes before a message: that it is not compressed, and its length. */
static inline char *h2_put_prefix(char *p, size_t total)
{
	*p = 0;
	h2_put32(p + 1, (uint32_t)total);
	return p + 5;
}

#endif
