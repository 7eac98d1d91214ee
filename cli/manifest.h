/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a manifest file. */
#ifndef CLI_MANIFEST_H
#define CLI_MANIFEST_H

#include "operator/api/job_spec.h"

/* "-" is standard input. */
int manifest_read(struct job_spec **out, const char *path, struct mu_err *err);

/* The job that a word of a command line names: NAME, job/NAME, or a manifest's path.  *ns is the
 * manifest's namespace, NULL when it has none; both are new memory. */
int manifest_job(const char *word, char **name, char **ns, struct mu_err *err);

#endif
