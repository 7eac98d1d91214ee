/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MU_TASK_MASTER_SESSION_DEVICES_H
#define MU_TASK_MASTER_SESSION_DEVICES_H

#include "task/master/master.h"

/* Fills the session's peers and devices from GetStatus replies. */
int session_devices(struct session *s, struct fan_out *g, struct mu_err *err);
/* Writes a ListDevicesResponse from GetStatus replies.  s: (optional) the names of tasks. */
int list_devices(const struct session *s, struct fan_out *g, struct mu_buf *reply,
		 struct mu_err *err);

#endif
