/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the workers to the API server. */
#include "operator/controller/controller.h"

enum { CALLS_MAX = 8 };

/* A write is not sent once leadership may have passed, not even a second time after a wait. */
static struct kube_request guarded(const struct controller *c, const struct kube_request *rq)
{
	struct kube_request out = *rq;

	if (strcmp(rq->method, "GET") != 0) {
		out.may = c->io.may_write;
		out.arg = c->io.user;
	}
	if (strcmp(rq->method, "PATCH") == 0)
		out.content_type = "application/merge-patch+json";
	return out;
}

int controller_send(struct controller *c, const struct kube_request *rq, cJSON **out,
		    struct mu_err *err)
{
	struct kube_request mine = guarded(c, rq);

	if (mine.may && !mine.may(mine.arg))
		return mu_fail(err, MU_CANCELLED, "another operator may lead now");
	return c->io.call(c->io.user, &mine, out, err);
}

unsigned controller_send_many(struct controller *c, const struct kube_request *rqs, unsigned n,
			      struct kube_reply *out)
{
	struct kube_request mine[CALLS_MAX];

	n = n < CALLS_MAX ? n : CALLS_MAX;
	for (unsigned i = 0; i < n; i++)
		mine[i] = guarded(c, &rqs[i]);
	if (c->io.call_many)
		return c->io.call_many(c->io.user, mine, n, out);
	*out = (struct kube_reply){0};
	out->rc = controller_send(c, rqs, &out->out, &out->err);
	return 1;
}

int controller_call(struct controller *c, const char *method, const char *path, cJSON *body,
		    cJSON **out, struct mu_err *err)
{
	MU_AUTO_FREE char *text = body ? cJSON_PrintUnformatted(body) : NULL;
	struct kube_request rq = {.method = method, .path = path, .body = mu_span_of(text)};

	cJSON_Delete(body);
	return controller_send(c, &rq, out, err);
}
