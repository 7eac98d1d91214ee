/* SPDX-License-Identifier: Apache-2.0 */
/* The tasks of a local run: one process each, its output in a log file. */
#ifndef MU_CLI_RUN_TASKS_H
#define MU_CLI_RUN_TASKS_H

#include <stdio.h>
#include <sys/types.h>

#include "cli/run_log.h"
#include "operator/plan/job_plan.h"

enum { LINE_SIZE = 4096 };

/* The ports of one task index, kept across restarts. */
struct task_ports {
	char task[JOB_MAX_NAME + 1];
	int index;
	int port, http_port;
	int reservations[2]; /* sockets that reserve the ports; -1: none */
};

struct local_task {
	char task[JOB_MAX_NAME + 1], name[JOB_MAX_NAME + 1], uid[32];
	int index;
	pid_t pid; /* 0: the process has ended */
	int out;   /* pipe from its standard output and error; -1: closed */
	struct run_log log;
	char line[LINE_SIZE]; /* the line being read */
	size_t line_len;
	char last_line[LINE_SIZE]; /* the last complete line; above level info if one exists */
	bool last_is_info, ready, deleting;
	bool is_departure_pod; /* started only to deregister */
	int exit_code;         /* -1 while the process runs */
	int port;
	double created, finished, sigterm_at, finish_requested_at;
};

struct run_tasks {
	struct local_task **list;
	unsigned n, n_started;
	struct task_ports *ports;
	unsigned n_ports;
	bool reports_step;     /* the ps print the global step, because the program may not */
	unsigned threads;      /* compute threads of each task; 0: the task's default */
	const char *logs;      /* folder of the logs */
	size_t log_limit;      /* limit of each task's log in bytes; 0: none */
	const char *bin_dir;   /* folder of our programs */
	const char *namespace; /* of the job */
	/* Called for each line of output of a task. */
	void (*line)(void *user, const struct local_task *t, const char *text);
	void *user;
};

void run_tasks_fini(struct run_tasks *r); /* kills running tasks */
/* The address callback of struct plan_options. */
void run_tasks_address(void *run_tasks, const struct job_spec *s, const char *task, int index,
		       char *out, size_t size);
int run_tasks_start(struct run_tasks *r, const struct plan_pod *pod, double now,
		    struct mu_err *err);
struct local_task *run_tasks_find(struct run_tasks *r, const char *uid);
/* Reads output and updates exit codes and readiness; waits at most timeout_ms for an event. */
void run_tasks_poll(struct run_tasks *r, int timeout_ms, double now);
void run_tasks_remove(struct run_tasks *r, struct local_task *t); /* t must have ended */
unsigned run_tasks_alive(const struct run_tasks *r);
void run_tasks_signal(struct local_task *t, int sig);

#endif
