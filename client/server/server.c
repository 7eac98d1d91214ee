/* SPDX-License-Identifier: Apache-2.0 */
/* A task server in the process of the program. */
#include "muster/server.h"

#include <signal.h>

#include "task/server.h"

enum { GRACE_MS = 2000 };

struct mu_server {
	struct task_server *task;
};

static int server_start(struct mu_server **out, const struct task_server_options *o,
			struct mu_err *err)
{
	struct mu_server *s = MU_NEW(struct mu_server);
	int rc = task_server_start(o, &s->task, err);

	if (rc)
		free(s);
	else
		*out = s;
	return rc;
}

int mu_server_start(struct mu_server **out, const struct mu_cluster *c, const char *job, int index,
		    struct mu_err *err)
{
	struct task_server_options o = {.cluster = c, .job = job, .index = index, .http_port = -1};
	char bind[TASK_SERVER_BIND];
	int rc = task_options_from_env(&o, bind, err);

	return rc ? rc : server_start(out, &o, err);
}

int mu_server_create_local(struct mu_server **out, struct mu_err *err)
{
	MU_AUTO_CLUSTER c = {0};
	struct task_server_options o = {
	    .cluster = &c, .job = "local", .bind = "127.0.0.1:0", .http_port = -1};
	/* A placeholder: the server binds a free port and reports it. */
	int rc = mu_cluster_add(&c, "local", 0, "127.0.0.1:1", err);

	return rc ? rc : server_start(out, &o, err);
}

const char *mu_server_target(const struct mu_server *s)
{
	return task_server_target(s->task);
}

struct mu_transport mu_server_transport(struct mu_server *s)
{
	return (struct mu_transport){.call = task_server_call, .ctx = s->task};
}

static volatile sig_atomic_t stop_signalled;

static void on_signal(int sig)
{
	stop_signalled = 1;
}

void mu_server_join(struct mu_server *s)
{
	struct sigaction action = {.sa_handler = on_signal}, previous_term, previous_int;
	sigset_t stop_signals, previous_mask;

	sigemptyset(&stop_signals);
	sigaddset(&stop_signals, SIGTERM);
	sigaddset(&stop_signals, SIGINT);
	/* The signals are blocked except during the wait, so one that arrives just before it is not
	 * lost. */
	pthread_sigmask(SIG_BLOCK, &stop_signals, &previous_mask);
	sigaction(SIGTERM, &action, &previous_term);
	sigaction(SIGINT, &action, &previous_int);
	for (stop_signalled = 0; !stop_signalled;)
		sigsuspend(&previous_mask);
	sigaction(SIGTERM, &previous_term, NULL);
	sigaction(SIGINT, &previous_int, NULL);
	pthread_sigmask(SIG_SETMASK, &previous_mask, NULL);
}

void mu_server_stop(struct mu_server *s)
{
	if (!s)
		return;
	task_server_stop(s->task, GRACE_MS);
	free(s);
}
