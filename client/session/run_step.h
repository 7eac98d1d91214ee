/* SPDX-License-Identifier: Apache-2.0 */
/* Hand-written encoding of RunStepRequest and RunStepResponse, which are on the hot path. */
#ifndef MU_CLIENT_SESSION_RUN_STEP_H
#define MU_CLIENT_SESSION_RUN_STEP_H

#include "muster/session.h"
#include "task/rpc/channel.h"

struct run_step {
	struct mu_buf head;
	const struct mu_tensor *payload; /* the largest feed, sent without a copy; or NULL */
	size_t payload_len;
};
/* Checks that each feed, fetch and target is in b's graph. With `values` each feed must also have a
 * value of the type and shape of its output. */
int run_step_check(const struct mu_builder *b, const struct mu_run *run, bool values,
		   struct mu_err *err);
unsigned run_step_first_fetch(const struct mu_run *run,
			      unsigned i); /* index of the first fetch of the same output */
void run_step_put_tensor_name(struct mu_buf *b, uint32_t number, struct mu_out o);
/* True if a feed should be sent without a copy, rather than `other` (NULL: none).  With the copy a
 * step that feeds 1 to 8 MiB takes 1.2 to 1.4 times as long. */
bool run_step_borrows(const struct mu_tensor *feed, const struct mu_tensor *other);
void run_step_fini(struct run_step *r);
/* `run` has passed run_step_check. */
void run_step_encode(struct run_step *r, const char *handle, const struct mu_run *run,
		     long timeout_ms, int64_t request_id);
/* Sets values, or fails with the error in the reply. */
int run_step_decode(struct mu_span reply, const struct mu_run *run, struct mu_tensor *values,
		    struct mu_err *err);

#endif
