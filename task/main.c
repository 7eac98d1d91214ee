/* SPDX-License-Identifier: Apache-2.0 */
/* muster-task: one task of a cluster as a program.
 *
 * The job name and task index come from the flags, else from TF_CONFIG.  Exit codes:
 * 0: ended by SIGTERM, SIGINT, POST /finish or the end of standard input;
 * 1: the server could not start;
 * 2: wrong command line;
 * 3 (MU_EXIT_KERNELS): this machine does not support the requested kernels.
 *
 * The kernel may deliver a signal to any thread: the handler writes to a pipe that main reads. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "task/server.h"

enum { MMAP_THRESHOLD_BYTES = 32 << 20, TRIM_THRESHOLD_BYTES = 128 << 20 }; /* malloc parameters */
enum {
	DRAIN_MS = 2000,
	PROGRESS_INTERVAL_MS = 500,
	SESSION_IDLE_S = 7 * 24 * 3600,
	MAX_CLUSTER_TEXT = 16 << 20,
	MAX_SESSION_CONFIG = 1 << 20
};

static const char usage[] =
    "usage: muster-task --cluster=JSON|@FILE --job=NAME --index=N [options]\n"
    "   or: muster-task --ps_hosts=A,B --worker_hosts=C,D --job_name=NAME --task_index=N\n"
    "   or: TF_CONFIG='{\"cluster\": …, \"task\": …}' muster-task\n"
    "\n"
    "  --bind=HOST:PORT      listen address, instead of the task's address in the cluster\n"
    "    [0.0.0.0:MUSTER_PORT, if that is set and the cluster has a host name for the task]\n"
    "  --local=PORT|unix:P   a second listener, on 127.0.0.1 or a Unix socket, for a local client\n"
    "  --tls=FOLDER          mutual TLS between tasks, with tls.crt, tls.key, ca.crt of FOLDER;\n"
    "                        --local stays unencrypted                  [MUSTER_TLS]\n"
    "  --stream-port=PORT    port for tensor streams from tasks on other machines\n"
    "                                                    [MUSTER_STREAM_PORT, or any free]\n"
    "  --http=PORT           port for health, status and metrics; 0: any free [MUSTER_HTTP_PORT]\n"
    "  --address-file=FILE   write the addresses to FILE once the server is ready\n"
    "  --kernels=NAME        auto, cpu, gpu or a variant such as cpu-avx2   [MUSTER_KERNELS]\n"
    "  --threads=N           compute threads    [MUSTER_THREADS, or the CPUs of the cgroup]\n"
    "  --connect-timeout=S   how long a new session waits for missing tasks   [no limit]\n"
    "  --session-idle=S      close a session that is unused for S seconds; 0: never\n"
    "                                                             [604800, seven days]\n"
    "  --session-config=FILE a serialized ConfigProto with the defaults of every session\n"
    "  --py-func=FD          an inherited Unix socket to the program that runs Python functions\n"
    "  --while-stdin         exit, without draining, at the end of standard input\n"
    "  --version, --help\n";

struct arguments {
	struct mu_cluster cluster;
	struct mu_self self;
	struct task_server_options o;
	const char *address_file;
	bool while_stdin;
	int threads, connect_timeout_s, session_idle_s;
	struct mu_buf session_config;
	char local[32], bind[TASK_SERVER_BIND];
};

static int flag_number(const char *text, long max, const char *flag, int *out, struct mu_err *err)
{
	char *end;
	long n;

	errno = 0;
	n = strtol(text, &end, 10);
	if (errno || end == text || *end || n < 0 || n > max)
		return mu_fail(err, MU_INVALID_ARGUMENT, "%s: '%s' is not a number from 0 to %ld",
			       flag, text, max);
	*out = (int)n;
	return 0;
}

static int read_cluster(struct arguments *a, const char *text, struct mu_err *err)
{
	MU_AUTO_BUF file = {0};
	int rc;

	if (text[0] != '@')
		return mu_cluster_parse_json(&a->cluster, mu_span_of(text), err);
	rc = mu_buf_read_input(&file, text + 1, MAX_CLUSTER_TEXT, err);
	return rc ? rc : mu_cluster_parse_json(&a->cluster, mu_buf_span(&file), err);
}

static int set_job(struct arguments *a, const char *job, struct mu_err *err)
{
	if (strlen(job) >= sizeof(a->self.job))
		return mu_fail(err, MU_INVALID_ARGUMENT, "--job: the name is too long");
	snprintf(a->self.job, sizeof(a->self.job), "%s", job);
	return 0;
}

static int set_local(struct arguments *a, const char *value, struct mu_err *err)
{
	int port, rc;

	if (!strncmp(value, "unix:", 5)) {
		a->o.local = value;
		return 0;
	}
	rc = flag_number(value, 65535, "--local", &port, err);
	if (rc)
		return rc;
	snprintf(a->local, sizeof(a->local), "127.0.0.1:%d", port);
	a->o.local = a->local;
	return 0;
}

