/* SPDX-License-Identifier: Apache-2.0 */
/* muster status: GET /status from a task server's HTTP port. */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/cluster/cluster.h"
#include "lib/net/http_client.h"

enum { TIMEOUT_S = 5, BODY_MAX = 4 << 20 };

static int get_status(const char *address, struct mu_http_response *out, struct mu_err *err)
{
	MU_AUTO_FREE char *url = mu_xasprintf("http://%s/status", address);
	struct mu_http_call call = {.method = "GET",
				    .url = url,
				    .timeout_s = TIMEOUT_S,
				    .body_max = BODY_MAX,
				    .one_shot = true};
	struct mu_http_client *c;
	int rc = mu_http_client_new(&c, err);

	if (rc < 0)
		return rc;
	rc = mu_http_perform(c, &call, out, err);
	mu_http_client_free(c);
	if (rc == -MU_DEADLINE_EXCEEDED)
		return mu_fail(err, MU_DEADLINE_EXCEEDED, "%s did not respond within %d s", address,
			       TIMEOUT_S);
	return rc < 0 ? mu_wrap(err, "%s: is this the task's HTTP port?", address) : 0;
}

int cluster_status(int argc, char **argv)
{
	struct mu_http_response response = {0};
	MU_AUTO_FREE char *address = NULL;
	struct mu_err err;
	const char *at, *colon;
	int rc;

	if (argc != 1)
		return cli_usage("status", "expected HOST:PORT of a task's HTTP port");
	at = strncmp(argv[0], "http://", 7) == 0 ? argv[0] + 7 : argv[0];
	colon = strrchr(at, ':');
	if (!colon)
		return cli_usage("status", "'%s' has no port", argv[0]);
	address = mu_xstrndup(at, strcspn(at, "/"));
	rc = get_status(address, &response, &err);
	if (rc == 0) {
		mu_buf_putc(&response.body, 0);
		if (response.status == 200)
			puts(response.body.data);
		else
			rc = mu_fail(&err, MU_UNAVAILABLE, "%s responded with status %ld: %s",
				     address, response.status, response.body.data);
	}
	mu_buf_fini(&response.body);
	return rc ? cli_fail(&err) : CLI_OK;
}
