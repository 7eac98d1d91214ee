/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a manifest file. */
#ifndef CLI_MANIFEST_H
#define CLI_MANIFEST_H

#include "operator/plan/job_spec.h"

/* "-" is standard input. */
int manifest_read(struct job_spec **out, const char *path, struct mu_err *err);

#endif
