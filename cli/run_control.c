/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to a running `muster run`, over a Unix socket. Protocol: one line each way. "scale
 * worker=4" is answered with "ok …" or "error …".
 *
 * A socket is $XDG_RUNTIME_DIR/muster/NAME.PID, or /tmp/muster-UID/NAME.PID. The folder must belong
 * to the user and must not be accessible to others. There is no other authentication. A socket
 * without a listener is left over from a killed run. Any process that finds it removes it.
 */
#include "cli/run_control.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { SERVE_MS = 200, ASK_MS = 5000 };

static int open_folder(char *out, size_t size, struct mu_err *err)
{
	const char *base = getenv("XDG_RUNTIME_DIR");
	struct stat st;

	if (base && *base == '/' && access(base, W_OK) == 0)
		snprintf(out, size, "%s/muster", base);
	else
		snprintf(out, size, "/tmp/muster-%u", (unsigned)getuid());
	if (mkdir(out, 0700) && errno != EEXIST)
		return mu_fail_errno(err, errno, "create folder %s", out);
	if (lstat(out, &st))
		return mu_fail_errno(err, errno, "stat folder %s", out);
	if (!S_ISDIR(st.st_mode) || st.st_uid != getuid() || (st.st_mode & 077))
		return mu_fail(err, MU_PERMISSION_DENIED,
			       "%s is not a folder that only you can use: remove it", out);
	return 0;
}

static int address_of(struct sockaddr_un *a, const char *path, struct mu_err *err)
{
	*a = (struct sockaddr_un){.sun_family = AF_UNIX};
	if ((size_t)snprintf(a->sun_path, sizeof(a->sun_path), "%s", path) >= sizeof(a->sun_path))
		return mu_fail(err, MU_INVALID_ARGUMENT, "%s: too long for a socket", path);
	return 0;
}

int run_control_open(struct run_control *c, const char *job, struct mu_err *err)
{
	char folder[256], path[512];
	struct sockaddr_un a;
	int rc = open_folder(folder, sizeof(folder), err);

	c->fd = -1;
	if (rc)
		return rc;
	snprintf(path, sizeof(path), "%s/%s.%d", folder, job, (int)getpid());
	rc = address_of(&a, path, err);
	if (rc)
		return rc;
	unlink(path);
	c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->fd < 0 || bind(c->fd, (struct sockaddr *)&a, sizeof(a)) || listen(c->fd, 8)) {
		rc = mu_fail_errno(err, errno, "listen on %s", path);
		if (c->fd >= 0)
			close(c->fd);
		c->fd = -1;
		return rc;
	}
	memcpy(c->path, a.sun_path, sizeof(c->path));
	return 0;
}

void run_control_close(struct run_control *c)
{
	if (c->fd < 0)
		return;
	unlink(c->path);
	close(c->fd);
	c->fd = -1;
}

static void set_timeouts(int fd, int ms)
{
	struct timeval t = {ms / 1000, ms % 1000 * 1000};

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t));
}

/* Reads a line and removes the newline; false if the text has no newline. */
static bool read_line(int fd, char *line, size_t size)
{
	size_t len = 0;
	ssize_t n;

	while (len < size - 1 && (n = read(fd, line + len, size - 1 - len)) > 0) {
		char *end = memchr(line + len, '\n', (size_t)n);

		if (end) {
			*end = 0;
			return true;
		}
		len += (size_t)n;
	}
	return false;
}

static bool write_line(int fd, const char *text)
{
	size_t len = strlen(text);
	ssize_t n = send(fd, text, len, MSG_NOSIGNAL);

	return n >= 0 && (size_t)n == len; /* a line fits into the socket buffer */
}

void run_control_serve(struct run_control *c,
		       int (*answer)(void *user, char *request, char *answer_text, size_t size,
				     struct mu_err *err),
		       void *user)
{
	char line[CONTROL_LINE], answer_text[CONTROL_LINE], reply[2 * CONTROL_LINE];
	struct mu_err err = {0};
	int fd;

	if (c->fd < 0 || (fd = accept4(c->fd, NULL, NULL, SOCK_CLOEXEC)) < 0)
		return;
	set_timeouts(fd, SERVE_MS);
	if (read_line(fd, line, sizeof(line))) {
		bool ok = answer(user, line, answer_text, sizeof(answer_text), &err) == 0;

		snprintf(reply, sizeof(reply), "%s %.400s\n", ok ? "ok" : "error",
			 ok ? answer_text : err.msg);
		write_line(fd, reply);
	}
	close(fd);
}

/* Connects to the socket at path; -1 if there is no listener. */
static int connect_to(const char *path)
{
	struct sockaddr_un a;
	int fd;

	if (address_of(&a, path, NULL))
		return -1;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0)
		set_timeouts(fd, ASK_MS);
	if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
		return fd;
	if (errno == ECONNREFUSED)
		unlink(path);
	close(fd);
	return -1;
}

/* True if the entry is NAME.PID with NAME equal to job, or equals job itself. */
static bool is_socket_of(const char *entry, const char *job)
{
	size_t n = strlen(job);

	if (strncmp(entry, job, n) != 0)
		return false;
	return !entry[n] || (entry[n] == '.' && entry[n + 1] &&
			     strspn(entry + n + 1, "0123456789") == strlen(entry + n + 1));
}

static int find_run(const char *job, int *out, struct mu_err *err)
{
	char folder[256], path[600];
	struct dirent *e;
	int rc = open_folder(folder, sizeof(folder), err), found = -1;
	unsigned n = 0;
	DIR *d;

	if (rc)
		return rc;
	d = opendir(folder);
	if (!d)
		return mu_fail_errno(err, errno, "read folder %s", folder);
	while ((e = readdir(d))) {
		int fd;

		if (!is_socket_of(e->d_name, job))
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
		fd = connect_to(path);
		if (fd >= 0 && n++)
			close(fd);
		else if (fd >= 0)
			found = fd;
	}
	closedir(d);
	if (n == 1) {
		*out = found;
		return 0;
	}
	if (!n)
		return mu_fail(err, MU_NOT_FOUND,
			       "you run no job '%s' on this machine: muster run starts one, "
			       "kubectl scale dtj/%s changes a job of a cluster",
			       job, job);
	close(found);
	return mu_fail(err, MU_FAILED_PRECONDITION,
		       "%u jobs '%s' run on this machine: use %s.PID; the names in %s end with the "
		       "process ids",
		       n, job, job, folder);
}

int run_control_ask(const char *job, const char *request, char *answer_text, size_t size,
		    struct mu_err *err)
{
	char line[CONTROL_LINE], reply[CONTROL_LINE];
	int fd = -1, rc = find_run(job, &fd, err);
	bool is_answered;

	if (rc)
		return rc;
	snprintf(line, sizeof(line), "%s\n", request);
	is_answered = write_line(fd, line) && read_line(fd, reply, sizeof(reply));
	close(fd);
	if (!is_answered)
		return mu_fail(err, MU_UNAVAILABLE, "job '%s' did not respond", job);
	if (strncmp(reply, "ok ", 3) != 0)
		return mu_fail(err, MU_FAILED_PRECONDITION, "%s",
			       strncmp(reply, "error ", 6) ? reply : reply + 6);
	snprintf(answer_text, size, "%s", reply + 3);
	return 0;
}
