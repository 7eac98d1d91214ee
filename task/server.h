/* SPDX-License-Identifier: Apache-2.0 */
/* A task server: one task of a cluster.  The program muster-task runs one; tests and the client
 * library may run several in one process. */
#ifndef MU_TASK_SERVER_H
#define MU_TASK_SERVER_H

#include "lib/base/buf.h"
#include "lib/cluster/cluster_spec.h"

struct rpc_message;

struct task_server_options {
	const struct mu_cluster *cluster; /* borrowed until start returns */
	const char *job;
	int index;
	const char *bind; /* (optional) "host:port" to listen on; else the address in the cluster */
	const char *local;   /* (optional) a second address, for local clients:
				"unix:path" or "127.0.0.1:port" */
	int epoch;           /* epoch of the cluster; 0: unknown */
	int http_port;       /* 0 picks one; -1: none */
	int stream_port;     /* for streams of tasks on other machines; 0: any */
	const char *kernels; /* (optional) "auto" */
	bool *unsupported;   /* (optional) set to true if the machine does not support `kernels` */
	const char *peer;    /* (optional) "grpc": no streams between tasks; "tcp": no streams
			       over Unix sockets; else MUSTER_PEER */
	const char *tls;     /* (optional) the folder of task/rpc/tls.h: `bind` and connections to
			       other tasks use mutual TLS, `local` does not */
	unsigned threads;    /* compute threads; 0: MUSTER_THREADS, or the CPUs of the cgroup */
	long connect_timeout_ms; /* limit of CreateSession's wait for missing tasks; 0: none */
	int64_t session_idle_ms; /* an unused session is closed after this time; 0: never */
	struct mu_span session_config; /* (optional) a ConfigProto, the defaults of every session;
					  borrowed for the server's life */
	int python_socket;             /* (optional) of the program that runs Python functions, see
					  task/runtime/python_process.h; 0: none */
	/* (optional) the SHA-256 of the job's bearer token, as 64 hexadecimal digits.  POST
	 * requests need the token unless they come from the loopback interface.  NULL: only the
	 * loopback interface may POST. */
	const char *token_digest;
	/* (optional) Called from the HTTP thread for POST /finish. */
	void (*finish)(void *arg);
	void *finish_arg;
};

enum { TASK_SERVER_BIND = 32 };
/* Sets the options that the caller left unset from the environment: MUSTER_EPOCH, MUSTER_PORT,
 * MUSTER_STREAM_PORT, MUSTER_HTTP_PORT, MUSTER_TLS, MUSTER_KERNELS, MUSTER_TOKEN_SHA256.  The
 * caller has set the cluster and the task.  If the task's address has a host name and MUSTER_PORT
 * is set, o->bind is all interfaces at that port, and points to `bind`. */
int task_options_from_env(struct task_server_options *o, char bind[TASK_SERVER_BIND],
			  struct mu_err *err);

struct task_server;
int task_server_start(const struct task_server_options *o, struct task_server **out,
		      struct mu_err *err);
/* Waits up to grace_ms for running steps, cancels the others, frees the server. */
void task_server_stop(struct task_server *s, long grace_ms);

int task_server_local_port(const struct task_server *s); /* 0: none, or a unix socket */
int task_server_http_port(const struct task_server *s);  /* 0: none */
/* "grpc://host:port" for a client in this process. */
const char *task_server_target(const struct task_server *s);
/* Calls a method of the server ("/tensorflow.MasterService/RunStep") from within its process,
 * without the network.  timeout_ms <= 0: no limit.  Must not run concurrently with
 * task_server_stop.  `server` is a struct task_server: void *, so that the function can be the
 * `call` of a client's struct mu_transport. */
int task_server_call(void *server, const char *method, const struct rpc_message *request,
		     long timeout_ms, struct mu_buf *reply, struct mu_err *err);
/* The value of the variable global_step; -1: this task has none. */
int64_t task_server_global_step(struct task_server *s);
/* Sets the member "progress" of /status, one JSON object written by a trainer in this process. */
void task_server_set_progress(struct task_server *s, const char *json);

#endif
