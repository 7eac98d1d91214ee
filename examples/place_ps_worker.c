// SPDX-License-Identifier: Apache-2.0
/* Placement: variables on a parameter server, the computation spread over two workers.
 *
 * Each variable stays on /job:ps/task:0 and is seen by every session of the cluster; worker 0
 * computes x W, worker 1 adds b.
 *
 *	C='{"ps": ["localhost:2222"], "worker": ["localhost:2223", "localhost:2224"]}'
 *	muster-task --cluster "$C" --job ps --task 0 &
 *	muster-task --cluster "$C" --job worker --task 0 &
 *	muster-task --cluster "$C" --job worker --task 1 &
 *	place_ps_worker grpc://localhost:2223
 */
#include <stdio.h>

#include "muster/session.h"

int main(int argc, char **argv)
{
	const char *target = argc > 1 ? argv[1] : "grpc://localhost:2223";
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	MU_AUTO(mu_session_close) struct mu_session *s = NULL;
	MU_AUTO_TENSOR value = {0};
	struct mu_init three = {.kind = MU_INIT_VALUE, .value = 3};
	struct mu_init one = {.kind = MU_INIT_VALUE, .value = 1};
	struct mu_err err;

	mu_push_device(b, "/job:ps/task:0");
	struct mu_var *w = mu_variable(b, "w", MU_FLOAT, MU_SHAPE(2, 1), three, true);
	struct mu_var *bias = mu_variable(b, "b", MU_FLOAT, MU_SHAPE(1), one, true);
	mu_pop_device(b);

	mu_push_device(b, "/job:worker/task:0");
	struct mu_out x =
	    mu_op(b, "Fill", MU_IN(mu_const_ints(b, (int32_t[]){1, 2}, 2), mu_const_float(b, 2)));
	struct mu_out xw = mu_matmul(b, x, mu_read(w));
	mu_pop_device(b);

	mu_push_device(b, "/job:worker/task:1");
	struct mu_out y = mu_add(b, xw, mu_read(bias));
	mu_pop_device(b);

	if (mu_session_open(&s, target, b, NULL, &err) || mu_session_do(s, mu_init_all(b), &err) ||
	    mu_session_get(s, y, &value, &err)) {
		fprintf(stderr, "place_ps_worker: %s\n", err.msg);
		return 1;
	}
	printf("%g\n", *MU_DATA(float, &value)); /* 2*3 + 2*3 + 1 */
	return 0;
}
