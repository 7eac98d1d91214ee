/* SPDX-License-Identifier: Apache-2.0 */
/* The certificates of a job over days: the controller in the simulated cluster (sim.h), with and
 * without faults. sim_secret.c fails a run in which two tasks might not trust each other. */
#include "tests/fake/one_job.h"

enum { HOUR = 3600 };

static struct sim *start(struct sim_script *script, uint64_t seed, bool faulty)
{
	script->end = never_ends;
	return start_job(script, TRAIN, "", seed, faulty);
}

/* Path of the Secret that the job's status names. */
static const char *sim_secret_path(struct sim *s)
{
	static char path[256];

	snprintf(path, sizeof(path), "/api/v1/namespaces/default/secrets/%s",
		 sim_text(sim_find(s, JOB_PATH)->json, "status.security.secret"));
	return path;
}

static const cJSON *secret(struct sim *s)
{
	const struct sim_object *o = sim_find(s, sim_secret_path(s));

	assert_non_null(o);
	return o->json;
}

/* Expects every pod to mount the Secret. */
static void expect_mounted(struct sim *s)
{
	for (int i = 0; i < s->n_objects; i++) {
		const cJSON *v;
		const char *name = "";

		if (s->objects[i].kind != SIM_POD || strstr(s->objects[i].path, "/foreign"))
			continue;
		cJSON_ArrayForEach(v, sim_at(s->objects[i].json, "spec.volumes"))
		{
			if (!strcmp(sim_text(v, "name"), "muster-tls"))
				name = sim_text(v, "secret.secretName");
		}
		assert_string_equal(name, sim_text(secret(s), "metadata.name"));
	}
}

static unsigned n_pods(struct sim *s)
{
	unsigned n = 0;

	for (int i = 0; i < s->n_objects; i++)
		n += s->objects[i].kind == SIM_POD && !strstr(s->objects[i].path, "/foreign");
	return n;
}

/* Trusted CAs and the certificate in use: "CA 1;CA 2; with CA 1;" */
static void expect_certs(struct sim *s, const char *want)
{
	MU_AUTO_FREE char *ca = decoded(secret(s), "ca.crt"), *crt = decoded(secret(s), "tls.crt");
	MU_AUTO_BUF got = {0};

	for (const char *p = ca; (p = strstr(p, "CA ")); p++)
		mu_buf_put(&got, p, strcspn(p, ";") + 1);
	mu_buf_printf(&got, " with %s", crt);
	assert_string_equal(got.data, want);
}

static void secret__is_created_and_recorded_before_any_pod(void **state)
{
	struct sim_script script = {0};
	struct sim *s;

	last_ca = 0;
	s = start(&script, 1, false);
	while (!n_pods(s))
		step(s, s->now + 60);
	expect_mounted(s);
	assert_string_equal(sim_text(secret(s), "type"), "kubernetes.io/tls");
	expect_certs(s, "CA 1; with CA 1;");
	assert_string_equal(
	    sim_text(cJSON_GetArrayItem(sim_at(secret(s), "metadata.ownerReferences"), 0), "uid"),
	    sim_text(sim_find(s, JOB_PATH)->json, "metadata.uid"));
	stop(s, &script);
}

/* The status is stored with the job's certificates before any pod. It has a condition that is
 * already true, whose event must not be lost. */
static void condition__that_is_stored_with_the_certificates__has_its_event(void **state)
{
	struct sim_script script = {.gpus = true, .no_gpu_image = true};
	struct sim *s = start(&script, 1, false);

	while (n_pods(s) < 3)
		step(s, s->now + 60);
	sim_settle(s, 60);
	assert_string_equal(sim_text(condition_of(s, "KernelsMissing"), "reason"), "NoGpuImage");
	assert_int_equal(s->kernels_events, 1);
	stop(s, &script);
}

static void certificates__are_replaced_in_two_phases__first_the_ca(void **state)
{
	struct sim_script script = {0};
	struct sim *s;

	last_ca = 0;
	s = start(&script, 1, false);
	sim_settle(s, 31 * HOUR);
	expect_certs(s, "CA 1; with CA 1;");
	sim_settle(s, HOUR + 120);
	expect_certs(s, "CA 1;CA 2; with CA 1;");
	assert_non_null(sim_at(sim_find(s, JOB_PATH)->json, "status.security.caAddedAt"));
	sim_settle(s, 300);
	expect_certs(s, "CA 1;CA 2; with CA 2;");
	assert_null(sim_at(sim_find(s, JOB_PATH)->json, "status.security.caAddedAt"));
	sim_settle(s, 33 * HOUR);
	expect_certs(s, "CA 2;CA 3; with CA 3;");
	assert_int_equal(s->switches, 2);
	stop(s, &script);
}

