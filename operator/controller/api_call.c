/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/controller.h"

bool controller_is_unreachable(int rc)
{
	return rc == -MU_UNAVAILABLE || rc == -MU_CANCELLED || rc == -MU_DEADLINE_EXCEEDED;
}

int controller_send(struct controller *c, const struct kube_request *rq, cJSON **out,
		    struct mu_err *err)
{
	struct kube_request request = *rq;

	/* once another replica may lead, no write is sent, and none is retried */
	if (strcmp(rq->method, "GET") != 0) {
		request.may_send = c->io.may_write;
		request.arg = c->io.user;
	}
	if (strcmp(rq->method, "PATCH") == 0)
		request.content_type = "application/merge-patch+json";
	if (request.may_send && !request.may_send(request.arg))
		return mu_fail(err, MU_CANCELLED, "another operator may lead now");
	return c->io.call(c->io.user, &request, out, err);
}

int controller_call(struct controller *c, const char *method, const char *path, cJSON *body,
		    cJSON **out, struct mu_err *err)
{
	MU_AUTO_FREE char *text = body ? cJSON_PrintUnformatted(body) : NULL;
	struct kube_request rq = {.method = method, .path = path, .body = mu_span_of(text)};

	cJSON_Delete(body);
	return controller_send(c, &rq, out, err);
}
