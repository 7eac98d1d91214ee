/* SPDX-License-Identifier: Apache-2.0 */
/* One parameter server and two workers in one process: the workers add to a value on the parameter
 * server.
 *
 * A constant belongs to the program that created it; only a variable is shared. So worker 1 can
 * replace `a` for itself, but all tasks see a change of the variable `sum`.
 *
 *	three_adds [PS,WORKER0,WORKER1]
 */
#include <stdio.h>
#include <string.h>

#include "muster/server.h"

enum { PS, WORKER0, WORKER1, TASKS };

static int start_all(struct mu_server *servers[TASKS], const char *hosts, struct mu_err *err)
{
	static const char *const jobs[TASKS] = {"ps", "worker", "worker"};
	const char *workers = strchr(hosts, ',');
	MU_AUTO_CLUSTER cluster = {0};
	char ps[256];
	int rc;

	snprintf(ps, sizeof(ps), "%.*s", workers ? (int)(workers - hosts) : 0, hosts);
	rc = mu_cluster_add_hosts(&cluster, "ps", ps, err);
	if (!rc)
		rc = mu_cluster_add_hosts(&cluster, "worker", workers ? workers + 1 : "", err);
	for (int i = 0; i < TASKS && !rc; i++)
		rc = mu_server_start(&servers[i], &cluster, jobs[i], i == WORKER1, err);
	return rc;
}

/* Runs `first_op` on a server, then fetches and prints the value of one tensor. */
static int print_value(struct mu_builder *b, struct mu_server *server, const char *label,
		       struct mu_out fetch, struct mu_out first_op, struct mu_err *err)
{
	MU_AUTO(mu_session_close) struct mu_session *s = NULL;
	MU_AUTO_TENSOR v = {0};
	int rc = mu_session_open(&s, mu_server_target(server), b, NULL, err);

	if (!rc && first_op.node)
		rc = mu_session_do(s, first_op, err);
	if (!rc)
		rc = mu_session_get(s, fetch, &v, err);
	if (!rc)
		printf("%s: %.1f\n", label, (double)*MU_DATA(float, &v));
	return rc;
}

static int add(struct mu_server *servers[TASKS], struct mu_err *err)
{
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	int rc;

	mu_push_device(b, "/job:ps/task:0");
	struct mu_out x = mu_const_float(b, 3), y = mu_const_float(b, 4);
	struct mu_var *total = mu_variable(b, "sum", MU_FLOAT, MU_SCALAR, MU_ZEROS, false);
	mu_pop_device(b);
	mu_push_device(b, "/job:worker/task:0");
	struct mu_out sum0 = mu_add(b, x, y);
	mu_pop_device(b);
	mu_push_device(b, "/job:worker/task:1");
	struct mu_out sum1 = mu_add(b, mu_const_float(b, 9), y);
	struct mu_out assign = mu_assign(b, total, sum1);
	mu_pop_device(b);

	rc = print_value(b, servers[WORKER0], "worker 0", sum0, mu_init_all(b), err);
	if (!rc)
		rc = print_value(b, servers[WORKER1], "worker 1", sum1, assign, err);
	return rc ? rc
		  : print_value(b, servers[PS], "seen on the ps", mu_read(total), MU_NO_OUT, err);
}

int main(int argc, char **argv)
{
	struct mu_server *servers[TASKS] = {NULL};
	struct mu_err err;
	int rc = start_all(
	    servers, argc > 1 ? argv[1] : "localhost:2222,localhost:2223,localhost:2224", &err);

	if (!rc)
		rc = add(servers, &err);
	if (rc)
		fprintf(stderr, "three_adds: %s\n", err.msg);
	for (int i = 0; i < TASKS; i++)
		mu_server_stop(servers[i]);
	return rc ? 1 : 0;
}
