/* SPDX-License-Identifier: Apache-2.0 */
/* A task server inside the program, for a program that runs as each task of a job.
 *
 *	mu_cluster_add_hosts(&cluster, "ps", "ps0:2222", &err);
 *	mu_cluster_add_hosts(&cluster, "worker", "worker0:2222,worker1:2222", &err);
 *	mu_server_start(&server, &cluster, "worker", 1, &err);
 *	mu_session_open(&s, mu_server_target(server), b, NULL, &err);
 *
 * The functions of lib/cluster/cluster_spec.h create a cluster from JSON, TF_CONFIG, flags or lists
 * of hosts.
 */
#ifndef MUSTER_SERVER_H
#define MUSTER_SERVER_H

#include "lib/cluster/cluster_spec.h"
#include "muster/session.h"

struct mu_server;

/* Starts a task of the cluster at its address in c; it runs until mu_server_stop. Borrows c for the
 * call. The operator and `muster run` set ports, kernels and TLS in the environment (MUSTER_PORT,
 * MUSTER_HTTP_PORT, MUSTER_KERNELS, MUSTER_TLS, …), as for muster-task. */
int mu_server_start(struct mu_server **out, const struct mu_cluster *c, const char *job, int index,
		    struct mu_err *err);
/* Starts a cluster of one task, /job:local/task:0, on a free port of this machine. */
int mu_server_create_local(struct mu_server **out, struct mu_err *err);
/* "grpc://host:port"; valid until mu_server_stop. With MUSTER_TLS the server refuses connections in
 * plaintext: use mu_server_transport. */
const char *mu_server_target(const struct mu_server *s);
/* For mu_session_options: sessions of this process call the server directly, without a connection.
 */
struct mu_transport mu_server_transport(struct mu_server *s);
/* Blocks until the process receives SIGTERM or SIGINT. A ps task calls only this function. */
void mu_server_join(struct mu_server *s);
void mu_server_stop(struct mu_server *s); /* and frees it */
MU_AUTO_DEFINE(mu_server_stop, struct mu_server)

#endif
