// SPDX-License-Identifier: Apache-2.0
/* Hello, distributed world: a session on a task server fetches a constant string.
 *
 *	muster-task --cluster '{"local": ["localhost:2222"]}' --job local --task 0 &
 *	hello grpc://localhost:2222
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

	struct mu_out c = mu_const_str(b, "Hello, distributed TensorFlow!");
	if (mu_session_open(&s, target, b, NULL, &err) || mu_session_get(s, c, &value, &err)) {
		fprintf(stderr, "hello: %s\n", err.msg);
		return 1;
	}
	const struct mu_string *text = value.data;
	printf("%.*s\n", (int)text->len, text->data);
	return 0;
}
