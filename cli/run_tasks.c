/* SPDX-License-Identifier: Apache-2.0 */
/* Local processes as pods.
 *
 * Each task is its own process group, so Ctrl-C reaches only `muster run`, which then ends the
 * tasks in order. If `muster run` is killed, the kernel kills the tasks (PR_SET_PDEATHSIG), but not
 * the child processes of a task.
 *
 * A port is chosen when its address is first needed. It stays bound here while the job runs, also
 * while a task restarts. The server of the task can bind it too, because both sockets use
 * SO_REUSEADDR and the socket here does not listen. choose_port does not set SO_REUSEADDR before
 * bind, so that no other run gets the same port.
 */
#include "cli/run_tasks.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/run_env.h"
#include "lib/base/log.h"
#include "lib/base/random.h"

enum { MAX_TASKS = 4096, MAX_READS = 256 };
enum { FIRST_PORT = 10000, PORTS = 20000, PORT_TRIES = 1000 };
enum { CONNECT_TIMEOUT_MS = 100 };

/* Chooses a free port and returns it with the socket that reserves it; 0 if none was found. */
static int choose_port(int *reservation)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	unsigned short port;
	int on = 1;

	*reservation = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	for (int i = 0; *reservation >= 0 && i < PORT_TRIES; i++) {
		port = (unsigned short)(FIRST_PORT + mu_random_u64() % PORTS);
		a.sin_port = htons(port);
		if (!bind(*reservation, (struct sockaddr *)&a, sizeof(a))) {
			setsockopt(*reservation, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
			return port;
		}
	}
	if (*reservation >= 0)
		close(*reservation);
	*reservation = -1;
	return 0;
}

/* Each task needs four file descriptors here, and the usual soft limit is 1,024. */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static struct task_ports *ports_of(struct run_tasks *r, const char *task, int index)
{
	struct task_ports *p = NULL;

	for (unsigned i = 0; i < r->n_ports && !p; i++)
		if (r->ports[i].index == index && strcmp(r->ports[i].task, task) == 0)
			p = &r->ports[i];
	if (!p) {
		if (!r->n_ports)
			raise_descriptor_limit();
		r->ports = mu_xrealloc(r->ports, (r->n_ports + 1) * sizeof(*r->ports));
		p = &r->ports[r->n_ports++];
		*p = (struct task_ports){.index = index, .reservations = {-1, -1}};
		snprintf(p->task, sizeof(p->task), "%s", task);
	}
	if (!p->port)
		p->port = choose_port(&p->reservations[0]);
	if (!p->http_port)
		p->http_port = choose_port(&p->reservations[1]);
	return p;
}

static void release_ports(struct task_ports *p)
{
	for (int i = 0; i < 2; i++) {
		if (p->reservations[i] >= 0)
			close(p->reservations[i]);
		p->reservations[i] = -1;
	}
}

void run_tasks_address(void *run_tasks, const struct job_spec *s, const char *task, int index,
		       char *out, size_t size)
{
	snprintf(out, size, "127.0.0.1:%d", ports_of(run_tasks, task, index)->port);
}

/* Path of a program: our own programs are in the folder of this one, others are found by PATH. */
static char *program_path(const struct run_tasks *r, const char *name)
{
	char *path = mu_xasprintf("%s/%s", r->bin_dir, name);

	if (!strchr(name, '/') && access(path, X_OK) == 0)
		return path;
	free(path);
	return mu_xstrdup(name);
}

static void set_number(const char *name, int value, int overwrite)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", value);
	setenv(name, text, overwrite);
}

/* Restores the default signal handlers and the signal mask, and replaces standard input by
 * /dev/null, as in a pod. A read from the terminal would stop the child: its process group is in
 * the background. */
static void reset_signals_and_stdin(const sigset_t *mask)
{
	static const int handled_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	for (size_t i = 0; i < MU_COUNT(handled_signals); i++)
		signal(handled_signals[i], SIG_DFL);
	sigprocmask(SIG_SETMASK, mask, NULL);
	dup2(null, STDIN_FILENO);
}

/* Variables that the operator sets, if this process runs in a pod. Here tasks have no TLS and bind
 * any free port. */
static const char *const unset_variables[] = {"MUSTER_LEAVE", "MUSTER_STREAM_PORT", "MUSTER_TLS",
					      "MUSTER_TOKEN_SHA256"};

