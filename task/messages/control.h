/* SPDX-License-Identifier: Apache-2.0 */
/* Control messages through protobuf-c.  The unpacked message is in an arena and takes at most its
 * encoded length plus a fixed overhead, so that a small message cannot become a large one.  Its
 * depth is bounded, because no message in the .proto files contains itself. */
#ifndef MU_TASK_MESSAGES_CONTROL_H
#define MU_TASK_MESSAGES_CONTROL_H

#include <protobuf-c/protobuf-c.h>

#include "lib/base/buf.h"
#include "lib/cluster/cluster_spec.h"
#include "proto/common.pb-c.h"

/* Returns NULL with err if the bytes are not a message of type d. */
void *control_unpack(struct mu_arena *a, const ProtobufCMessageDescriptor *d, struct mu_span bytes,
		     struct mu_err *err);
void control_pack(struct mu_buf *b, const void *message); /* appends */

/* Converts a ClusterDef.  INVALID_ARGUMENT names the wrong entry. */
int control_cluster(const Muster__ClusterDef *def, struct mu_cluster *out, struct mu_err *err);

/* Reads a session's ConfigProto: false with optimizer_options.opt_level L0, or
 * rewrite_options.disable_meta_optimizer. */
bool control_optimizer_enabled(struct mu_span config);

static inline struct mu_span control_bytes(ProtobufCBinaryData d)
{
	return (struct mu_span){d.data ? (const char *)d.data : "", d.data ? d.len : 0};
}

#endif
