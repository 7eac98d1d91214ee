/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"

#include <string.h>

#include "lib/cluster/cluster_spec.h"
#include "tests/fuzz/cluster_fuzz.c"
#include "tests/fuzz/mutate.h"

static struct mu_err err;

static void cluster__from_json__has_every_task(void **state)
{
	MU_AUTO_CLUSTER c = {0};
	MU_AUTO_BUF out = {0};

	assert_ok(mu_cluster_parse_json(&c,
					MU_SPAN("{\"worker\":[\"w0:1\",\"w1:2\"],\"ps\":{\"3\":\"[:"
						":1]:4\",\"0\":\"unix:/s\"}}"),
					&err),
		  &err);
	assert_int_equal(mu_cluster_num_tasks(&c, "worker"), 2);
	assert_int_equal(mu_cluster_num_tasks(&c, "chief"), 0);
	assert_string_equal(mu_cluster_address(&c, "worker", 1, &err), "w1:2");
	assert_string_equal(mu_cluster_address(&c, "ps", 3, &err), "[::1]:4");
	mu_cluster_write_json(&c, &out);
	assert_string_equal(
	    out.data,
	    "{\"ps\":{\"0\":\"unix:/s\",\"3\":\"[::1]:4\"},\"worker\":[\"w0:1\",\"w1:2\"]}");
}

static void job__without_tasks__is_accepted(void **state)
{
	MU_AUTO_CLUSTER c = {0};

	assert_ok(mu_cluster_parse_json(
		      &c, MU_SPAN("{\"ps\":[],\"evaluator\":{},\"worker\":[\"w0:1\"]}"), &err),
		  &err);
	assert_int_equal(mu_cluster_num_tasks(&c, "ps"), 0);
	assert_int_equal(mu_cluster_num_tasks(&c, "worker"), 1);
}

static void cluster__without_the_requested_task__lists_its_jobs(void **state)
{
	MU_AUTO_CLUSTER c = {0};

	assert_ok(mu_cluster_add_hosts(&c, "ps", "a:1,b:2", &err), &err);
	assert_null(mu_cluster_address(&c, "worker", 0, &err));
	assert_non_null(strstr(err.msg, "no job 'worker' in the cluster; it has: ps"));
	assert_null(mu_cluster_address(&c, "ps", 2, &err));
	assert_non_null(strstr(err.msg, "job 'ps' has no task 2; it has 2"));
}

static void cluster__from_invalid_json__names_the_position(void **state)
{
	static const char *const cases[][2] = {
	    {"{}", "must be a map from job to its addresses"},
	    {"{\"ps\":7}", "ps: must be a list of addresses"},
	    {"{\"ps\":[1]}", "ps[0]: must be a host:port"},
	    {"{\"ps\":[\"nohost\"]}", "'nohost' is not a host:port"},
	    {"{\"ps\":[\"h:0\"]}", "a port from 1 to 65535"},
	    {"{\"ps\":[\"h:65536\"]}", "a port from 1 to 65535"},
	    {"{\"ps\":[\"h: 1\"]}", "a port from 1 to 65535"},
	    {"{\"ps\":[\"::1:22\"]}", "'::1:22' is not a host:port"},
	    {"{\"ps\":{\"x\":\"h:1\"}}", "a task's key must be its index"},
	    {"{\"ps\":{\"-1\":\"h:1\"}}", "a task's key must be its index"},
	    {"{\"p s\":[\"h:1\"]}", "is not a job name"},
	    {"[1]", "must be a map"},
	    {"{\"ps\":", "not valid JSON"},
	};
	struct mu_cluster c;

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_fails(mu_cluster_parse_json(&c, mu_span_of(cases[i][0]), &err), &err,
			     MU_INVALID_ARGUMENT, cases[i][1]);
}

static void tf_config__with_a_task__has_cluster_and_task(void **state)
{
	MU_AUTO_CLUSTER c = {0};
	MU_AUTO_BUF out = {0};
	struct mu_self self;

	assert_ok(
	    mu_cluster_parse_tf_config(
		&c, &self,
		MU_SPAN("{\"cluster\":{\"ps\":[\"a:1\"],\"worker\":[\"b:2\",\"c:3\"]},\"task\":{"
			"\"type\":\"worker\",\"index\":1},\"environment\":\"cloud\"}"),
		&err),
	    &err);
	assert_string_equal(self.job, "worker");
	assert_int_equal(self.index, 1);
	mu_cluster_write_tf_config(&c, "worker", 1, &out);
	assert_string_equal(out.data, "{\"cluster\":{\"ps\":[\"a:1\"],\"worker\":[\"b:2\",\"c:3\"]}"
				      ",\"task\":{\"type\":\"worker\",\"index\":1}}");
}

