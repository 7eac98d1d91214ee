/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/io/folders.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/mem.h"

int mu_make_folders(const char *path, struct mu_err *err)
{
	MU_AUTO_FREE char *copy = mu_xstrdup(path);
	char *last = strrchr(copy, '/');

	if (!last)
		return 0;
	for (char *slash = strchr(copy + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(copy, 0777) && errno != EEXIST)
			return mu_fail_errno(err, errno, "cannot make the folder %s", copy);
		*slash = '/';
	}
	last[1] = '\0'; /* with the slash, access() fails if the path is a file */
	return access(copy, F_OK) ? mu_fail_errno(err, errno, "cannot make the folder %s", copy)
				  : 0;
}

int mu_make_folder(const char *path, struct mu_err *err)
{
	const char *slash = strrchr(path, '/');

	if (!slash || slash == path)
		return 0;
	MU_AUTO_FREE char *folder = mu_xstrndup(path, (size_t)(slash - path));
	if (!mkdir(folder, 0777) || errno == EEXIST)
		return 0;
	if (errno == ENOENT)
		return mu_fail(err, MU_NOT_FOUND, "%s; No such file or directory", folder);
	return mu_fail_errno(err, errno, "cannot make the folder %s", folder);
}
