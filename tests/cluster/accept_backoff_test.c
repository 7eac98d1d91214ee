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

static const struct stream_offer *offer_of(const struct fixture *f)
{
	return &peers_streams(f->ps.server->peers)->offer;
}

struct connection {
	struct sockaddr_storage to;
	socklen_t len;
};

static void at_port(struct connection *k, int port)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_port = htons((uint16_t)port),
				.sin_addr = {htonl(INADDR_LOOPBACK)}};

	memcpy(&k->to, &a, sizeof(a));
	k->len = sizeof(a);
}

static void at_calls(struct connection *k, const struct fixture *f)
{
	at_port(k, atoi(strrchr(f->address[0], ':') + 1));
}

static void at_streams(struct connection *k, const struct fixture *f)
{
	at_port(k, offer_of(f)->port);
}

static void at_streams_here(struct connection *k, const struct fixture *f)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	size_t n = strlen(offer_of(f)->local);

	memcpy(a.sun_path + 1, offer_of(f)->local, n);
	memcpy(&k->to, &a, sizeof(a));
	k->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n);
}

/* Occupies all descriptors below MAX_FD, so that those of the server are above it. With the limit
 * MAX_FD the server cannot reuse a descriptor that it closes. */
static void occupy_low_descriptors(int taken[MAX_FD])
{
	int n = 0;

	while ((taken[n] = open("/dev/null", O_RDONLY | O_CLOEXEC)) < MAX_FD)
		n++;
	close(taken[n]);
	taken[n] = -1;
}

static void release_low_numbers(int taken[MAX_FD])
{
	for (int i = 0; taken[i] >= 0; i++)
		close(taken[i]);
}

/* Redirects standard error to a file. */
static int redirect_stderr(int *own)
{
	int file = memfd_create("warnings", MFD_CLOEXEC);

	*own = dup(STDERR_FILENO);
	assert_true(dup2(file, STDERR_FILENO) == STDERR_FILENO);
	return file;
}

static int warnings(int file, int own)
{
	char text[8192];
	ssize_t n = pread(file, text, sizeof(text) - 1, 0);
	int count = 0;

	dup2(own, STDERR_FILENO);
	close(own);
	close(file);
	text[n > 0 ? n : 0] = 0;
	for (const char *at = text; (at = strstr(at, "cannot accept connections")); at++)
		count++;
	return count;
}

/* An invalid handshake makes a server that accepted the connection close it. */
static bool is_taken_in(int fd)
{
	struct timeval patience = {.tv_sec = TEST_TIMEOUT_S};
	char junk[256] = "what is this?", answer[256];
	ssize_t n;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (send(fd, junk, sizeof(junk), MSG_NOSIGNAL) < 0)
		return true;
	while ((n = recv(fd, answer, sizeof(answer), 0)) > 0)
		;
	return n == 0 || errno == ECONNRESET;
}

/* Connects while there are no descriptors; returns the CPU time spent, in ms. */
static long starve(int fd, const struct connection *k)
{
	struct rlimit own, none;
	clock_t before = clock();

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &own), 0);
	none = (struct rlimit){MAX_FD, own.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&k->to, k->len), 0);
	wait_ms(STARVED_MS);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &own), 0);
	return (long)((clock() - before) * 1000 / CLOCKS_PER_SEC);
}

static void task__without_descriptors__waits_and_recovers(void **state)
{
	static void (*const doors[])(struct connection *, const struct fixture *) = {
	    at_calls, at_streams, at_streams_here};
	int taken[MAX_FD + 1], warned = 0;
	int64_t begun = mu_clock_ms(), most;
	struct fixture *f;

	occupy_low_descriptors(taken);
	f = fixture_new("p");
	for (unsigned i = 0; i < MU_COUNT(doors); i++) {
		int own, output = redirect_stderr(&own), fd;
		struct connection k = {.len = 0};
		long took;

		doors[i](&k, f);
		fd = socket(k.to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		assert_true(fd >= MAX_FD);
		took = starve(fd, &k);
		warned += warnings(output, own);
		if (took > MAX_CPU_MS)
			fail_msg("door %u: %ld ms of a processor in %d", i, took, STARVED_MS);
		if (!is_taken_in(fd))
			fail_msg("door %u: is not open again", i);
		close(fd);
	}
	most = 1 + (mu_clock_ms() - begun) / WARNING_INTERVAL_MS;
	if (warned < 1 || warned > most)
		fail_msg("%d warnings, not 1 to %lld", warned, (long long)most);
	fixture_free(f);
	release_low_numbers(taken);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(task__without_descriptors__waits_and_recovers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
