/* SPDX-License-Identifier: Apache-2.0 */
/* A client that waits for a session reports the reason: on standard error while it waits, and in
 * the final error. */
#include "tests/cluster/fixture.h"

#include <sys/mman.h>

#include "muster/session.h"
#include "muster/train.h"

enum { WAIT_MS = 4500 }; /* the first report comes after 3 s */

/* Redirects standard error to a file. */
static int redirect_stderr(int *saved_fd)
{
	int file = memfd_create("said", MFD_CLOEXEC);

	*saved_fd = dup(STDERR_FILENO);
	assert_true(dup2(file, STDERR_FILENO) == STDERR_FILENO);
	return file;
}

static void restore_stderr(int file, int saved_fd, char *output, size_t size)
{
	ssize_t n = pread(file, output, size - 1, 0);

	output[n > 0 ? n : 0] = 0;
	dup2(saved_fd, STDERR_FILENO);
	close(saved_fd);
	close(file);
}

/* Fails to open a session on target and returns the output. */
static void open_session_fails(const char *target, char *output, size_t size, struct mu_err *err)
{
	struct mu_builder *b = mu_builder_new();
	struct mu_session_options o = {.connect_timeout_ms = WAIT_MS};
	struct mu_out c = mu_const_int(b, MU_INT64, 1);
	MU_AUTO_TENSOR v = {0};
	struct mu_session *s;
	int saved_fd, file = redirect_stderr(&saved_fd), rc;

	rc = mu_session_open(&s, target, b, &o, err);
	if (!rc) {
		rc = mu_session_get(s, c, &v, err);
		mu_session_close(s);
	}
	restore_stderr(file, saved_fd, output, size);
	mu_builder_free(b);
	assert_int_equal(rc, -MU_UNAVAILABLE);
}

static void assert_contains(const char *output, const char *text)
{
	if (!strstr(output, text))
		fail_msg("'%s' does not say '%s'", output, text);
}

static void missing_server__is_reported_with_its_address(void **state)
{
	char target[32], output[4096], why[128];
	struct mu_err err;

	snprintf(target, sizeof(target), "127.0.0.1:%d", free_port());
	snprintf(why, sizeof(why), "cannot connect to %s: Connection refused", target);
	open_session_fails(target, output, sizeof(output), &err);
	assert_contains(output, "for 3 s: ");
	assert_contains(output, why);
	assert_contains(err.msg, why);
	assert_contains(err.msg, "start that server");
}

static void missing_peers__are_reported_with_their_addresses(void **state)
{
	struct fixture *f = fixture_new("0");
	char output[4096], why[128];
	struct mu_err err;

	snprintf(why, sizeof(why), "cannot connect to %s: Connection refused", f->address[0]);
	open_session_fails(task_server_target(f->worker[0].server), output, sizeof(output), &err);
	assert_contains(output, "it waits for /job:ps/replica:0/task:0");
	assert_contains(output, "/job:worker/replica:0/task:1");
	assert_contains(output, why);
	assert_null(strstr(output, "/job:worker/replica:0/task:0")); /* this task is running */
	/* the log line of the server */
	assert_contains(output, "CreateSession still waiting for response from worker: "
				"/job:ps/replica:0/task:0");
	assert_contains(output, "after 3 s");
	assert_contains(err.msg, "it waits for /job:ps/replica:0/task:0");
	assert_contains(err.msg, "start the missing tasks");
	fixture_free(f);
}

static void missing_chief__is_reported(void **state)
{
	struct fixture *f = fixture_new("p01");
	struct mu_builder *b = mu_builder_new();
	struct mu_monitored_options o = {.target = task_server_target(f->worker[1].server),
					 .wait_seconds = WAIT_MS / 1000};
	struct mu_monitored *m;
	struct mu_err err;
	char output[4096];
	int saved_fd, file, rc;

	mu_variable(b, "v", MU_FLOAT, MU_SCALAR, MU_ZEROS, true);
	file = redirect_stderr(&saved_fd);
	rc = mu_monitored_open(&m, b, &o, &err);
	restore_stderr(file, saved_fd, output, sizeof(output));
	assert_int_equal(rc, -MU_DEADLINE_EXCEEDED);
	assert_contains(output, "the chief has not initialised the model on ");
	assert_contains(output, "for 3 s: is it running?");
	mu_builder_free(b);
	fixture_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(missing_server__is_reported_with_its_address),
	    cmocka_unit_test(missing_peers__are_reported_with_their_addresses),
	    cmocka_unit_test(missing_chief__is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
