/* SPDX-License-Identifier: Apache-2.0 */
/* Fits a line to four points, on a task server in the same process. */
#include <stdio.h>

#include "lib/base/log.h"
#include "lib/cluster/cluster_spec.h"
#include "muster/data.h"
#include "muster/grad.h"
#include "muster/session.h"
#include "muster/train.h"
#include "task/server.h"

static struct mu_out vector(struct mu_builder *b, const int32_t v[4])
{
	return mu_cast(b, mu_const_ints(b, v, 4), MU_FLOAT);
}

static int fit(const char *target, struct mu_err *err)
{
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	MU_AUTO(mu_session_close) struct mu_session *s = NULL;
	struct mu_var *slope = mu_variable(b, "slope", MU_FLOAT, MU_SCALAR, MU_ZEROS, true);
	struct mu_var *offset = mu_variable(b, "offset", MU_FLOAT, MU_SCALAR, MU_ZEROS, true);
	struct mu_out x = vector(b, (int32_t[]){0, 1, 2, 3});
	struct mu_out y = vector(b, (int32_t[]){1, 3, 5, 7});
	struct mu_out line = mu_add(b, mu_mul(b, x, mu_read(slope)), mu_read(offset));
	struct mu_out loss = mu_mean(b, mu_square(b, mu_sub(b, line, y)), NULL, 0);
	struct mu_optimizer sgd;
	MU_AUTO_TENSOR a = {0};
	MU_AUTO_TENSOR c = {0};
	int rc = mu_optimizer_named("sgd", 0.1, &sgd, err);

	struct mu_out train = mu_minimize(b, &sgd, loss, mu_global_step(b));
	struct mu_out init = mu_init_all(b);
	if (rc || (rc = mu_session_open(&s, target, b, NULL, err)) ||
	    (rc = mu_session_do(s, init, err)))
		return rc;
	for (int i = 0; i < 500 && !rc; i++)
		rc = mu_session_do(s, train, err);
	if (rc || (rc = mu_session_get(s, mu_read(slope), &a, err)) ||
	    (rc = mu_session_get(s, mu_read(offset), &c, err)))
		return rc;
	printf("y = %.1f x + %.1f\n", (double)*MU_DATA(float, &a), (double)*MU_DATA(float, &c));
	return 0;
}

int main(void)
{
	struct mu_cluster cluster = {0};
	struct task_server_options o = {
	    .cluster = &cluster, .job = "local", .bind = "127.0.0.1:0", .http_port = -1};
	struct task_server *server = NULL;
	struct mu_err err;
	int rc = mu_cluster_add(&cluster, "local", 0, "127.0.0.1:1", &err);

	mu_log_set_level(MU_WARN);
	if (!rc)
		rc = task_server_start(&o, &server, &err);
	if (!rc)
		rc = fit(task_server_target(server), &err);
	if (rc)
		fprintf(stderr, "line: %s\n", err.msg);
	if (server)
		task_server_stop(server, 1000);
	mu_cluster_fini(&cluster);
	return rc ? 1 : 0;
}
