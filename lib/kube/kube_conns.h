/* SPDX-License-Identifier: Apache-2.0 */
/* The connections of a client: each exchange borrows one that is kept alive, so there are as many
 * as exchanges ever went on at once, bounded by the threads.  kube_client's own. */
#ifndef KUBE_CONNS_H
#define KUBE_CONNS_H

#include "lib/kube/kube_http.h"
#include "lib/kube/kube_trust.h"
#include "lib/kube/kube_tunnel.h"
#include "lib/kube/kube_wire.h"

struct kube_conn;

struct kube_conns {
	const struct kube_config *config; /* borrowed */
	struct kube_address to;
	struct kube_identity identity;
	struct kube_trust trust;
	bool proxied;
	struct kube_tunnel tunnel; /* when it is */
	char *lines;               /* of every request's head */
	pthread_mutex_t lock;
	int stopping; /* readable once stopped: those who sleep wait for that */
	struct kube_conn *pool, *used;
	_Atomic bool stopped;
};
int kube_conns_init(struct kube_conns *c, const struct kube_config *config, struct mu_err *err);
void kube_conns_fini(struct kube_conns *c);
/* Cuts every exchange and sleep under way; later ones fail with CANCELLED. */
void kube_conns_stop(struct kube_conns *c);
bool kube_conns_sleep(struct kube_conns *c, double seconds);

struct kube_exchange {
	const char *method, *path, *content_type;
	struct mu_span body;
	bool protobuf;   /* is read, and better than JSON */
	bool fresh;      /* the last answer was 401: credentials are asked for anew */
	double patience; /* seconds for all of it */
	double gather; /* seconds between looks at an answer that goes on; 0: each piece at once */
};
/* An exchange that was begun: the request has gone out, the answer has not been read. */
struct kube_asked {
	struct kube_conn *conn;
	bool kept;    /* it was there before, so the server may just have closed it */
	double until; /* when the answer has to be there */
};
/* Sends the request.  A thread may begin several before it ends the first: what *x borrows stays
 * until then, and each that has begun (0) is ended. */
int kube_exchange_begin(struct kube_conns *c, const struct kube_exchange *x, struct kube_asked *a,
			struct mu_err *err);
/* The answer goes to *answer, of which body and arg are set; 0 when it came whole. */
int kube_exchange_end(struct kube_conns *c, const struct kube_exchange *x, struct kube_asked *a,
		      struct kube_http *answer, struct mu_err *err);

#endif
