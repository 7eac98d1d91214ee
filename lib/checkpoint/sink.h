/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a new file sequentially and computes checksums.
 *
 * mu_sink_put copies the data, and a thread of the sink writes it in the background.  A sink is not
 * thread-safe. */
#ifndef MU_LIB_CHECKPOINT_SINK_H
#define MU_LIB_CHECKPOINT_SINK_H

#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"

struct mu_sink;
int mu_sink_open(struct mu_sink **out, const char *path, struct mu_err *err);
/* Continues *crc over the n bytes. */
int mu_sink_put(struct mu_sink *s, const void *data, size_t n, uint32_t *crc, struct mu_err *err);
uint64_t mu_sink_length(const struct mu_sink *s); /* bytes put so far */
/* Completes the file: if it returns 0, all data is on disk.  Only mu_sink_length and mu_sink_free
 * may follow. */
int mu_sink_sync(struct mu_sink *s, struct mu_err *err);
/* Closes the file.  Without mu_sink_sync it may be incomplete. */
void mu_sink_free(struct mu_sink *s);
MU_AUTO_DEFINE(mu_sink_free, struct mu_sink)

#endif