/* Runs in the child, between fork and exec. */
static _Noreturn void exec_task(const struct run_tasks *r, const struct plan_pod *pod,
				const struct task_ports *ports, int out, pid_t parent,
				const sigset_t *mask)
{
	unsigned n = 0;
	char **argv, *path;

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) /* `muster run` ended before prctl */
		_exit(127);
	reset_signals_and_stdin(mask);
	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	for (unsigned i = 0; i < MU_COUNT(unset_variables); i++)
		unsetenv(unset_variables[i]);
	for (unsigned i = 0; i < pod->n_env; i++)
		setenv(pod->env[i].name, pod->env[i].value, 1);
	run_env_set(pod, r->namespace);
	/* On one machine each task has its own ports and a share of the CPUs. */
	if (r->threads)
		set_number("MUSTER_THREADS", (int)r->threads, 0);
	if (r->reports_step && strcmp(pod->task, "ps") == 0)
		set_number("MUSTER_PROGRESS", 1, 1);
	set_number("MUSTER_PORT", ports->port, 1);
	set_number("MUSTER_HTTP_PORT", ports->http_port, 1);
	while (pod->argv[n])
		n++;
	argv = MU_NEW_ARRAY(char *, n + 1);
	for (unsigned i = 0; i < n; i++)
		argv[i] = run_env_expand(pod->argv[i]);
	path = program_path(r, argv[0]);
	run_env_change_folder(pod);
	execvp(path, argv);
	fprintf(stderr, "cannot start %s: %s\n", path, strerror(errno));
	_exit(127);
}

/* Starts the process. Signals are blocked meanwhile: the child would lose a signal that its copy of
 * our handler receives. */
static pid_t fork_task(const struct run_tasks *r, const struct plan_pod *pod,
		       const struct task_ports *ports, int out)
{
	pid_t pid, parent = getpid();
	sigset_t all, mask;
	int saved_errno;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &mask);
	pid = fork();
	if (pid == 0)
		exec_task(r, pod, ports, out, parent, &mask);
	saved_errno = errno;
	if (pid > 0)
		setpgid(pid, pid); /* in case a signal is sent before the child does it */
	sigprocmask(SIG_SETMASK, &mask, NULL);
	errno = saved_errno;
	return pid;
}

int run_tasks_start(struct run_tasks *r, const struct plan_pod *pod, double now, struct mu_err *err)
{
	struct task_ports *ports = ports_of(r, pod->task, pod->index);
	struct local_task *t;
	MU_AUTO_FREE char *log = mu_xasprintf("%s/%s-%d.log", r->logs, pod->task, pod->index);
	int pipe_fds[2];

	if (!ports->port || !ports->http_port)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED,
			       "%s: no free port between %d and %d, or no free file descriptor",
			       pod->name, FIRST_PORT, FIRST_PORT + PORTS - 1);
	if (r->n >= MAX_TASKS)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "more than %d tasks on one machine",
			       MAX_TASKS);
	if (pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK))
		return mu_fail_errno(err, errno, "start %s", pod->name);
	t = MU_NEW(struct local_task);
	snprintf(t->task, sizeof(t->task), "%s", pod->task);
	snprintf(t->name, sizeof(t->name), "%s", pod->name);
	snprintf(t->uid, sizeof(t->uid), "local-%u", ++r->n_started);
	t->index = pod->index;
	t->is_departure_pod = pod->is_departure_pod;
	t->out = pipe_fds[0];
	t->exit_code = -1;
	t->port = ports->port;
	t->created = now;
	run_log_open(&t->log, log, r->log_limit);
	/* the task may block on its output; this process must not block */
	fcntl(pipe_fds[1], F_SETFL, 0);
	t->pid = fork_task(r, pod, ports, pipe_fds[1]);
	if (t->pid < 0) {
		int saved_errno = errno;

		close(pipe_fds[1]);
		close(t->out);
		run_log_close(&t->log);
		free(t);
		return mu_fail_errno(err, saved_errno, "start %s", pod->name);
	}
	close(pipe_fds[1]);
	r->list = mu_xrealloc(r->list, (r->n + 1) * sizeof(struct local_task *));
	r->list[r->n++] = t;
	return 0;
}

struct local_task *run_tasks_find(struct run_tasks *r, const char *uid)
{
	for (unsigned i = 0; i < r->n; i++)
		if (uid && strcmp(r->list[i]->uid, uid) == 0)
			return r->list[i];
	return NULL;
}

unsigned run_tasks_alive(const struct run_tasks *r)
{
	unsigned n = 0;

	for (unsigned i = 0; i < r->n; i++)
		n += r->list[i]->pid > 0;
	return n;
}

void run_tasks_signal(struct local_task *t, int sig)
{
	if (t->pid > 0)
		kill(-t->pid, sig);
}

static void free_task(struct local_task *t)
{
	if (t->out >= 0)
		close(t->out);
	run_log_close(&t->log);
	free(t);
}

