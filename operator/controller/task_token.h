/* SPDX-License-Identifier: Apache-2.0 */
/* The bearer tokens of jobs, and the requests to tasks that need them. */
#ifndef CONTROLLER_TASK_TOKEN_H
#define CONTROLLER_TASK_TOKEN_H

#include "lib/tls/token.h"
#include "operator/controller/controller.h"

/* The Secret in the operator's namespace that the key file is mounted from. */
#define TOKEN_KEY_SECRET "muster-operator-key"

/* Reads the key of options.token_key_file.  A file that does not exist yet: creates the Secret. */
int token_key_load(struct controller *c, struct mu_err *err);
/* FAILED_PRECONDITION when the operator has no key. */
int task_token_digest(const struct controller *c, const char *job_uid, char out[MU_TOKEN_SIZE]);

/* For controller_io: GET /status, and POST with the token of the job. */
int task_ask(void *controller, const struct pod *task, struct mu_buf *out);
int task_post(void *controller, const struct pod *task, const char *page, const char *body,
	      struct mu_err *err);

#endif
