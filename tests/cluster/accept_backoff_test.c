/* SPDX-License-Identifier: Apache-2.0 */
/* A task without free file descriptors: it uses little CPU time, logs little, and accepts pending
 * connections as soon as it can. */
#include "tests/cluster/fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/un.h>

#include "task/peer/stream_conn.h"
#include "task/server_internal.h"

enum { MAX_FD = 64, STARVED_MS = 400, MAX_CPU_MS = 100, WARNING_INTERVAL_MS = 10000 };

static const struct stream_offer *ps_stream_offer(const struct fixture *f)
{
	return &peers_streams(f->ps.server->peers)->offer;
}

struct server_address {
	struct sockaddr_storage to;
	socklen_t len;
};

static void set_port(struct server_address *k, int port)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_port = htons((uint16_t)port),
				.sin_addr = {htonl(INADDR_LOOPBACK)}};

	memcpy(&k->to, &a, sizeof(a));
	k->len = sizeof(a);
}

static void set_rpc_address(struct server_address *k, const struct fixture *f)
{
	set_port(k, atoi(strrchr(f->address[0], ':') + 1));
}

static void set_tcp_stream_address(struct server_address *k, const struct fixture *f)
{
	set_port(k, ps_stream_offer(f)->port);
}

static void set_local_stream_address(struct server_address *k, const struct fixture *f)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	size_t n = strlen(ps_stream_offer(f)->local);

	memcpy(a.sun_path + 1, ps_stream_offer(f)->local, n);
	memcpy(&k->to, &a, sizeof(a));
	k->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n);
}

/* Occupies all descriptors below MAX_FD, so that those of the server are above it. With the limit
 * MAX_FD the server cannot reuse a descriptor that it closes. */
static void occupy_low_descriptors(int low_fds[MAX_FD])
{
	int n = 0;

	while ((low_fds[n] = open("/dev/null", O_RDONLY | O_CLOEXEC)) < MAX_FD)
		n++;
	close(low_fds[n]);
	low_fds[n] = -1;
}

static void release_low_descriptors(int low_fds[MAX_FD])
{
	for (int i = 0; low_fds[i] >= 0; i++)
		close(low_fds[i]);
}

/* Redirects standard error to a file; original gets a copy of it. */
static int redirect_stderr(int *original)
{
	int file = memfd_create("warnings", MFD_CLOEXEC);

	*original = dup(STDERR_FILENO);
	assert_true(dup2(file, STDERR_FILENO) == STDERR_FILENO);
	return file;
}

static int count_warnings(int file, int original)
{
	char text[8192];
	ssize_t n = pread(file, text, sizeof(text) - 1, 0);
	int count = 0;

	dup2(original, STDERR_FILENO);
	close(original);
	close(file);
	text[n > 0 ? n : 0] = 0;
	for (const char *at = text; (at = strstr(at, "cannot accept connections")); at++)
		count++;
	return count;
}

/* Sends an invalid handshake: the server closes the connection once it has accepted it. */
static bool is_accepted(int fd)
{
	struct timeval timeout = {.tv_sec = TEST_TIMEOUT_S};
	char junk[256] = "what is this?", answer[256];
	ssize_t n;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	if (send(fd, junk, sizeof(junk), MSG_NOSIGNAL) < 0)
		return true;
	while ((n = recv(fd, answer, sizeof(answer), 0)) > 0)
		;
	return n == 0 || errno == ECONNRESET;
}

/* Connects while there are no descriptors; returns the CPU time spent, in ms. */
static long connect_without_descriptors(int fd, const struct server_address *k)
{
	struct rlimit original, limited;
	clock_t before = clock();

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &original), 0);
	limited = (struct rlimit){MAX_FD, original.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limited), 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&k->to, k->len), 0);
	wait_ms(STARVED_MS);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &original), 0);
	return (long)((clock() - before) * 1000 / CLOCKS_PER_SEC);
}

static void task__without_descriptors__waits_and_recovers(void **state)
{
	static void (*const listeners[])(struct server_address *, const struct fixture *) = {
	    set_rpc_address, set_tcp_stream_address, set_local_stream_address};
	int low_fds[MAX_FD + 1], n_warnings = 0;
	int64_t start_ms = mu_clock_ms(), max_warnings;
	struct fixture *f;

	occupy_low_descriptors(low_fds);
	f = fixture_new("p");
	for (unsigned i = 0; i < MU_COUNT(listeners); i++) {
		int original, output = redirect_stderr(&original), fd;
		struct server_address k = {.len = 0};
		long cpu_ms;

		listeners[i](&k, f);
		fd = socket(k.to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		assert_true(fd >= MAX_FD);
		cpu_ms = connect_without_descriptors(fd, &k);
		n_warnings += count_warnings(output, original);
		if (cpu_ms > MAX_CPU_MS)
			fail_msg("listener %u: %ld ms of CPU time in %d ms", i, cpu_ms, STARVED_MS);
		if (!is_accepted(fd))
			fail_msg("listener %u: does not accept the connection", i);
		close(fd);
	}
	max_warnings = 1 + (mu_clock_ms() - start_ms) / WARNING_INTERVAL_MS;
	if (n_warnings < 1 || n_warnings > max_warnings)
		fail_msg("%d warnings, not 1 to %lld", n_warnings, (long long)max_warnings);
	fixture_free(f);
	release_low_descriptors(low_fds);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(task__without_descriptors__waits_and_recovers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
