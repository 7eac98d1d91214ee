/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks with mutual TLS: steps work, other clients get no data, and certificate files can be
 * replaced meanwhile. */
#include "tests/certs_folder.h"
#include "tests/cluster/secured.h"

static void steps__between_tasks_with_certificates__use_tls(void **state)
{
	struct secured *s = secured_new("grpc");
	struct mu_err err;
	char handle[64];

	open_session(s, handle);
	assert_ok(target(&s->f.worker[0], handle, "init", &err), &err);
	run_add_steps(s, handle, 100);
	assert_true(run_float(&s->f.worker[0], handle, "read:0") == 100);
	assert_true(is_accepted(s->f.address[0], s->folder[1]));
	secured_free(s);
}

static void large_tensor__makes_a_round_trip(void **state)
{
	struct secured *s = secured_new("grpc");

	round_trip(s, 3 << 20);
	secured_free(s);
}

static void plaintext_client__gets_no_http_data(void **state)
{
	static const char hello[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
	struct secured *s = secured_new("grpc");
	int fd = dial(s->f.address[0]);
	struct rpc_message m = {0};
	struct rpc_channel *ch;
	struct mu_err err;
	char answer[256];
	ssize_t n;

	assert_int_equal(write(fd, hello, sizeof(hello) - 1), sizeof(hello) - 1);
	n = read(fd, answer, sizeof(answer));
	assert_true(n <= 0 || (n == 7 && answer[0] == 0x15)); /* a TLS alert */
	close(fd);
	assert_ok(rpc_channel_open(s->f.address[0], &ch, &err), &err);
	assert_fails(
	    rpc_call(ch, "/tensorflow.WorkerService/GetStatus", &m, CALL_MS, 0, NULL, &err), &err,
	    MU_UNAVAILABLE, "");
	rpc_channel_close(ch);
	secured_free(s);
}

static void client_with_a_certificate_of_another_ca__gets_no_http_data(void **state)
{
	struct secured *s = secured_new("grpc");
	struct rpc_message m = {0};
	struct rpc_channel *ch;
	struct mu_certs foreign_certs;
	struct rpc_tls *t;
	struct mu_err err;
	char folder[40];

	make_task_certs(&foreign_certs);
	make_folder(folder, &foreign_certs,
		    s->certs.ca); /* the server trusts us, but we do not trust it */
	assert_false(is_accepted(s->f.address[0], folder));
	assert_ok(rpc_tls_open(folder, &t, &err), &err);
	assert_ok(rpc_channel_open_tls(s->f.address[0], t, &ch, &err), &err);
	assert_fails(
	    rpc_call(ch, "/tensorflow.WorkerService/GetStatus", &m, CALL_MS, 0, NULL, &err), &err,
	    MU_UNAVAILABLE, "");
	rpc_channel_close(ch);
	rpc_tls_unref(t);
	remove_certs_folder(folder);
	mu_certs_fini(&foreign_certs);
	assert_true(is_accepted(s->f.address[0], s->folder[1]));
	secured_free(s);
}

static void stalled_handshake__does_not_block_other_clients(void **state)
{
	struct secured *s = secured_new("grpc");
	int fds[20];

	for (unsigned i = 0; i < MU_COUNT(fds); i++) {
		fds[i] = dial(s->f.address[0]);
		assert_int_equal(write(fds[i], "\x16\x03\x01", 3), 3);
	}
	assert_true(is_accepted(s->f.address[0], s->folder[1]));
	for (unsigned i = 0; i < MU_COUNT(fds); i++)
		close(fds[i]);
	secured_free(s);
}

static void certificates__replaced_in_two_phases__do_not_interrupt_steps(void **state)
{
	struct secured *s = secured_new("grpc");
	MU_AUTO_FREE char *both = NULL;
	struct mu_certs next;
	struct mu_err err;
	char handle[64], old_only[40], new_only[40];

	make_task_certs(&next);
	both = mu_xasprintf("%s%s", s->certs.ca, next.ca);
	make_folder(old_only, &s->certs, NULL);
	make_folder(new_only, &next, NULL);
	open_session(s, handle);
	assert_ok(target(&s->f.worker[0], handle, "init", &err), &err);
	run_add_steps(s, handle, 10);
	assert_false(is_accepted(s->f.address[0], new_only));
	for (int i = 0; i < 2; i++) /* old certificate, both CAs */
		assert_ok(certs_write(&s->certs, both, s->folder[i], &err), &err);
	run_add_steps(s, handle, 10);
	WAIT_UNTIL(is_accepted(s->f.address[0], old_only));
	for (int i = 0; i < 2; i++) { /* one by one */
		assert_ok(certs_write(&next, both, s->folder[i], &err), &err);
		run_add_steps(s, handle, 10);
		WAIT_UNTIL(is_accepted(s->f.address[i], new_only));
		run_add_steps(s, handle, 10);
	}
	/* a restarted task has only the new certificates and reaches the other task */
	stop_task(&s->f.ps);
	start_secured(s, &s->f.ps, "ps", s->folder[0]);
	assert_ok(close_session(&s->f.worker[0], handle, &err), &err);
	open_session(s, handle);
	assert_ok(target(&s->f.worker[0], handle, "init", &err), &err);
	run_add_steps(s, handle, 10);
	assert_true(run_float(&s->f.worker[0], handle, "read:0") == 10);
	remove_certs_folder(old_only);
	remove_certs_folder(new_only);
	mu_certs_fini(&next);
	secured_free(s);
}

static void mismatched_files__fail_at_start_and_later_until_they_match(void **state)
{
	struct secured *s = secured_new("grpc");
	struct mu_certs other;
	struct rpc_tls *t;
	struct mu_err err;
	char folder[40], path[64];

	make_task_certs(&other);
	make_folder(folder, &s->certs, NULL);
	snprintf(path, sizeof(path), "%s/tls.key", folder);
	assert_ok(mu_write_file(path, other.key, strlen(other.key), &err), &err);
	assert_fails(rpc_tls_open(folder, &t, &err), &err, MU_FAILED_PRECONDITION, "tls.key");
	assert_fails(rpc_tls_open("/nowhere", &t, &err), &err, MU_FAILED_PRECONDITION,
		     "/nowhere/ca.crt");
	snprintf(path, sizeof(path), "%s/tls.key", s->folder[0]);
	assert_ok(mu_write_file(path, other.key, strlen(other.key), &err), &err);
	WAIT_UNTIL(!is_accepted(s->f.address[0], s->folder[1]));
	assert_ok(mu_write_file(path, s->certs.key, strlen(s->certs.key), &err), &err);
	WAIT_UNTIL(is_accepted(s->f.address[0], s->folder[1]));
	remove_certs_folder(folder);
	mu_certs_fini(&other);
	secured_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(steps__between_tasks_with_certificates__use_tls),
	    cmocka_unit_test(large_tensor__makes_a_round_trip),
	    cmocka_unit_test(plaintext_client__gets_no_http_data),
	    cmocka_unit_test(client_with_a_certificate_of_another_ca__gets_no_http_data),
	    cmocka_unit_test(stalled_handshake__does_not_block_other_clients),
	    cmocka_unit_test(certificates__replaced_in_two_phases__do_not_interrupt_steps),
	    cmocka_unit_test(mismatched_files__fail_at_start_and_later_until_they_match),
	};

	mu_log_init("tls_test");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