static int read_session_config(struct arguments *a, const char *path, struct mu_err *err)
{
	return mu_buf_read_file(&a->session_config, path, MAX_SESSION_CONFIG, err);
}

/* Recognizes "--name=value" and "--name value".  Returns 1 and sets *value if arg is the flag. */
static int is_flag(const char *arg, const char *next, const char *name, const char **value,
		   int *n_used)
{
	size_t n = strlen(name);

	if (strncmp(arg, name, n))
		return 0;
	if (arg[n] == '=') {
		*value = arg + n + 1;
		return 1;
	}
	if (arg[n] || !next)
		return 0;
	*value = next;
	(*n_used)++;
	return 1;
}

static int parse_argument(struct arguments *a, const char *arg, const char *next, int *n_used,
			  struct mu_err *err)
{
	const struct {
		const char *name, **text;
		int *number;
		long max; /* the largest number allowed */
		int (*set)(struct arguments *a, const char *value, struct mu_err *err);
	} flags[] = {
	    {"--cluster", .set = read_cluster},
	    {"--job", .set = set_job},
	    {"--job_name", .set = set_job},
	    {"--index", .number = &a->self.index, .max = 1000000},
	    {"--task_index", .number = &a->self.index, .max = 1000000},
	    {"--task", .number = &a->self.index, .max = 1000000},
	    {"--bind", .text = &a->o.bind},
	    {"--tls", .text = &a->o.tls},
	    {"--local", .set = set_local},
	    {"--http", .number = &a->o.http_port, .max = 65535},
	    {"--stream-port", .number = &a->o.stream_port, .max = 65535},
	    {"--address-file", .text = &a->address_file},
	    {"--kernels", .text = &a->o.kernels},
	    {"--threads", .number = &a->threads, .max = 1024},
	    {"--connect-timeout", .number = &a->connect_timeout_s, .max = 1000000},
	    {"--session-idle", .number = &a->session_idle_s, .max = 100000000},
	    {"--session-config", .set = read_session_config},
	    {"--py-func", .number = &a->o.python_socket, .max = INT32_MAX},
	};
	const char *value;
	int rc;

	for (unsigned i = 0; i < MU_COUNT(flags); i++) {
		if (!is_flag(arg, next, flags[i].name, &value, n_used))
			continue;
		if (flags[i].text)
			*flags[i].text = value;
		else if (flags[i].set)
			return flags[i].set(a, value, err);
		else
			return flag_number(value, flags[i].max, flags[i].name, flags[i].number,
					   err);
		return 0;
	}
	if (!strcmp(arg, "--while-stdin")) {
		a->while_stdin = true;
		return 0;
	}
	rc = mu_cluster_parse_flag(&a->cluster, arg, err);
	if (rc == 0)
		return mu_fail(err, MU_INVALID_ARGUMENT, "unknown argument '%.100s'", arg);
	return rc < 0 ? rc : 0;
}

static int cluster_from_env(struct arguments *a, struct mu_err *err)
{
	const char *config = getenv("TF_CONFIG");
	struct mu_self self = {0};
	int rc;

	if (a->cluster.n_jobs > 0 || !config)
		return 0;
	rc = mu_cluster_parse_tf_config(&a->cluster, &self, mu_span_of(config), err);
	if (rc == 0 && !a->self.job[0] && self.job[0])
		a->self = self;
	return rc;
}

/* Returns 1 if the program must exit at once, as after --help. */
static int parse_arguments(struct arguments *a, int argc, char **argv, struct mu_err *err)
{
	int rc = 0;

	a->o.http_port = -1;
	a->session_idle_s = SESSION_IDLE_S;
	for (int i = 1; i < argc && !rc; i++) {
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
			fputs(usage, stdout);
			return 1;
		}
		if (!strcmp(argv[i], "--version")) {
			puts("muster-task " MUSTER_VERSION);
			return 1;
		}
		rc = parse_argument(a, argv[i], i + 1 < argc ? argv[i + 1] : NULL, &i, err);
	}
	if (!rc)
		rc = cluster_from_env(a, err);
	if (rc)
		return rc;
	if (a->cluster.n_jobs == 0)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "no cluster: give --cluster or TF_CONFIG (--help says how)");
	if (!a->self.job[0])
		return mu_fail(err, MU_INVALID_ARGUMENT, "no task: give --job and --index");
	a->o.cluster = &a->cluster;
	a->o.job = a->self.job;
	a->o.index = a->self.index;
	a->o.threads = (unsigned)a->threads;
	a->o.connect_timeout_ms = a->connect_timeout_s * 1000L;
	a->o.session_idle_ms = a->session_idle_s * (int64_t)1000;
	a->o.session_config = mu_buf_span(&a->session_config);
	return task_options_from_env(&a->o, a->bind, err);
}

