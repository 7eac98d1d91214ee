/* SPDX-License-Identifier: Apache-2.0 */
/* Whoever waits for a session hears why: on standard error while it lasts, and in the error at its
 * end. */
#include "tests/cluster/fixture.h"

#include <sys/mman.h>

#include "muster/session.h"
#include "muster/train.h"

enum { WAIT_MS = 4500 }; /* the first word comes after 3 s */

/* What is written to standard error until the end goes to a file. */
static int listen_to(int *own)
{
	int file = memfd_create("said", MFD_CLOEXEC);

	*own = dup(STDERR_FILENO);
	assert_true(dup2(file, STDERR_FILENO) == STDERR_FILENO);
	return file;
}

static void hear(int file, int own, char *said, size_t size)
{
	ssize_t n = pread(file, said, size - 1, 0);

	said[n > 0 ? n : 0] = 0;
	dup2(own, STDERR_FILENO);
	close(own);
	close(file);
}

/* Fails to get a session on target; what was said meanwhile. */
static void wait_in_vain(const char *target, char *said, size_t size, struct mu_err *err)
{
	struct mu_builder *b = mu_builder_new();
	struct mu_session_options o = {.connect_timeout_ms = WAIT_MS};
	struct mu_out c = mu_const_int(b, MU_INT64, 1);
	MU_AUTO_TENSOR v = {0};
	struct mu_session *s;
	int own, file = listen_to(&own), rc;

	rc = mu_session_open(&s, target, b, &o, err);
	if (!rc) {
		rc = mu_session_get(s, c, &v, err);
		mu_session_close(s);
	}
	hear(file, own, said, size);
	mu_builder_free(b);
	assert_int_equal(rc, -MU_UNAVAILABLE);
}

static void says(const char *said, const char *text)
{
	if (!strstr(said, text))
		fail_msg("'%s' does not say '%s'", said, text);
}

static void a_server_that_is_not_there__is_named_with_its_address(void **state)
{
	char target[32], said[4096], why[128];
	struct mu_err err;

	snprintf(target, sizeof(target), "127.0.0.1:%d", free_port());
	snprintf(why, sizeof(why), "cannot connect to %s: Connection refused", target);
	wait_in_vain(target, said, sizeof(said), &err);
	says(said, "for 3 s: ");
	says(said, why);
	says(err.msg, why);
	says(err.msg, "start that server");
}

static void peers_that_are_not_there__are_named_with_their_addresses(void **state)
{
	struct fixture *f = fixture_new("0");
	char said[4096], why[128];
	struct mu_err err;

	snprintf(why, sizeof(why), "cannot connect to %s: Connection refused", f->address[0]);
	wait_in_vain(task_server_target(f->worker[0].server), said, sizeof(said), &err);
	says(said, "it waits for /job:ps/replica:0/task:0");
	says(said, "/job:worker/replica:0/task:1");
	says(said, why);
	assert_null(strstr(said, "/job:worker/replica:0/task:0")); /* is there */
	says(said, "CreateSession waits for 3 s now");             /* the server's own line */
	says(err.msg, "it waits for /job:ps/replica:0/task:0");
	says(err.msg, "start the missing tasks");
	fixture_free(f);
}

static void a_chief_that_does_not_come__is_asked_for(void **state)
{
	struct fixture *f = fixture_new("p01");
	struct mu_builder *b = mu_builder_new();
	struct mu_monitored_options o = {.target = task_server_target(f->worker[1].server),
					 .wait_seconds = WAIT_MS / 1000};
	struct mu_monitored *m;
	struct mu_err err;
	char said[4096];
	int own, file, rc;

	mu_variable(b, "v", MU_FLOAT, MU_SCALAR, MU_ZEROS, true);
	file = listen_to(&own);
	rc = mu_monitored_open(&m, b, &o, &err);
	hear(file, own, said, sizeof(said));
	assert_int_equal(rc, -MU_DEADLINE_EXCEEDED);
	says(said, "the chief has not initialised the model on ");
	says(said, "for 3 s: is it running?");
	mu_builder_free(b);
	fixture_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_server_that_is_not_there__is_named_with_its_address),
	    cmocka_unit_test(peers_that_are_not_there__are_named_with_their_addresses),
	    cmocka_unit_test(a_chief_that_does_not_come__is_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
