// SPDX-License-Identifier: Apache-2.0
/* Two tasks of one job: a constant on each, added on the second, fetched through the first.
 *
 *	muster-task --cluster '{"local": ["localhost:2222", "localhost:2223"]}' --job local --task 0
 *& muster-task --cluster '{"local": ["localhost:2222", "localhost:2223"]}' --job local --task 1 &
 *	two_tasks grpc://localhost:2222
 */
#include <stdio.h>

#include "muster/session.h"

int main(int argc, char **argv)
{
	const char *target = argc > 1 ? argv[1] : "grpc://localhost:2222";
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	MU_AUTO(mu_session_close) struct mu_session *s = NULL;
	MU_AUTO_TENSOR value = {0};
	struct mu_err err;
	struct mu_out x, y;

	mu_push_device(b, "/job:local/task:0");
	x = mu_const_float(b, 2);
	mu_pop_device(b);
	mu_push_device(b, "/job:local/task:1");
	y = mu_mul(b, x, mu_const_float(b, 21));
	mu_pop_device(b);

	if (mu_session_open(&s, target, b, NULL, &err) || mu_session_get(s, y, &value, &err)) {
		fprintf(stderr, "two_tasks: %s\n", err.msg);
		return 1;
	}
	printf("%g\n", *MU_DATA(float, &value));
	return 0;
}