void run_tasks_remove(struct run_tasks *r, struct local_task *t)
{
	for (unsigned i = 0; i < r->n; i++)
		if (r->list[i] == t) {
			r->list[i] = r->list[--r->n];
			free_task(t);
			return;
		}
}

void run_tasks_fini(struct run_tasks *r)
{
	for (unsigned i = 0; i < r->n; i++) {
		run_tasks_signal(r->list[i], SIGKILL);
		while (r->list[i]->pid > 0 && waitpid(r->list[i]->pid, NULL, 0) < 0 &&
		       errno == EINTR)
			;
		free_task(r->list[i]);
	}
	for (unsigned i = 0; i < r->n_ports; i++)
		release_ports(&r->ports[i]);
	free(r->list);
	free(r->ports);
}

/* ---- polling ---- */

/* Keeps the line for a failure report. Lines of the task server's log at level info show no cause,
 * and may follow the program's error. */
static void keep_last_line(struct local_task *t)
{
	bool is_info = mu_log_line_is_info(t->line, t->line_len);

	if (is_info && t->last_line[0] && !t->last_is_info)
		return;
	t->last_is_info = is_info;
	memcpy(t->last_line, t->line, t->line_len + 1);
}

static void end_line(struct run_tasks *r, struct local_task *t)
{
	t->line[t->line_len] = 0;
	if (t->line_len) {
		if (strncmp(t->line, "progress ", 9) != 0)
			keep_last_line(t);
		r->line(r->user, t, t->line);
	}
	t->line_len = 0;
}

/* Reads the available output, at most MAX_READS chunks, because a running task may write faster
 * than this loop reads.  A pipe holds less, so the output of an ended task is read completely. */
static void read_output(struct run_tasks *r, struct local_task *t)
{
	char chunk[8192];

	for (int n_chunks = 0; t->out >= 0 && n_chunks < MAX_READS; n_chunks++) {
		ssize_t n = read(t->out, chunk, sizeof(chunk));

		if (n < 0)
			return;
		if (n == 0) {
			end_line(r, t);
			close(t->out);
			t->out = -1;
			return;
		}
		run_log_put(&t->log, chunk, (size_t)n);
		for (ssize_t i = 0; i < n; i++) {
			if (chunk[i] == '\n')
				end_line(r, t);
			else if (t->line_len < LINE_SIZE - 1)
				t->line[t->line_len++] = chunk[i];
		}
	}
}

/* True if the task's port accepts connections.  The wait is bounded: a connect to a listener whose
 * backlog is full would take minutes. */
static bool is_listening(const struct local_task *t)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_port = htons((uint16_t)t->port),
				.sin_addr = {htonl(INADDR_LOOPBACK)}};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int error = fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0 ? 0 : errno;

	if (error == EINPROGRESS) {
		struct pollfd p = {.fd = fd, .events = POLLOUT};
		socklen_t size = sizeof(error);

		if (poll(&p, 1, CONNECT_TIMEOUT_MS) == 1)
			getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
	}
	if (fd >= 0)
		close(fd);
	return fd >= 0 && error == 0;
}

/* Records the end of a task's process, and kills the rest of its process group. */
static void reap_task(struct run_tasks *r, struct local_task *t, double now)
{
	siginfo_t info = {0};
	int status;

	if (waitid(P_PID, (id_t)t->pid, &info, WEXITED | WNOHANG | WNOWAIT) || !info.si_pid)
		return;
	run_tasks_signal(t, SIGKILL); /* the rest of its group, as a pod ends with its process */
	if (waitpid(t->pid, &status, 0) != t->pid)
		return;
	read_output(r, t);
	t->pid = 0;
	t->ready = false;
	t->finished = now;
	t->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	/* The task ended after the finish request, so this is a success. */
	if (t->finish_requested_at && t->exit_code == 128 + SIGTERM)
		t->exit_code = 0;
}

void run_tasks_poll(struct run_tasks *r, int timeout_ms, double now)
{
	struct pollfd *fds = MU_NEW_ARRAY(struct pollfd, r->n + 1);

	for (unsigned i = 0; i < r->n; i++)
		fds[i] = (struct pollfd){.fd = r->list[i]->out, .events = POLLIN};
	poll(fds, r->n, timeout_ms);
	for (unsigned i = 0; i < r->n; i++)
		if (fds[i].revents)
			read_output(r, r->list[i]);
	for (unsigned i = 0; i < r->n; i++) {
		struct local_task *t = r->list[i];

		if (t->pid > 0 && !t->ready)
			t->ready = is_listening(t);
		if (t->pid > 0)
			reap_task(r, t, now);
	}
	free(fds);
}
