/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MU_TASK_MASTER_SESSION_DEVICES_H
#define MU_TASK_MASTER_SESSION_DEVICES_H

#include "task/master/master.h"

/* Fills the session's peers and devices from GetStatus answers. */
int session_devices(struct session *s, struct gather *g, struct mu_err *err);
/* A ListDevicesResponse of a gathered set of GetStatus answers. */
int list_devices(struct gather *g, struct mu_buf *reply, struct mu_err *err);

#endif
