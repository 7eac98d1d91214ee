/* SPDX-License-Identifier: Apache-2.0 */
/* A folder of certificates, as in the mounted secret of a job. */
#ifndef MU_TESTS_CERTS_FOLDER_H
#define MU_TESTS_CERTS_FOLDER_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/tls/certs.h"

static inline int replace_file(const char *folder, const char *name, const char *text, mode_t mode,
			       struct mu_err *err)
{
	MU_AUTO_FREE char *to = mu_xasprintf("%s/%s", folder, name);
	MU_AUTO_FREE char *from = mu_xasprintf("%s.new", to);
	size_t n = strlen(text);
	int fd, e;

	unlink(from);
	fd = open(from, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
	if (fd < 0)
		return mu_fail_errno(err, errno, "cannot write %s", from);
	errno = EIO; /* of a short write */
	e = write(fd, text, n) == (ssize_t)n ? 0 : errno;
	if (close(fd) && !e)
		e = errno;
	if (!e && rename(from, to))
		e = errno;
	return e ? mu_fail_errno(err, e, "cannot write %s", to) : 0;
}

/* Writes tls.crt, tls.key and ca.crt into an existing folder.  Each file is replaced atomically;
 * the key is readable by this user only.  ca: (optional) replaces c->ca, e.g. with
 * two CAs during a rotation. */
static inline int certs_write(const struct mu_certs *c, const char *ca, const char *folder,
			      struct mu_err *err)
{
	int rc;

	(void)((rc = replace_file(folder, "ca.crt", ca ? ca : c->ca, 0644, err)) ||
	       (rc = replace_file(folder, "tls.key", c->key, 0600, err)) ||
	       (rc = replace_file(folder, "tls.crt", c->crt, 0644, err)));
	return rc;
}

#endif
