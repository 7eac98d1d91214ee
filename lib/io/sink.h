/* SPDX-License-Identifier: Apache-2.0 */
/* A new file of any length, written once from start to end and checksummed on the way.
 *
 * What is put is copied, so the caller's memory is free again at return; a thread of the sink's own
 * writes while the caller goes on.  For one thread at a time. */
#ifndef MU_IO_SINK_H
#define MU_IO_SINK_H

#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"

struct mu_sink;
int mu_sink_open(struct mu_sink **out, const char *path, struct mu_err *err);
/* Continues *crc over the n bytes. */
int mu_sink_put(struct mu_sink *s, const void *data, size_t n, uint32_t *crc, struct mu_err *err);
uint64_t mu_sink_length(const struct mu_sink *s); /* bytes put so far */
/* Everything is on the disk when this has returned 0; then still free it. */
int mu_sink_sync(struct mu_sink *s, struct mu_err *err);
/* Closes; of a file that was not synced, whatever happened to be written stays. */
void mu_sink_free(struct mu_sink *s);
MU_AUTO_DEFINE(mu_sink_free, struct mu_sink)

#endif
