/* SPDX-License-Identifier: Apache-2.0 */
#include "task/peer/stream_listen.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/base/random.h"
#include "lib/net/listen.h"

int stream_listen_local(struct stream_offer *o, struct mu_err *err)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), n;

	snprintf(o->local, sizeof(o->local), "muster-%016llx%016llx",
		 (unsigned long long)mu_random_u64(), (unsigned long long)mu_random_u64());
	n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "%s", o->local);
	if (fd < 0 ||
	    bind(fd, (struct sockaddr *)&a,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) ||
	    listen(fd, 64)) {
		int e = errno;

		if (fd >= 0)
			close(fd);
		return mu_fail_errno(err, e, "cannot listen for streams");
	}
	return fd;
}

int stream_listen_tcp(struct stream_offer *o, const char *host, int port)
{
	struct mu_err err;
	int fd = mu_listen_tcp(host, port, &o->port, &err);

	if (fd < 0)
		mu_warn("stream", "no streams from other machines: %s", err.msg);
	return fd < 0 ? -1 : fd;
}
