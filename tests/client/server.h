/* SPDX-License-Identifier: Apache-2.0 */
/* The task server for client tests: MUSTER_TEST_TARGET if it is set (a TensorFlow server, say).
 * Otherwise a server in this process, started by the first call. */
#ifndef MU_TESTS_CLIENT_SERVER_H
#define MU_TESTS_CLIENT_SERVER_H

#include <stdio.h>
#include <stdlib.h>

#include "lib/base/log.h"
#include "lib/cluster/cluster_spec.h"
#include "task/server.h"

static struct task_server *test_server_running;

static inline const char *test_server(void)
{
	const char *given = getenv("MUSTER_TEST_TARGET");
	struct mu_cluster c = {0};
	struct task_server_options o = {
	    .cluster = &c, .job = "local", .bind = "127.0.0.1:0", .http_port = -1};
	struct mu_err err;

	if (given)
		return given;
	mu_log_set_level(MU_WARN);
	if (!test_server_running && (mu_cluster_add(&c, "local", 0, "127.0.0.1:1", &err) ||
				     task_server_start(&o, &test_server_running, &err))) {
		fprintf(stderr, "no test server: %s\n", err.msg);
		abort();
	}
	mu_cluster_fini(&c);
	return task_server_target(test_server_running);
}

static inline int test_server_stop(void **state)
{
	if (test_server_running)
		task_server_stop(test_server_running, 1000);
	test_server_running = NULL;
	return 0;
}

#endif
