/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest cluster: one task, with a session that runs on it.
 *
 *	hello                         on a server in this process
 *	hello grpc://localhost:2222   on a running server
 */
#include <stdio.h>

#include "muster/server.h"

int main(int argc, char **argv)
{
	MU_AUTO(mu_server_stop) struct mu_server *server = NULL;
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	MU_AUTO(mu_session_close) struct mu_session *s = NULL;
	MU_AUTO_TENSOR value = {0};
	const char *target = argc > 1 ? argv[1] : NULL;
	struct mu_err err;

	struct mu_out greeting = mu_const_str(b, "Hello, distributed TensorFlow!");
	if (!target && mu_server_create_local(&server, &err) == 0)
		target = mu_server_target(server);
	if (!target || mu_session_open(&s, target, b, NULL, &err) ||
	    mu_session_get(s, greeting, &value, &err)) {
		fprintf(stderr, "hello: %s\n", err.msg);
		return 1;
	}
	const struct mu_string *text = value.data;
	printf("%.*s\n", (int)text->len, text->data);
	return 0;
}
