/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files that read a job_spec. */
#ifndef API_JOB_SPEC_INTERNAL_H
#define API_JOB_SPEC_INTERNAL_H

#include "operator/api/job_spec.h"

extern const char *const restart_policy_names[];

/* Lower-case letters and digits, with these marks between them. */
bool spec_is_name(const char *s, const char *marks, size_t most);
bool spec_is_label(const char *s); /* a DNS label */

int job_spec_read_tasks(struct job_spec *s, const struct mu_doc_node *spec, struct mu_err *err);
/* Adds the task of spec.tensorboard when it is enabled. */
int job_spec_add_board(struct job_spec *s, const struct mu_doc_node *board, struct mu_err *err);

#endif
