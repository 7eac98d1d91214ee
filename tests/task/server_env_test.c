/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "task/server.h"
#include "tests/test.h"

#define NAME "j-ps-0.j.n1.svc:2222"

static const struct {
	const char *name, *too_large;
} numbers[] = {{"MUSTER_EPOCH", "2147483648"},
	       {"MUSTER_PORT", "65536"},
	       {"MUSTER_STREAM_PORT", "65536"},
	       {"MUSTER_HTTP_PORT", "65536"}};

static void set(const char *name, const char *value)
{
	if (value)
		setenv(name, value, 1);
	else
		unsetenv(name);
}

static int from_env(struct task_server_options *o, const char *address, char bind[TASK_SERVER_BIND],
		    struct mu_err *err)
{
	MU_AUTO_CLUSTER cluster = {0};
	int rc = mu_cluster_add(&cluster, "ps", 0, address, err);

	o->cluster = &cluster;
	o->job = "ps";
	return rc ? rc : task_options_from_env(o, bind, err);
}

static void host_name__with_a_port_in_the_environment__binds_all_interfaces(void **state)
{
	static const struct {
		const char *port, *address, *bind; /* bind NULL: the cluster's address */
	} rows[] = {{"2222", NAME, "0.0.0.0:2222"},
		    {"65535", NAME, "0.0.0.0:65535"},
		    {"0", NAME, "0.0.0.0:0"},
		    {NULL, NAME, NULL},
		    {"", NAME, NULL},
		    {"2222", "127.0.0.1:2222", NULL},
		    {"2222", "localhost:2222", NULL},
		    {"2222", "unix:/run/x", NULL}};

	for (unsigned i = 0; i < MU_COUNT(rows); i++) {
		struct task_server_options o = {.http_port = -1};
		char bind[TASK_SERVER_BIND];
		struct mu_err err;

		set("MUSTER_PORT", rows[i].port);
		assert_ok(from_env(&o, rows[i].address, bind, &err), &err);
		if (rows[i].bind)
			assert_string_equal(o.bind, rows[i].bind);
		else
			assert_null(o.bind);
	}
	set("MUSTER_PORT", NULL);
}

static void numbers__of_the_environment__become_options(void **state)
{
	struct task_server_options o = {.http_port = -1}, unset = {.http_port = -1};
	char bind[TASK_SERVER_BIND];
	struct mu_err err;

	set("MUSTER_EPOCH", "2147483647");
	set("MUSTER_STREAM_PORT", "2223");
	set("MUSTER_HTTP_PORT", "0");
	assert_ok(from_env(&o, NAME, bind, &err), &err);
	assert_int_equal(o.epoch, INT32_MAX);
	assert_int_equal(o.stream_port, 2223);
	assert_int_equal(o.http_port, 0);
	for (unsigned i = 0; i < MU_COUNT(numbers); i++)
		set(numbers[i].name, NULL);
	assert_ok(from_env(&unset, NAME, bind, &err), &err);
	assert_int_equal(unset.epoch, 0);
	assert_int_equal(unset.stream_port, 0);
	assert_int_equal(unset.http_port, -1);
}

static void malformed_number__is_an_error_that_names_its_variable(void **state)
{
	static const char *const malformed[] = {"-1",
						"+1",
						" 1",
						"1 ",
						"22x",
						"x",
						"1,2",
						"0x10",
						"99999999999999999999",
						"tcp://10.0.0.1:2222"};

	for (unsigned n = 0; n < MU_COUNT(numbers); n++) {
		for (unsigned i = 0; i <= MU_COUNT(malformed); i++) {
			struct task_server_options o = {.http_port = -1};
			char bind[TASK_SERVER_BIND];
			struct mu_err err = {0};
			const char *text =
			    i < MU_COUNT(malformed) ? malformed[i] : numbers[n].too_large;

			set(numbers[n].name, text);
			if (from_env(&o, NAME, bind, &err) != -MU_INVALID_ARGUMENT ||
			    !strstr(err.msg, numbers[n].name) || !strstr(err.msg, text))
				fail_msg("%s='%s': %s", numbers[n].name, text, err.msg);
		}
		set(numbers[n].name, NULL);
	}
}

static void options__set_by_the_caller__are_kept(void **state)
{
	struct task_server_options o = {.bind = "127.0.0.1:1",
					.epoch = 4,
					.stream_port = 2,
					.http_port = 3,
					.tls = "/mine",
					.kernels = "cpu-avx2"};
	char bind[TASK_SERVER_BIND];
	struct mu_err err;

	set("MUSTER_EPOCH", "3");
	set("MUSTER_PORT", "2222");
	set("MUSTER_STREAM_PORT", "2223");
	set("MUSTER_HTTP_PORT", "8079");
	set("MUSTER_TLS", "/theirs");
	set("MUSTER_KERNELS", "cpu");
	assert_ok(from_env(&o, NAME, bind, &err), &err);
	assert_string_equal(o.bind, "127.0.0.1:1");
	assert_int_equal(o.epoch, 4);
	assert_int_equal(o.stream_port, 2);
	assert_int_equal(o.http_port, 3);
	assert_string_equal(o.tls, "/mine");
	assert_string_equal(o.kernels, "cpu-avx2");
	o.tls = o.kernels = NULL;
	assert_ok(from_env(&o, NAME, bind, &err), &err);
	assert_string_equal(o.tls, "/theirs");
	assert_string_equal(o.kernels, "cpu");
	for (unsigned i = 0; i < MU_COUNT(numbers); i++)
		set(numbers[i].name, NULL);
	set("MUSTER_TLS", NULL);
	set("MUSTER_KERNELS", NULL);
}

static void task__with_hidden_gpus__uses_the_cpu(void **state)
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
		assert_ok(from_env(&o, NAME, bind, &err), &err);
		if (rows[i].want)
			assert_string_equal(o.kernels, rows[i].want);
		else
			assert_null(o.kernels);
	}
	set("MUSTER_KERNELS", NULL);
}

static void task__that_is_not_in_the_cluster__is_an_error(void **state)
{
	MU_AUTO_CLUSTER cluster = {0};
	struct task_server_options o = {.cluster = &cluster, .job = "ps", .index = 1};
	char bind[TASK_SERVER_BIND];
	struct mu_err err;

	assert_ok(mu_cluster_add(&cluster, "ps", 0, NAME, &err), &err);
	assert_int_equal(task_options_from_env(&o, bind, &err), -MU_NOT_FOUND);
	assert_non_null(strstr(err.msg, "job 'ps' has no task 1"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(host_name__with_a_port_in_the_environment__binds_all_interfaces),
	    cmocka_unit_test(numbers__of_the_environment__become_options),
	    cmocka_unit_test(malformed_number__is_an_error_that_names_its_variable),
	    cmocka_unit_test(options__set_by_the_caller__are_kept),
	    cmocka_unit_test(task__with_hidden_gpus__uses_the_cpu),
	    cmocka_unit_test(task__that_is_not_in_the_cluster__is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
