/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that do a plan's actions share. */
#ifndef CONTROLLER_APPLY_CALL_H
#define CONTROLLER_APPLY_CALL_H

#include "operator/controller/reconcile.h"

/* A call, while this operator may write. */
int apply_ask(struct reconcile *r, const struct kube_request *rq, cJSON **out, struct mu_err *err);
int apply_call(struct reconcile *r, const char *method, const char *path, const cJSON *body,
	       const struct kube_fields *fields, cJSON **out, struct mu_err *err);
/* Whether its controller is this very job. */
bool apply_is_ours(const struct reconcile *r, const cJSON *object);
/* Keeps the first error; true when there is no point in going on. */
bool apply_note(int rc, const struct mu_err *mine, int *first, struct mu_err *err);

#endif
