/* SPDX-License-Identifier: Apache-2.0 */
/* Keys between the two phases of a rotation (operator/plan/plan_security.c): here and nowhere else,
 * for as long as it takes. */
#ifndef CONTROLLER_CERTS_H
#define CONTROLLER_CERTS_H

#include <pthread.h>

#include "lib/base/map.h"
#include "lib/tls/certs.h"

struct job_plan;
struct reconcile;

struct certs_memo {
	pthread_mutex_t lock;
	struct mu_map by_uid; /* of the job -> struct certs_next */
};

void certs_init(struct certs_memo *m);
void certs_fini(struct certs_memo *m);
/* How long ago the CA of that job's next certificates was spread, when they are here and `trusted`
 * has it; else 0.  now: as of the queue's clock. */
double certs_next_since(struct certs_memo *m, const char *uid, const char *trusted, double now);

/* Does what the plan says of the Secret and notes it in the plan's status, which is to be stored
 * before anything else is done: 1; 0 when it says nothing. */
int certs_apply(struct reconcile *r, struct job_plan *plan, struct mu_err *err);

#endif
