/* SPDX-License-Identifier: Apache-2.0 */
/* A job named "local" with two tasks in two processes. Both run a server; task 0 also uses both.
 *
 *	two_tasks localhost:2222,localhost:2223 1 &
 *	two_tasks localhost:2222,localhost:2223 0
 */
#include <stdio.h>
#include <stdlib.h>

#include "muster/server.h"

static int use_both(struct mu_server *server, struct mu_err *err)
{
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	MU_AUTO(mu_session_close) struct mu_session *s = NULL;
	struct mu_session_options options = {.transport = mu_server_transport(server)};
	int rc;

	mu_push_device(b, "/job:local/task:1"); /* on the other process */
	struct mu_var *numbers = mu_variable(b, "numbers", MU_INT32, MU_SHAPE(4), MU_ZEROS, false);
	struct mu_out initialise =
	    mu_assign(b, numbers, mu_const_ints(b, (int32_t[]){1, 2, 3, 4}, 4));
	mu_pop_device(b);
	mu_push_device(b, "/job:local/task:0");
	struct mu_out total = mu_sum(b, mu_read(numbers), NULL, 0);
	struct mu_out twice = mu_mul(b, mu_read(numbers), mu_const_int(b, MU_INT32, 2));
	struct mu_out doubled = mu_assign(b, numbers, twice);
	mu_pop_device(b);

	rc = mu_session_open(&s, mu_server_target(server), b, &options, err);
	if (!rc)
		rc = mu_session_do(s, initialise, err);
	for (int i = 0; i < 2 && !rc; i++) {
		MU_AUTO_TENSOR sum = {0};
		MU_AUTO_TENSOR values = {0};

		rc = mu_session_get(s, total, &sum, err);
		if (!rc)
			printf("total: %d\n", *MU_DATA(int32_t, &sum));
		if (!rc && i == 0)
			rc = mu_session_get(s, doubled, &values, err);
		if (!rc && i == 0) {
			const int32_t *n = MU_DATA(int32_t, &values);

			printf("doubled: [%d, %d, %d, %d]\n", n[0], n[1], n[2], n[3]);
		}
	}
	return rc;
}

int main(int argc, char **argv)
{
	MU_AUTO(mu_server_stop) struct mu_server *server = NULL;
	MU_AUTO_CLUSTER cluster = {0};
	int task = argc > 2 ? atoi(argv[2]) : 0;
	struct mu_err err;

	if (mu_cluster_add_hosts(&cluster, "local",
				 argc > 1 ? argv[1] : "localhost:2222,localhost:2223", &err) ||
	    mu_server_start(&server, &cluster, "local", task, &err) ||
	    (task == 0 && use_both(server, &err))) {
		fprintf(stderr, "two_tasks: %s\n", err.msg);
		return 1;
	}
	if (task != 0)
		mu_server_join(server);
	return 0;
}
