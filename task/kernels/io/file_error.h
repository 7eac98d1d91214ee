/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MU_TASK_KERNELS_IO_FILE_ERROR_H
#define MU_TASK_KERNELS_IO_FILE_ERROR_H

#include "lib/base/err.h"

/* Returns rc, the result of opening or reading a file, with TensorFlow's text for NOT_FOUND. */
static inline int file_error(int rc, const char *path, struct mu_err *err)
{
	return rc == -MU_NOT_FOUND
		   ? mu_fail(err, MU_NOT_FOUND, "%.600s; No such file or directory", path)
		   : rc;
}

#endif
