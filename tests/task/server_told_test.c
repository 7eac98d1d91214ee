/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "task/server.h"
#include "tests/test.h"

#define NAME "j-ps-0.j.n1.svc:2222"

static const struct {
	const char *text, *address;
	const char *bind; /* NULL: what the cluster names */
	int stream, http, epoch;
	bool good;
} cases[] = {
    {NULL, NAME, NULL, 0, -1, 0, true},
    {"", NAME, NULL, 0, -1, 0, true},
    {"epoch=3,grpc=2222,stream=2223,http=8079", NAME, "0.0.0.0:2222", 2223, 8079, 3, true},
    {"http=65535,grpc=1", NAME, "0.0.0.0:1", 0, 65535, 0, true},
    {"http=0", NAME, NULL, 0, 0, 0, true},
    {"grpc=2222,http=8079", "127.0.0.1:2222", NULL, 0, 8079, 0, true},
    {"grpc=2222,http=8079", "localhost:2222", NULL, 0, 8079, 0, true},
    {"grpc=2222,http=8079", "unix:/run/x", NULL, 0, 8079, 0, true},
    {.text = "grpc=65536"},
    {.text = "grpc=99999999999999999999"},
    {.text = "grpc="},
    {.text = "epoch=4294967297"},
    {.text = "grpc=-1"},
    {.text = "grpc=22x"},
    {.text = "grpc"},
    {.text = "2222"},
    {.text = "ssh=22"},
    {.text = "grpc=1,,http=2"},
    {.text = "grpc=1 http=2"},
};

static void set(const char *name, const char *value)
{
	if (value)
		setenv(name, value, 1);
	else
		unsetenv(name);
}

static void what_the_environment_says__is_taken_or_refused(void **state)
{
	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		struct task_server_options o = {.http_port = -1};
		char bind[TASK_SERVER_BIND];
		struct mu_err err = {0};
		int rc;

		set("MUSTER_SELF", cases[i].text);
		rc = task_server_told(&o, cases[i].address ? cases[i].address : NAME, bind, &err);
		if (!cases[i].good) {
			if (rc >= 0 || !strstr(err.msg, "MUSTER_SELF"))
				fail_msg("'%s': %d, %s", cases[i].text, rc, err.msg);
			continue;
		}
		assert_ok(rc, &err);
		assert_int_equal(o.stream_port, cases[i].stream);
		assert_int_equal(o.http_port, cases[i].http);
		assert_int_equal(o.epoch, cases[i].epoch);
		if (cases[i].bind)
			assert_string_equal(o.bind, cases[i].bind);
		else
			assert_null(o.bind);
	}
	set("MUSTER_SELF", NULL);
}

static void what_is_said_already__stays(void **state)
{
	struct task_server_options o = {.bind = "127.0.0.1:1",
					.stream_port = 2,
					.http_port = 3,
					.tls = "/mine",
					.kernels = "cpu-avx2"};
	char bind[TASK_SERVER_BIND];
	struct mu_err err;

	set("MUSTER_SELF", "grpc=2222,stream=2223,http=8079");
	set("MUSTER_TLS", "/theirs");
	set("MUSTER_KERNELS", "cpu");
	assert_ok(task_server_told(&o, NAME, bind, &err), &err);
	assert_string_equal(o.bind, "127.0.0.1:1");
	assert_int_equal(o.stream_port, 2);
	assert_int_equal(o.http_port, 3);
	assert_string_equal(o.tls, "/mine");
	assert_string_equal(o.kernels, "cpu-avx2");
	o.tls = o.kernels = NULL;
	assert_ok(task_server_told(&o, NAME, bind, &err), &err);
	assert_string_equal(o.tls, "/theirs");
	assert_string_equal(o.kernels, "cpu");
	set("MUSTER_SELF", NULL);
	set("MUSTER_TLS", NULL);
	set("MUSTER_KERNELS", NULL);
}

static void who_is_shown_no_gpu__looks_for_none(void **state)
{
	static const struct {
		const char *gpus, *kernels, *want;
	} rows[] = {{"void", NULL, "cpu"},
		    {"void", "cpu-avx2", "cpu-avx2"},
		    {"all", NULL, NULL},
		    {NULL, NULL, NULL}};

	for (unsigned i = 0; i < MU_COUNT(rows); i++) {
		struct task_server_options o = {.http_port = -1};
		char bind[TASK_SERVER_BIND];
		struct mu_err err;

		set("NVIDIA_VISIBLE_DEVICES", rows[i].gpus);
		set("MUSTER_KERNELS", rows[i].kernels);
		assert_ok(task_server_told(&o, NAME, bind, &err), &err);
		if (rows[i].want)
			assert_string_equal(o.kernels, rows[i].want);
		else
			assert_null(o.kernels);
	}
	set("MUSTER_KERNELS", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(what_the_environment_says__is_taken_or_refused),
	    cmocka_unit_test(what_is_said_already__stays),
	    cmocka_unit_test(who_is_shown_no_gpu__looks_for_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
