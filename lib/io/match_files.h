/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MU_LIB_IO_MATCH_FILES_H
#define MU_LIB_IO_MATCH_FILES_H

#include <glob.h>

#include "lib/base/err.h"

/* Appends the names of the files that match the pattern, sorted.  No match is not an error.  As in
 * TensorFlow, `*` also matches a dot at the start of a file name (glob has no flag for folders).
 * *found is zeroed before the first pattern; the caller frees it with globfree, also after an
 * error. */
int mu_match_files(glob_t *found, const char *pattern, struct mu_err *err);

#endif