static int write_addresses(const char *path, const struct task_server *s, struct mu_err *err)
{
	MU_AUTO_BUF b = {0};

	mu_buf_printf(&b, "%s\n", task_server_target(s));
	if (task_server_local_port(s))
		mu_buf_printf(&b, "local grpc://127.0.0.1:%d\n", task_server_local_port(s));
	if (task_server_http_port(s))
		mu_buf_printf(&b, "http %d\n", task_server_http_port(s));
	return mu_write_file(path, b.data, b.len, err);
}

static int end_pipe[2]; /* transfers one byte, the number of the signal; 0: POST /finish */

static void end_by_signal(int sig)
{
	int saved_errno = errno;
	char byte = (char)sig;

	if (write(end_pipe[1], &byte, 1) < 0) {
		/* The pipe is full, so main will read an earlier request to end. */
	}
	errno = saved_errno;
}

static void finish(void *arg)
{
	end_by_signal(0);
}

/* Discards input from standard input.  Returns false at its end. */
static bool stdin_is_open(void)
{
	char discarded[256];
	ssize_t n = read(STDIN_FILENO, discarded, sizeof(discarded));

	return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));
}

/* Prints the global step for `muster run`, if this task has it and it has changed. */
static void report_progress(struct task_server *s)
{
	static int64_t last_reported = -1;
	int64_t step = task_server_global_step(s);

	if (step < 0 || step == last_reported)
		return;
	last_reported = step;
	printf("progress step=%lld\n", (long long)step);
	fflush(stdout);
}

/* Waits for the end of the task.  Returns the grace period of running steps in ms. */
static long wait_for_signal(struct task_server *s, bool while_stdin)
{
	bool reports_progress = getenv("MUSTER_PROGRESS") != NULL;
	struct pollfd fds[2] = {{.fd = end_pipe[0], .events = POLLIN},
				{.fd = STDIN_FILENO, .events = POLLIN}};
	char sig;

	do {
		int ready =
		    poll(fds, while_stdin ? 2 : 1, reports_progress ? PROGRESS_INTERVAL_MS : -1);

		if (reports_progress)
			report_progress(s);
		if (ready <= 0)
			continue;
		if (!fds[0].revents && fds[1].revents && !stdin_is_open()) {
			mu_info("task", "standard input was closed: exiting");
			return 0;
		}
	} while (!fds[0].revents || read(end_pipe[0], &sig, 1) != 1);
	mu_info("task", "%s: draining",
		sig == SIGINT    ? "received SIGINT"
		: sig == SIGTERM ? "received SIGTERM"
				 : "received POST /finish");
	return DRAIN_MS;
}

static int serve_task(struct arguments *a)
{
	struct task_server *s;
	struct sigaction act = {.sa_handler = end_by_signal, .sa_flags = SA_RESTART};
	bool unsupported = false;
	struct mu_err err;

	signal(SIGPIPE, SIG_IGN);
	if (pipe2(end_pipe, O_CLOEXEC | O_NONBLOCK) || fcntl(end_pipe[0], F_SETFL, 0)) {
		fprintf(stderr, "muster-task: cannot create a pipe: %s\n", strerror(errno));
		return 1;
	}
	sigaction(SIGTERM, &act, NULL);
	sigaction(SIGINT, &act, NULL);
	a->o.finish = finish;
	a->o.unsupported = &unsupported;
	if (task_server_start(&a->o, &s, &err)) {
		fprintf(stderr, "muster-task: %s\n", err.msg);
		return unsupported ? MU_EXIT_KERNELS : 1;
	}
	if (a->address_file && write_addresses(a->address_file, s, &err)) {
		fprintf(stderr, "muster-task: %s\n", err.msg);
		task_server_stop(s, 0);
		return 1;
	}
	task_server_stop(s, wait_for_signal(s, a->while_stdin));
	return 0;
}

int main(int argc, char **argv)
{
	struct arguments a = {0};
	struct mu_err err;
	int rc;

	mu_log_init("muster-task");
	/* gRPC allocates and frees thousands of blocks for each large message.  With these limits
	 * malloc keeps the memory instead of returning it to the kernel every time. */
	mallopt(M_MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES);
	mallopt(M_TRIM_THRESHOLD, TRIM_THRESHOLD_BYTES);
	rc = parse_arguments(&a, argc, argv, &err);
	if (rc < 0)
		fprintf(stderr, "muster-task: %s\n", err.msg);
	rc = rc < 0 ? 2 : rc > 0 ? 0 : serve_task(&a);
	mu_cluster_fini(&a.cluster);
	mu_buf_fini(&a.session_config);
	return rc;
}
