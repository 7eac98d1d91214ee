/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MU_IO_FOLDERS_H
#define MU_IO_FOLDERS_H

#include "lib/base/err.h"

/* Makes the missing folders above the last '/' of path: all of them for "a/b/". */
int mu_make_folders(const char *path, struct mu_err *err);

#endif
