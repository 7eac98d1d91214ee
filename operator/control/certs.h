/* SPDX-License-Identifier: Apache-2.0 */
/* Keys between the two phases of a rotation (operator/plan/plan_security.c): here and nowhere else,
 * for as long as it takes. */
#ifndef CONTROL_CERTS_H
#define CONTROL_CERTS_H

#include <pthread.h>

#include "lib/base/map.h"
#include "lib/tls/certs.h"

struct certs_memo {
	pthread_mutex_t lock;
	struct mu_map by_uid; /* of the job -> struct certs_next */
};

void certs_init(struct certs_memo *m);
void certs_fini(struct certs_memo *m);
/* How long ago the CA of that job's next certificates was spread, when they are here and `trusted`
 * has it; else 0.  now: as of the queue's clock. */
double certs_next_since(struct certs_memo *m, const char *uid, const char *trusted, double now);

#endif
