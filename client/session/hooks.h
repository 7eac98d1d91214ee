/* SPDX-License-Identifier: Apache-2.0 */
/* Functions shared by the hooks of this folder. */
#ifndef MU_CLIENT_SESSION_HOOKS_H
#define MU_CLIENT_SESSION_HOOKS_H

#include "muster/train.h"

/* `free` of a hook that owns no other memory. */
void hook_free(struct mu_hook *h);

#endif
