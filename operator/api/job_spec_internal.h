/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files that read a job_spec. */
#ifndef API_JOB_SPEC_INTERNAL_H
#define API_JOB_SPEC_INTERNAL_H

#include "operator/api/fields.h"
#include "operator/api/job_spec.h"

extern const char *const restart_policy_names[];
extern const struct train_spec train_spec_defaults;
extern const struct field train_fields[]; /* spec.program.train */

#define spec_invalid(node, err, ...) mu_doc_fail(node, err, MU_INVALID_ARGUMENT, __VA_ARGS__)

/* Lower-case letters and digits, with these marks between them. */
bool spec_is_name(const char *s, const char *marks, size_t most);
bool spec_is_label(const char *s); /* a DNS label */

/* The value at the path "a.b"; NULL when it is absent or null. */
static inline const struct mu_doc_node *spec_section(const struct mu_doc_node *map,
						     const char *path)
{
	const struct mu_doc_node *n = mu_doc_get(map, path);

	return n && n->kind != MU_DOC_NULL ? n : NULL;
}

/* Sets the defaults, before train_fields are read; checks after that. */
void train_spec_init(struct train_spec *t, const struct mu_doc_node *train);
int train_spec_check(struct train_spec *t, const struct mu_doc_node *train, struct mu_err *err);
int job_spec_read_tasks(struct job_spec *s, const struct mu_doc_node *spec, struct mu_err *err);
/* Adds the task of spec.tensorboard when it is enabled. */
int job_spec_add_board(struct job_spec *s, const struct mu_doc_node *board, struct mu_err *err);

#endif
