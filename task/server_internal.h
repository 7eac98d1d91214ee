/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MU_TASK_SERVER_INTERNAL_H
#define MU_TASK_SERVER_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "lib/net/http_server.h"
#include "lib/tls/token.h"
#include "task/context.h"
#include "task/device_choice.h"
#include "task/master/master.h"
#include "task/server.h"
#include "task/worker/worker.h"

struct cJSON;
struct task_server {
	struct task_context context;
	struct device_choice device;
	struct mu_offload *offload;
	struct mu_timer *timer;
	struct peers *peers;
	struct event_listeners *event_listeners;
	struct runtime *rt;
	struct rpc_server *rpc;
	struct rpc_tls *tls; /* NULL: unencrypted */
	struct mu_http_server *http;
	int ports[2], http_port;
	char *target;
	int64_t started_ms;
	_Atomic bool ready;
	_Atomic int epoch; /* epoch of the last accepted cluster update; 0: unknown */
	char token_digest[MU_TOKEN_SIZE]; /* "": the job has no token */
	void (*finish)(void *arg);
	void *finish_arg;
	pthread_mutex_t lock; /* guards the members below */
	char *progress;
	int64_t rate_ms;     /* time of the last computation of `rate` and `busy` */
	uint64_t rate_steps; /* steps at rate_ms */
	double rate_cpu;     /* CPU seconds at rate_ms */
	double rate, busy;   /* steps per second; share of the CPUs in use, 0 to 1 */
};

void server_status_lists(struct task_server *s, struct cJSON *to); /* adds members */
void server_http_handle(void *server, const struct mu_http_request *rq, struct mu_http_answer *out);
void server_cluster_post(struct task_server *s, struct mu_span text, struct mu_http_answer *out);

#endif
