/* SPDX-License-Identifier: Apache-2.0 */
/* Ports for servers that a test is about to start. */
#ifndef MU_TESTS_PORTS_H
#define MU_TESTS_PORTS_H

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/test.h"

/* Returns a free port from 21000 to 21999 and reserves it: a socket stays bound to it until this
 * process ends. That excludes processes that do not set SO_REUSEADDR, such as other callers of this
 * function, but not a server, which sets it. */
static inline int free_port(void)
{
	static int next;

	if (!next)
		next = (int)getpid() % 900;
	for (int tried = 0; tried < 1000; tried++) {
		struct sockaddr_in a = {.sin_family = AF_INET,
					.sin_addr = {htonl(INADDR_LOOPBACK)}};
		int port = 21000 + next++ % 1000, on = 1;
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		a.sin_port = htons((uint16_t)port);
		if (!bind(fd, (struct sockaddr *)&a, sizeof(a))) {
			setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
			return port;
		}
		close(fd);
	}
	fail_msg("every port from 21000 to 21999 is taken");
	return -1;
}

#endif
