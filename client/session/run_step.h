/* SPDX-License-Identifier: Apache-2.0 */
/* RunStepRequest and RunStepResponse, by hand (they are the hot messages). */
#ifndef CLIENT_SESSION_RUN_STEP_H
#define CLIENT_SESSION_RUN_STEP_H

#include "muster/session.h"
#include "task/rpc/channel.h"

struct run_step {
	struct mu_buf head;
	const struct mu_tensor *payload; /* the largest feed, sent from where it is; or NULL */
	size_t payload_len;
};
void run_step_fini(struct run_step *r);
int run_step_encode(struct run_step *r, const char *handle, const struct mu_run *run,
		    long timeout_ms, int64_t request_id, struct mu_err *err);
/* Fills values, or fails with the error that the body carries. */
int run_step_decode(struct mu_span reply, const struct mu_run *run, struct mu_tensor *values,
		    struct mu_err *err);

#endif
