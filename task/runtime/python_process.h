/* SPDX-License-Identifier: Apache-2.0 */
/* The Python program that started the task, and that runs the functions of PyFunc ops.
 *
 * Each call has its own connection, because a function may wait for another call.  The task has one
 * end of a Unix socket of the program.  To connect, the task makes a socket pair and sends one of
 * the two descriptors (SCM_RIGHTS).  client/python/muster/process.py is the other side.
 */
#ifndef MU_TASK_RUNTIME_PYTHON_PROCESS_H
#define MU_TASK_RUNTIME_PYTHON_PROCESS_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/err.h"

struct python_process;
struct python_process *python_process_new(int socket); /* borrowed */
void python_process_free(struct python_process *p);    /* NULL is allowed; no call may be running */
/* Runs fn(arg) on a thread that may block. */
void python_process_run(struct python_process *p, void (*fn)(void *arg), void *arg);

struct python_call {
	struct python_process *process;
	int connection; /* -1: none */
	bool cancelled;
};
int python_call_open(struct python_call *call, struct mu_err *err);
/* Send or receive exactly n bytes; fail if the program ends, or after python_call_cancel. */
int python_call_send(struct python_call *call, const void *from, size_t n, struct mu_err *err);
int python_call_receive(struct python_call *call, void *to, size_t n, struct mu_err *err);
/* is_complete: nothing is left to send or receive, so another call may reuse the connection. */
void python_call_close(struct python_call *call, bool is_complete);
/* Cancels the call, from any thread, before or during it.  The Python function is not stopped. */
void python_call_cancel(struct python_call *call);

#endif
