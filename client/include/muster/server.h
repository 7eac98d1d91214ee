/* SPDX-License-Identifier: Apache-2.0 */
/* A task server within the program: what a program that is all of a job's tasks starts with.
 *
 *	mu_cluster_add_hosts(&cluster, "ps", "ps0:2222", &err);
 *	mu_cluster_add_hosts(&cluster, "worker", "worker0:2222,worker1:2222", &err);
 *	mu_server_start(&server, &cluster, "worker", 1, &err);
 *	mu_session_open(&s, mu_server_target(server), b, NULL, &err);
 *
 * The cluster is made and asked with the functions of lib/cluster/cluster_spec.h: from JSON,
 * TF_CONFIG, flags or lists of hosts.
 */
#ifndef MUSTER_SERVER_H
#define MUSTER_SERVER_H

#include "lib/cluster/cluster_spec.h"
#include "muster/session.h"

struct mu_server;

/* Serves as a task of the cluster, on the address that it has there, until mu_server_stop.  Borrows
 * c until it returns. */
int mu_server_start(struct mu_server **out, const struct mu_cluster *c, const char *job, int index,
		    struct mu_err *err);
/* A cluster of one task, /job:local/task:0, on a free port of this machine. */
int mu_server_create_local(struct mu_server **out, struct mu_err *err);
/* "grpc://host:port", as long as the server lives. */
const char *mu_server_target(const struct mu_server *s);
/* For mu_session_options: a session of this process needs no connection to its own server. */
struct mu_transport mu_server_transport(struct mu_server *s);
/* Returns when the process is told to end, by SIGTERM or SIGINT: a ps task does nothing else. */
void mu_server_join(struct mu_server *s);
void mu_server_stop(struct mu_server *s); /* and frees it */
MU_AUTO_DEFINE(mu_server_stop, struct mu_server)

#endif
