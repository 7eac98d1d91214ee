/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/io/folders.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/mem.h"

int mu_make_folders(const char *path, struct mu_err *err)
{
	MU_AUTO_FREE char *copy = mu_xstrdup(path);

	if (!*copy)
		return 0;
	for (char *slash = strchr(copy + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(copy, 0777) && errno != EEXIST)
			return mu_fail_errno(err, errno, "cannot make the folder %s", copy);
		*slash = '/';
	}
	return 0;
}
