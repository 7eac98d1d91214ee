/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a manifest file. */
#ifndef MU_CLI_MANIFEST_H
#define MU_CLI_MANIFEST_H

#include "operator/api/job_spec.h"

/* "-" is standard input. */
int manifest_read(struct job_spec **out, const char *path, struct mu_err *err);
/* Checks the rules of the API server that job_spec_parse does not check: those for pod templates,
 * and newer rules. The operator still runs stored jobs that violate newer rules. */
int validate_manifest(const struct job_spec *spec, struct mu_err *err);

/* Finds the job of a command-line argument: NAME, job/NAME, or the path of a manifest. *ns is the
 * manifest's namespace, or NULL. Both are new strings. */
int manifest_resolve_job(const char *word, char **name, char **ns, struct mu_err *err);

#endif
