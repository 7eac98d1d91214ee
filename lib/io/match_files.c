/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/io/match_files.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

static void *open_folder(const char *path)
{
	return opendir(path);
}

/* With GLOB_PERIOD, `*` would also match "." and "..". */
static struct dirent *read_entry(void *folder)
{
	struct dirent *e;

	do
		e = readdir(folder);
	while (e && (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0));
	return e;
}

static void close_folder(void *folder)
{
	closedir(folder);
}

int mu_match_files(glob_t *found, const char *pattern, struct mu_err *err)
{
	int flags = GLOB_PERIOD | GLOB_ALTDIRFUNC | (found->gl_pathv ? GLOB_APPEND : 0);

	found->gl_opendir = open_folder;
	found->gl_readdir = read_entry;
	found->gl_closedir = close_folder;
	found->gl_stat = stat;
	found->gl_lstat = lstat;
	if (glob(pattern, flags, NULL, found) == GLOB_NOSPACE)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "too many files match %.150s", pattern);
	return 0;
}
