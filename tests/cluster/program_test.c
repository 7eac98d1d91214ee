/* SPDX-License-Identifier: Apache-2.0 */
/* The program muster-task: invalid command lines, a port in use, and exit. */
#include "tests/cluster/fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/program.h"

static int find_program(void **state)
{
	return find_program_named("muster-task");
}

struct child {
	pid_t pid;
	int out;
};

static struct child start_program(const char *const *args, const char *tf_config)
{
	const char *argv[16] = {program};
	struct child c;
	int pipes[2];

	for (int i = 0; args[i]; i++)
		argv[i + 1] = args[i];
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	c.pid = fork();
	if (c.pid == 0) {
		dup2(pipes[1], STDOUT_FILENO);
		dup2(pipes[1], STDERR_FILENO);
		unsetenv("TF_CONFIG");
		if (tf_config)
			setenv("TF_CONFIG", tf_config, 1);
		execv(program, (char *const *)argv);
		_exit(127);
	}
	close(pipes[1]);
	c.out = pipes[0];
	return c;
}

/* Reads its output until it ends or prints `needle`, for at most ten seconds. */
static void read_until(struct child *c, const char *needle, char *text, size_t size)
{
	struct pollfd p = {c->out, POLLIN, 0};
	size_t n = 0;
	ssize_t got;

	text[0] = 0;
	while (n < size - 1 && !(needle && strstr(text, needle)) &&
	       poll(&p, 1, TEST_TIMEOUT_S * 1000) > 0 &&
	       (got = read(c->out, text + n, size - 1 - n)) > 0) {
		n += (size_t)got;
		text[n] = 0;
	}
}

static int wait_for_exit(struct child *c)
{
	int status = 0;

	if (!BECOMES_TRUE(waitpid(c->pid, &status, WNOHANG) != 0)) {
		kill(c->pid, SIGKILL);
		waitpid(c->pid, &status, 0);
		fail_msg("it did not end within %d s", TEST_TIMEOUT_S);
	}
	close(c->out);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void invalid_command_line__prints_one_line_and_exits_with_2(void **state)
{
	static const struct {
		const char *args[6], *message;
	} cases[] = {
	    {{NULL}, "no cluster"},
	    {{"--nonsense", NULL}, "--nonsense"},
	    {{"--cluster={\"ps\": [\"a\"]}", NULL}, "a"},
	    {{"--cluster={\"ps\": ", NULL}, ""},
	    {{"--cluster=@/does/not/exist", NULL}, "/does/not/exist"},
	    {{"--cluster={\"ps\": [\"127.0.0.1:1\"]}", NULL}, "--job"},
	    {{"--cluster={\"ps\": [\"127.0.0.1:1\"]}", "--job=ps", "--index=1", NULL}, "1"},
	    {{"--cluster={\"ps\": [\"127.0.0.1:1\"]}", "--job=ps", "--index=x", NULL}, "--index"},
	    {{"--ps_hosts=127.0.0.1:1", "--http=70000", NULL}, "--http"},
	};
	char text[4096];

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		struct child c = start_program(cases[i].args, NULL);

		read_until(&c, NULL, text, sizeof(text));
		assert_int_equal(wait_for_exit(&c), 2);
		assert_non_null(strstr(text, "muster-task: "));
		if (!strstr(text, cases[i].message))
			fail_msg("'%s' does not say '%s'", text, cases[i].message);
		assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
	}
}

static void help_and_version__exit_with_0(void **state)
{
	static const char *const help[] = {"--help", NULL}, *const version[] = {"--version", NULL};
	char text[4096];
	struct child c = start_program(help, NULL);

	read_until(&c, NULL, text, sizeof(text));
	assert_int_equal(wait_for_exit(&c), 0);
	assert_non_null(strstr(text, "--cluster"));
	c = start_program(version, NULL);
	read_until(&c, NULL, text, sizeof(text));
	assert_int_equal(wait_for_exit(&c), 0);
	assert_non_null(strstr(text, "muster-task "));
}

static void port_in_use__prints_one_line_and_exits_with_1(void **state)
{
	int port = free_port(), fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	char hosts[64], want[64], text[4096];
	const char *args[] = {hosts, "--job_name=ps", "--task_index=0", NULL};
	struct child c;

	a.sin_port = htons((uint16_t)port);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)); /* free_port() holds the port */
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(fd, 1), 0);
	snprintf(hosts, sizeof(hosts), "--ps_hosts=127.0.0.1:%d", port);
	snprintf(want, sizeof(want), "port %d on 127.0.0.1 is already in use\n", port);
	c = start_program(args, NULL);
	read_until(&c, NULL, text, sizeof(text));
	assert_int_equal(wait_for_exit(&c), 1);
	assert_non_null(strstr(text, want));
	close(fd);
}

