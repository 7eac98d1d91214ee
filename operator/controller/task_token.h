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

void task_url(const char *ip, const char *page, char *out, size_t size);
/* POST http://ip:port/page with the token of the job. */
int task_post(struct controller *c, const char *ip, const char *job_uid, const char *page,
	      struct mu_span body, struct mu_err *err);

#endif
