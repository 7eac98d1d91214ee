/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the operator's first actions for a manifest, without a cluster. */
#ifndef CONTROLLER_DRY_RUN_H
#define CONTROLLER_DRY_RUN_H

#include "lib/base/buf.h"

/* Appends the objects of the first two steps (service and ps, then the others once ps are ready) to
 * `out`: YAML documents when `objects`, else one line for each action. */
int dry_run(struct mu_buf *out, const char *file, const char *image, bool objects,
	    struct mu_err *err);

#endif