/* Exit code 3 is for kernels alone: the operator answers it with the CPU. */
static void missing_certificates__exit_with_1(void **state)
{
	char hosts[64], text[4096];
	const char *args[] = {hosts, "--job_name=ps", "--task_index=0", "--tls=/nonexistent", NULL};
	struct child c;

	snprintf(hosts, sizeof(hosts), "--ps_hosts=127.0.0.1:%d", free_port());
	c = start_program(args, NULL);
	read_until(&c, NULL, text, sizeof(text));
	assert_int_equal(wait_for_exit(&c), 1);
	assert_non_null(strstr(text, "/nonexistent"));
}

static int exit_with_kernels(const char *flag, const char *want)
{
	char hosts[64], text[4096];
	const char *args[] = {hosts, "--job_name=ps", flag, NULL};
	struct child c;

	snprintf(hosts, sizeof(hosts), "--ps_hosts=127.0.0.1:%d", free_port());
	c = start_program(args, NULL);
	read_until(&c, NULL, text, sizeof(text));
	assert_non_null(strstr(text, want));
	return wait_for_exit(&c);
}

static void unknown_kernel_level__exits_with_1(void **state)
{
	assert_int_equal(exit_with_kernels("--kernels=cpu-abacus", "is no CPU variant"), 1);
}

static void unsupported_kernel_level__exits_with_3(void **state)
{
	if (access("/dev/nvidiactl", F_OK) == 0)
		skip(); /* the kernel may keep the port */
	assert_int_equal(exit_with_kernels("--kernels=cuda-sm90", "no CUDA here"), MU_EXIT_KERNELS);
}

static void sigterm__drains_and_exits_with_0(void **state)
{
	char config[256], text[4096];
	const char *args[] = {"--http=0", "--local=0", NULL};
	struct child c;

	snprintf(config, sizeof(config),
		 "{\"cluster\": {\"worker\": {\"7\": \"127.0.0.1:%d\"}}, "
		 "\"task\": {\"type\": \"worker\", \"index\": 7}}",
		 free_port());
	c = start_program(args, config);
	read_until(&c, "serves on", text, sizeof(text));
	assert_non_null(strstr(text, "/job:worker/replica:0/task:7 serves on"));
	kill(c.pid, SIGTERM);
	assert_int_equal(wait_for_exit(&c), 0);
}

static int http_port_in(const char *text)
{
	const char *at = strstr(text, "http ");

	return at ? atoi(at + 5) : 0;
}

static void finish__drains_and_exits_with_0(void **state)
{
	static const char request[] = "POST /finish HTTP/1.1\r\n\r\n";
	char path[64], hosts[64], file[128], text[4096];
	const char *args[] = {hosts, "--job=ps", "--http=0", file, NULL};
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	MU_AUTO_BUF b = {0};
	struct child c;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	snprintf(hosts, sizeof(hosts), "--ps_hosts=127.0.0.1:%d", free_port());
	snprintf(path, sizeof(path), "/tmp/muster-program-test-%d", (int)getpid());
	snprintf(file, sizeof(file), "--address-file=%s", path);
	unlink(path);
	c = start_program(args, NULL);
	read_until(&c, "serves on", text, sizeof(text));
	WAIT_UNTIL(access(path, R_OK) == 0);
	assert_int_equal(mu_buf_read_file(&b, path, 4096, NULL), 0);
	unlink(path);
	assert_memory_equal(b.data, "grpc://127.0.0.1:", 17);
	a.sin_port = htons((uint16_t)http_port_in(b.data));
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(write(fd, request, sizeof(request) - 1), sizeof(request) - 1);
	assert_true(read(fd, text, sizeof(text)) > 0);
	assert_memory_equal(text, "HTTP/1.1 202", 12);
	close(fd);
	assert_int_equal(wait_for_exit(&c), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(invalid_command_line__prints_one_line_and_exits_with_2),
	    cmocka_unit_test(help_and_version__exit_with_0),
	    cmocka_unit_test(port_in_use__prints_one_line_and_exits_with_1),
	    cmocka_unit_test(unknown_kernel_level__exits_with_1),
	    cmocka_unit_test(missing_certificates__exit_with_1),
	    cmocka_unit_test(unsupported_kernel_level__exits_with_3),
	    cmocka_unit_test(sigterm__drains_and_exits_with_0),
	    cmocka_unit_test(finish__drains_and_exits_with_0),
	};

	return cmocka_run_group_tests(tests, find_program, NULL);
}
