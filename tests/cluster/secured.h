/* SPDX-License-Identifier: Apache-2.0 */
/* A ps and a worker with mutual TLS, and a client that connects to them. */
#ifndef MU_TESTS_CLUSTER_SECURED_H
#define MU_TESTS_CLUSTER_SECURED_H

#include "tests/certs_folder.h"
#include "tests/cluster/fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <time.h>

#include "lib/tls/certs.h"
#include "task/peer/stream_tls.h"
#include "task/server_internal.h"

#define PS     "/job:ps/task:0"
#define WORKER "/job:worker/task:0"

static const char *const names[] = {"localhost", "127.0.0.1"};

struct secured {
	struct fixture f;
	char folder[2][40]; /* certificates of ps/0 and worker/0 */
	const char *peer;   /* address kind between the tasks */
	int stream_port;    /* requested stream port of each task; 0: any */
	struct mu_certs certs;
};

static inline void make_task_certs(struct mu_certs *c)
{
	int64_t now = (int64_t)time(NULL);
	struct mu_err err;

	assert_ok(mu_certs_make(c, names, 2, now - 60, now + 3600, &err), &err);
}

static inline void make_folder(char folder[40], const struct mu_certs *c, const char *ca)
{
	struct mu_err err;

	snprintf(folder, 40, "/tmp/muster-tls-XXXXXX");
	assert_non_null(mkdtemp(folder));
	assert_ok(certs_write(c, ca, folder, &err), &err);
}

static inline void remove_certs_folder(const char *folder)
{
	static const char *const files[] = {"ca.crt", "tls.crt", "tls.key"};
	char path[64];

	for (unsigned i = 0; i < MU_COUNT(files); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, files[i]);
		unlink(path);
	}
	rmdir(folder);
}

static inline void start_secured(struct secured *s, struct task *t, const char *job,
				 const char *folder)
{
	struct task_server_options o = {.cluster = &s->f.cluster,
					.job = job,
					.threads = 2,
					.tls = folder,
					.peer = s->peer,
					.stream_port = s->stream_port,
					.local = "127.0.0.1:0",
					.connect_timeout_ms = CALL_MS};
	struct mu_err err;
	char target[64];

	assert_ok(task_server_start(&o, &t->server, &err), &err);
	snprintf(target, sizeof(target), "127.0.0.1:%d", task_server_local_port(t->server));
	assert_ok(rpc_channel_open(target, &t->ch, &err), &err);
}

static inline struct secured *secured_new_at(const char *peer, int stream_port)
{
	struct secured *s = MU_NEW(struct secured);
	struct mu_err err;

	s->peer = peer;
	s->stream_port = stream_port;
	for (int i = 0; i < 2; i++) {
		snprintf(s->f.address[i], sizeof(s->f.address[i]), "localhost:%d", free_port());
		assert_ok(
		    mu_cluster_add(&s->f.cluster, i ? "worker" : "ps", 0, s->f.address[i], &err),
		    &err);
	}
	make_task_certs(&s->certs);
	for (int i = 0; i < 2; i++)
		make_folder(s->folder[i], &s->certs, NULL);
	start_secured(s, &s->f.ps, "ps", s->folder[0]);
	start_secured(s, &s->f.worker[0], "worker", s->folder[1]);
	return s;
}

static inline struct secured *secured_new(const char *peer)
{
	return secured_new_at(peer, 0);
}

static inline void secured_free(struct secured *s)
{
	stop_task(&s->f.worker[0]);
	stop_task(&s->f.ps);
	mu_cluster_fini(&s->f.cluster);
	for (int i = 0; i < 2; i++)
		remove_certs_folder(s->folder[i]);
	mu_certs_fini(&s->certs);
	free(s);
}

static inline void open_session(struct secured *s, char handle[64])
{
	MU_AUTO(mu_graph_free) struct mu_graph *g = mu_graph_new();
	struct mu_node *v = variable(g, "v", PS), *one = constant(g, "one", WORKER, number(1));
	struct mu_node *zero = constant(g, "zero", PS, number(0));
	struct mu_err err;

	binary(g, "init", "Assign", PS, v, zero);
	binary(g, "add", "AssignAdd", PS, v, one);
	unary(g, "read", "Identity", WORKER, v);
	assert_ok(create(&s->f.worker[0], g, MU_SPAN(""), handle, &err), &err);
}

static inline int target(struct task *t, const char *handle, const char *name, struct mu_err *err)
{
	struct step s = {.target = name, .timeout_ms = CALL_MS};

	return run(t, handle, &s, NULL, err);
}

static inline void run_add_steps(struct secured *s, const char *handle, int times)
{
	struct mu_err err;

	for (int i = 0; i < times; i++)
		assert_ok(target(&s->f.worker[0], handle, "add", &err), &err);
}

static inline int dial(const char *address)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	a.sin_port = htons((uint16_t)atoi(strrchr(address, ':') + 1));
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

/* True if the server at that address answers a TLS call with the certificates of folder. */
static inline bool is_accepted(const char *address, const char *folder)
{
	struct rpc_message m = {0};
	struct rpc_channel *ch;
	struct rpc_tls *t;
	struct mu_err err;
	int rc;

	assert_ok(rpc_tls_open(folder, &t, &err), &err);
	assert_ok(rpc_channel_open_tls(address, t, &ch, &err), &err);
	rc = rpc_call(ch, "/tensorflow.WorkerService/GetStatus", &m, CALL_MS, 0, NULL, &err);
	rpc_channel_close(ch);
	rpc_tls_unref(t);
	return rc == 0;
}

/* Sends n numbers from the worker to the ps and back and compares each. */
static inline void round_trip(struct secured *s, int n)
{
	MU_AUTO(mu_graph_free) struct mu_graph *g = mu_graph_new();
	struct mu_shape shape = mu_shape_vec(n);
	struct step fetch = {.fetch = "back:0"};
	MU_AUTO_TENSOR out = {0};
	struct mu_tensor big;
	struct mu_err err;
	struct mu_node *from;
	char handle[64];

	assert_ok(mu_tensor_new(&big, MU_FLOAT, &shape, &err), &err);
	for (int i = 0; i < n; i++)
		MU_DATA(float, &big)[i] = (float)(i % 65521);
	from = constant(g, "big", WORKER, big);
	unary(g, "back", "Neg", WORKER, unary(g, "there", "Neg", PS, from));
	assert_ok(create(&s->f.worker[0], g, MU_SPAN(""), handle, &err), &err);
	assert_ok(run(&s->f.worker[0], handle, &fetch, &out, &err), &err);
	assert_int_equal(mu_tensor_bytes(&out), (size_t)n * sizeof(float));
	for (int i = 0; i < n; i++)
		if (MU_DATA(float, &out)[i] != (float)(i % 65521))
			fail_msg("element %d is %g", i, MU_DATA(float, &out)[i]);
	assert_ok(close_session(&s->f.worker[0], handle, &err), &err);
}

#endif