static void certificates__with_another_lifetime__are_replaced_in_time(void **state)
{
	struct sim_script script = {.cert_life = HOUR};
	struct sim *s;

	last_ca = 0;
	s = start(&script, 1, false);
	sim_settle(s, 39 * 60);
	expect_certs(s, "CA 1; with CA 1;");
	sim_settle(s, 120);
	expect_certs(s, "CA 1;CA 2; with CA 1;");
	sim_settle(s, 300);
	expect_certs(s, "CA 1;CA 2; with CA 2;");
	sim_settle(s, 48 * 60);
	expect_certs(s, "CA 2;CA 3; with CA 3;");
	stop(s, &script);
}

static void operator__restarted_between_the_phases__continues_with_the_second(void **state)
{
	struct sim_script script = {0};
	struct sim *s;

	last_ca = 0;
	s = start(&script, 1, false);
	sim_settle(s, 32 * HOUR + 120);
	expect_certs(s, "CA 1;CA 2; with CA 1;");
	for (int i = 0; i < 20; i++) {
		sim_restart(s);
		sim_settle(s, 5);
	}
	expect_certs(s, "CA 1;CA 2; with CA 1;");
	sim_settle(s, 300);
	expect_certs(s, "CA 1;CA 2; with CA 2;");
	sim_settle(s, 33 * HOUR);
	expect_certs(s, "CA 2;CA 3; with CA 3;");
	stop(s, &script);
}

static void job__suspended_past_its_certificates__resumes_with_new_ones(void **state)
{
	struct sim_script script = {
	    .user_actions = {{USER_SUSPEND, 600, 0}, {USER_RESUME, 100 * HOUR, 0}}};
	struct sim *s;

	last_ca = 0;
	s = start(&script, 1, false);
	sim_settle(s, 99 * HOUR);
	expect_certs(s, "CA 1; with CA 1;");
	sim_settle(s, 2 * HOUR);
	expect_certs(s, "CA 2; with CA 2;");
	assert_int_equal(n_pods(s), 3);
	expect_mounted(s);
	stop(s, &script);
}

static void secret__that_was_deleted__is_created_again_when_a_pod_needs_it(void **state)
{
	struct sim_script script = {0};
	struct sim_object *pod;
	struct sim *s;

	last_ca = 0;
	s = start(&script, 1, false);
	sim_settle(s, 120);
	sim_remove(s, sim_find(s, sim_secret_path(s)));
	sim_settle(s, HOUR);
	assert_null(sim_find(s, sim_secret_path(s))); /* no pod needs it yet */
	pod = sim_find(s, "/api/v1/namespaces/default/pods/j-worker-1");
	assert_non_null(pod);
	sim_serve(s, "DELETE", pod->path, NULL, NULL, NULL);
	sim_settle(s, 90);
	expect_certs(s, "CA 2; with CA 2;");
	pod = sim_find(s, "/api/v1/namespaces/default/pods/j-worker-1");
	assert_non_null(pod);
	assert_int_equal(pod->stage, STAGE_READY);
	stop(s, &script);
}

/* SIM_ROTATIONS is the number of runs; make test-simulator sets a larger one. */
static void rotations__with_any_faults__keep_all_tasks_trusted(void **state)
{
	const char *text = getenv("SIM_ROTATIONS");
	int runs = text ? atoi(text) : 12, switches = 0, crashes = 0;

	for (int seed = 1; seed <= runs; seed++) {
		struct sim_script script = {0};
		struct sim *s = start(&script, (uint64_t)seed, true);

		for (int i = 0; i < 20000 && s->now < SIM_EPOCH + 80 * HOUR && !s->violation[0];
		     i++)
			step(s, INFINITY);
		sim_settle(s, 80 * HOUR);
		if (s->violation[0])
			print_message("SEED=%d %s\n", seed, s->violation);
		if (!s->violation[0])
			expect_mounted(s);
		switches += s->switches;
		crashes += s->crashes;
		stop(s, &script);
	}
	print_message("%d switches, %d crashes\n", switches, crashes);
	assert_true(switches >= runs && crashes > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(secret__is_created_and_recorded_before_any_pod),
	    cmocka_unit_test(condition__that_is_stored_with_the_certificates__has_its_event),
	    cmocka_unit_test(certificates__are_replaced_in_two_phases__first_the_ca),
	    cmocka_unit_test(certificates__with_another_lifetime__are_replaced_in_time),
	    cmocka_unit_test(operator__restarted_between_the_phases__continues_with_the_second),
	    cmocka_unit_test(job__suspended_past_its_certificates__resumes_with_new_ones),
	    cmocka_unit_test(secret__that_was_deleted__is_created_again_when_a_pod_needs_it),
	    cmocka_unit_test(rotations__with_any_faults__keep_all_tasks_trusted),
	};

	mu_log_set_level(getenv("SIM_TRACE") ? MU_DEBUG : MU_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
