/* SPDX-License-Identifier: Apache-2.0 */
#include "task/runtime/python_process.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/base/offload.h"

/* Limit of concurrent calls; further calls wait.  Each call uses a descriptor in both processes,
 * and the usual limit of open files is 1024. */
enum { MAX_CALLS = 256 };

struct python_process {
	int socket;
	struct mu_offload *threads;
	pthread_mutex_t lock;
	int idle[MAX_CALLS]; /* connections without a call */
	unsigned n_idle;
};

struct python_process *python_process_new(int socket)
{
	struct python_process *p = MU_NEW(struct python_process);

	p->socket = socket;
	p->threads = mu_offload_new(MAX_CALLS);
	pthread_mutex_init(&p->lock, NULL);
	return p;
}

void python_process_free(struct python_process *p)
{
	if (!p)
		return;
	mu_offload_free(p->threads);
	while (p->n_idle)
		close(p->idle[--p->n_idle]);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

static int send_connection(int socket, int connection)
{
	char byte = 0;
	struct iovec data = {&byte, 1};
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr aligned;
	} control = {0};
	struct msghdr m = {.msg_iov = &data,
			   .msg_iovlen = 1,
			   .msg_control = control.bytes,
			   .msg_controllen = sizeof control.bytes};
	struct cmsghdr *header = CMSG_FIRSTHDR(&m);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &connection, sizeof connection);
	return sendmsg(socket, &m, MSG_NOSIGNAL) == 1 ? 0 : -1;
}

static int connect_to_process(int socket, int *out, struct mu_err *err)
{
	int pair[2], rc = 0;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return mu_fail_errno(err, errno, "cannot connect to the Python program");
	if (send_connection(socket, pair[1])) {
		rc = mu_fail_errno(err, errno, "cannot connect to the Python program");
		close(pair[0]);
	} else {
		*out = pair[0];
	}
	close(pair[1]);
	return rc;
}

void python_process_run(struct python_process *p, void (*fn)(void *arg), void *arg)
{
	mu_offload_run(p->threads, fn, arg);
}

int python_call_open(struct python_call *call, struct mu_err *err)
{
	struct python_process *p = call->process;
	int fd = -1;

	pthread_mutex_lock(&p->lock);
	if (p->n_idle)
		fd = p->idle[--p->n_idle];
	pthread_mutex_unlock(&p->lock);
	if (fd < 0)
		MU_RETURN_IF_ERROR(connect_to_process(p->socket, &fd, err));
	pthread_mutex_lock(&p->lock);
	call->connection = fd;
	if (call->cancelled)
		shutdown(fd, SHUT_RDWR);
	pthread_mutex_unlock(&p->lock);
	return 0;
}

static int call_has_ended(struct mu_err *err)
{
	return mu_fail(err, MU_UNAVAILABLE, "the Python program of this task has ended the call");
}

int python_call_send(struct python_call *call, const void *from, size_t n, struct mu_err *err)
{
	for (const char *at = from; n;) {
		ssize_t sent = send(call->connection, at, n, MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return call_has_ended(err);
		at += sent;
		n -= (size_t)sent;
	}
	return 0;
}

int python_call_receive(struct python_call *call, void *to, size_t n, struct mu_err *err)
{
	for (char *at = to; n;) {
		ssize_t got = recv(call->connection, at, n, 0);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return call_has_ended(err);
		at += got;
		n -= (size_t)got;
	}
	return 0;
}

void python_call_close(struct python_call *call, bool is_complete)
{
	struct python_process *p = call->process;

	pthread_mutex_lock(&p->lock);
	if (is_complete && !call->cancelled)
		p->idle[p->n_idle++] = call->connection;
	else
		close(call->connection);
	call->connection = -1;
	pthread_mutex_unlock(&p->lock);
}

void python_call_cancel(struct python_call *call)
{
	struct python_process *p = call->process;

	pthread_mutex_lock(&p->lock);
	call->cancelled = true;
	if (call->connection >= 0)
		shutdown(call->connection, SHUT_RDWR);
	pthread_mutex_unlock(&p->lock);
}
