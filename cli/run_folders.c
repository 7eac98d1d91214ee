/* SPDX-License-Identifier: Apache-2.0 */
/* Locks on the folders of a local run. Two runs in one folder would overwrite each other's
 * checkpoints and logs unnoticed. So a run locks the folders themselves (flock). Such a lock leaves
 * no file behind, moves with the folder, and ends with the process. On a file system without locks
 * for folders (NFS) there is no protection. */
#include "cli/run_folders.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/mem.h"

enum { PATH_SIZE = 4096 };

int run_folders_rename_old(const char *path, struct mu_err *err)
{
	MU_AUTO_FREE char *from = mu_xstrdup(path ? path : "");
	char to[PATH_SIZE];
	struct stat st;
	int n = 1;

	for (size_t len = strlen(from); len > 1 && from[len - 1] == '/'; len--)
		from[len - 1] = 0;
	if (stat(from, &st))
		return 0;
	do
		snprintf(to, sizeof(to), "%s.old-%d", from, n++);
	while (stat(to, &st) == 0);
	if (rename(from, to))
		return mu_fail_errno(err, errno, "move %s to %s", from, to);
	printf("%s moved to %s\n", from, to);
	return 0;
}

static bool is_locked(const struct run_folders *f, const struct stat *folder)
{
	struct stat st;

	for (unsigned i = 0; i < f->n; i++)
		if (fstat(f->locks[i], &st) == 0 && st.st_dev == folder->st_dev &&
		    st.st_ino == folder->st_ino)
			return true;
	return false;
}

int run_folders_lock(struct run_folders *f, const char *path, const char *job, struct mu_err *err)
{
	int fd = path ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	struct stat st;

	if (fd < 0)
		return 0;
	if (f->n == MU_COUNT(f->locks) || fstat(fd, &st) || is_locked(f, &st)) {
		close(fd);
		return 0;
	}
	if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
		close(fd);
		return mu_fail(err, MU_FAILED_PRECONDITION,
			       "another muster run uses %s: stop it first, or change it with "
			       "muster scale %s worker=N",
			       path, job);
	}
	f->locks[f->n++] = fd;
	return 0;
}

void run_folders_fini(struct run_folders *f)
{
	while (f->n)
		close(f->locks[--f->n]);
}
