/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MU_LIB_IO_FOLDERS_H
#define MU_LIB_IO_FOLDERS_H

#include "lib/base/err.h"

/* Creates the missing folders up to the last '/' of path; for "a/b/" both. */
int mu_make_folders(const char *path, struct mu_err *err);
/* Creates only the last of these folders; NOT_FOUND if its parent is missing. */
int mu_make_folder(const char *path, struct mu_err *err);

#endif