static void tf_config__with_a_task_outside_its_cluster__is_invalid(void **state)
{
	struct mu_cluster c;
	struct mu_self self;

	assert_fails(
	    mu_cluster_parse_tf_config(
		&c, &self,
		MU_SPAN("{\"cluster\":{\"ps\":[\"a:1\"]},\"task\":{\"type\":\"ps\",\"index\":1}}"),
		&err),
	    &err, MU_NOT_FOUND, "TF_CONFIG: task: job 'ps' has no task 1");
	assert_fails(mu_cluster_parse_tf_config(
			 &c, &self,
			 MU_SPAN("{\"cluster\":{\"ps\":[\"a:1\"]},\"task\":{\"index\":1}}"), &err),
		     &err, MU_INVALID_ARGUMENT, "needs a \"type\"");
}

/* The error names the variable once, for any fault in its value. */
static void tf_config__with_a_fault__is_named_once(void **state)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
	    {"{", "TF_CONFIG:1: not valid JSON"},
	    {"{}", "TF_CONFIG: cluster: must be a map"},
	    {"{\"cluster\":{\"ps\":[\"a\"]}}", "TF_CONFIG: cluster: job 'ps', task 0: 'a' is no"},
	    {"{\"cluster\":{\"ps\":[\"a:1\"]},\"task\":3}", "TF_CONFIG: task: must be a map"},
	    {"{\"cluster\":{\"ps\":[\"a:1\"]},\"task\":{\"type\":\"ps\",\"index\":\"x\"}}",
	     "TF_CONFIG: task.index: must be a task index"},
	};

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		struct mu_cluster c;
		struct mu_self self;

		assert_true(mu_cluster_parse_tf_config(&c, &self, mu_span_of(cases[i].text), &err) <
			    0);
		if (strncmp(err.msg, cases[i].message, strlen(cases[i].message)) ||
		    strstr(err.msg + 1, "TF_CONFIG"))
			fail_msg("'%s' instead of '%s'", err.msg, cases[i].message);
	}
}

static void hosts_flag__of_a_job__adds_the_job(void **state)
{
	MU_AUTO_CLUSTER c = {0};

	assert_int_equal(mu_cluster_parse_flag(&c, "--ps_hosts=a:1,b:2", &err), 1);
	assert_int_equal(mu_cluster_parse_flag(&c, "worker-hosts=c:3", &err), 1);
	assert_int_equal(mu_cluster_parse_flag(&c, "--job_name=ps", &err), 0);
	assert_int_equal(mu_cluster_parse_flag(&c, "--_hosts=a:1", &err), 0);
	assert_int_equal(mu_cluster_num_tasks(&c, "ps"), 2);
	assert_int_equal(mu_cluster_num_tasks(&c, "worker"), 1);
	assert_fails(mu_cluster_parse_flag(&c, "--ps_hosts=a:1", &err), &err, MU_INVALID_ARGUMENT,
		     "job 'ps' has two addresses for task 0");
	assert_fails(mu_cluster_parse_flag(&c, "--x_hosts=", &err), &err, MU_INVALID_ARGUMENT,
		     "has no hosts");
	assert_fails(mu_cluster_parse_flag(&c, "--x_hosts=a:1,,b:2", &err), &err,
		     MU_INVALID_ARGUMENT, "'' is not a host:port");
}

static void cluster__of_random_bytes__never_breaks_the_reader(void **state)
{
	const char json[] = "{\"cluster\":{\"ps\":{\"0\":\"a:1\",\"4\":\"b:2\"},\"worker\":[\"c:"
			    "3\"]},\"task\":{\"type\":\"ps\",\"index\":\"4\"}}";
	const char flag[] = "--ps_hosts=alpha:2222,[::1]:33,unix:/x";

	mutate_run(LLVMFuzzerTestOneInput, json, sizeof json - 1, 10000);
	mutate_run(LLVMFuzzerTestOneInput, flag, sizeof flag - 1, 5000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(job__without_tasks__is_accepted),
	    cmocka_unit_test(cluster__from_json__has_every_task),
	    cmocka_unit_test(cluster__without_the_requested_task__lists_its_jobs),
	    cmocka_unit_test(cluster__from_invalid_json__names_the_position),
	    cmocka_unit_test(tf_config__with_a_task__has_cluster_and_task),
	    cmocka_unit_test(tf_config__with_a_task_outside_its_cluster__is_invalid),
	    cmocka_unit_test(tf_config__with_a_fault__is_named_once),
	    cmocka_unit_test(hosts_flag__of_a_job__adds_the_job),
	    cmocka_unit_test(cluster__of_random_bytes__never_breaks_the_reader),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
