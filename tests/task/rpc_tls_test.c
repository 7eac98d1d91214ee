/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates that are replaced while calls are in flight. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/tls/certs.h"
#include "task/rpc/server.h"
#include "task/rpc/tls.h"
#include "tests/certs_folder.h"
#include "tests/test.h"
#include "tests/wait.h"

enum { CALL_MS = TEST_TIMEOUT_S * 1000, N_HELD_CALLS = 20 };

static struct rpc_call *held_calls[N_HELD_CALLS];
static _Atomic unsigned arrived, ended, failed;

static void hold_call(struct rpc_call *call, void *ctx)
{
	unsigned i = atomic_fetch_add(&arrived, 1);

	held_calls[i] = call;
}

static void echo(struct rpc_call *call, void *ctx)
{
	struct rpc_message m = {.head = rpc_bytes_flat(rpc_request(call))};

	rpc_reply(call, &m);
}

static const struct rpc_method methods[] = {{"/t.T/Hold", .handle = hold_call},
					    {"/t.T/Echo", .handle = echo}};

static void count(void *arg, const struct mu_err *err, struct rpc_bytes *reply)
{
	bool good = !err && mu_span_is(rpc_bytes_flat(reply), "late");

	atomic_fetch_add(&failed, !good);
	atomic_fetch_add(&ended, 1);
}

static void make_certs(struct mu_certs *c)
{
	static const char *const names[] = {"127.0.0.1"};
	int64_t now = (int64_t)time(NULL);
	struct mu_err err;

	assert_ok(mu_certs_make(c, names, 1, now - 60, now + 3600, &err), &err);
}

static void write_folder(const char *folder, const struct mu_certs *c)
{
	struct mu_err err;

	mkdir(folder, 0700);
	assert_ok(certs_write(c, NULL, folder, &err), &err);
}

static void remove_folder(const char *folder)
{
	MU_AUTO_FREE char *command = mu_xasprintf("rm -r %s", folder);

	assert_int_equal(system(command), 0);
}

static bool is_accepted(const char *target, const char *folder)
{
	struct rpc_message m = {0};
	struct rpc_channel *ch;
	struct rpc_tls *tls;
	struct mu_err err;
	int rc;

	assert_ok(rpc_tls_open(folder, &tls, &err), &err);
	assert_ok(rpc_channel_open_tls(target, tls, &ch, &err), &err);
	rc = rpc_call(ch, "/t.T/Echo", &m, CALL_MS, 0, NULL, &err);
	rpc_channel_close(ch);
	rpc_tls_unref(tls);
	return rc == 0;
}

static void calls_in_flight__when_certificates_are_replaced__succeed(void **state)
{
	static const char *const address = "127.0.0.1:0";
	struct rpc_message request = {.head = MU_SPAN("x")}, late = {.head = MU_SPAN("late")};
	char base[] = "/tmp/muster-rpc-tls-XXXXXX", used[64], old[64], new[64], target[32];
	struct rpc_server_options o = {.addresses = &address,
				       .n_addresses = 1,
				       .n_secured = 1,
				       .methods = methods,
				       .n_methods = MU_COUNT(methods)};
	struct mu_certs first, second;
	struct rpc_server *server;
	struct rpc_channel *ch;
	struct mu_err err;
	int port;

	assert_non_null(mkdtemp(base));
	snprintf(used, sizeof(used), "%s/used", base);
	snprintf(old, sizeof(old), "%s/old", base);
	snprintf(new, sizeof(new), "%s/new", base);
	make_certs(&first);
	make_certs(&second);
	write_folder(used, &first);
	write_folder(old, &first);
	write_folder(new, &second);
	assert_ok(rpc_tls_open(used, &o.tls, &err), &err);
	assert_ok(rpc_server_start(&o, &server, &port, &err), &err);
	snprintf(target, sizeof(target), "127.0.0.1:%d", port);
	assert_ok(rpc_channel_open_tls(target, o.tls, &ch, &err), &err);
	for (unsigned i = 0; i < N_HELD_CALLS; i++)
		assert_true(rpc_start(ch, "/t.T/Hold", &request, CALL_MS, 0, count, NULL, &err));
	WAIT_UNTIL(atomic_load(&arrived) == N_HELD_CALLS);
	assert_true(is_accepted(target, old));
	assert_false(is_accepted(target, new));

	write_folder(used, &second);
	WAIT_UNTIL(is_accepted(target, new));
	WAIT_UNTIL(!is_accepted(target, old));
	assert_int_equal(atomic_load(&ended), 0);
	for (unsigned i = 0; i < N_HELD_CALLS; i++)
		rpc_reply(held_calls[i], &late);
	WAIT_UNTIL(atomic_load(&ended) == N_HELD_CALLS);
	assert_int_equal(atomic_load(&failed), 0);
	assert_ok(rpc_call(ch, "/t.T/Echo", &request, CALL_MS, 0, NULL, &err), &err);

	rpc_channel_close(ch);
	rpc_server_stop(server, 100);
	rpc_tls_unref(o.tls);
	mu_certs_fini(&first);
	mu_certs_fini(&second);
	remove_folder(base);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(calls_in_flight__when_certificates_are_replaced__succeed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
