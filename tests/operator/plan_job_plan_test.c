/* SPDX-License-Identifier: Apache-2.0 */
/* job_plan with plan_fixture.h: the life of a job and its tasks. All tests follow one job from its
 * start. Departures, failures and policies have their own files. */
#include "operator/plan/planner.h"
#include "tests/operator/plan_fixture.h"

static void job__from_start_to_end__starts_the_ps_first_and_succeeds_with_its_chief(void **state)
{
	struct plan_fixture w;

	plan_fixture_start(&w, TWO);
	assert_string_equal(run_plan(&w), "+ps/0 ");
	assert_true(w.service);
	assert_int_equal(w.status.phase, JOB_PENDING);
	assert_string_equal(run_plan(&w), "");
	run_all(&w);
	assert_string_equal(run_plan(&w), "+worker/0 +worker/1 ");
	run_all(&w);
	assert_string_equal(run_plan(&w), "");
	assert_int_equal(w.status.phase, JOB_RUNNING);
	assert_true(w.status.conditions[COND_READY].status);
	assert_int_equal(w.status.tasks[1].ready, 2);
	assert_string_equal(run_plan(&w), "");
	assert_false(w.changed); /* an unchanged job causes no status write */
	fail_pod(&w, "worker", 1, 0);
	assert_string_equal(run_plan(&w), "");
	assert_int_equal(w.status.phase, JOB_RUNNING);
	fail_pod(&w, "worker", 0, 0);
	assert_string_equal(run_plan(&w), "!ps/0 ");
	assert_int_equal(w.status.phase, JOB_SUCCEEDED);
	assert_int_equal(w.status.tasks[1].succeeded, 2);
	assert_string_equal(run_plan(&w), "");
	assert_int_equal(w.status.restarts, 0);
	plan_fixture_end(&w);
}

static void ps__that_ends_after_the_chief__is_not_a_failure(void **state)
{
	struct plan_fixture w;

	start_running(&w, TWO);
	fail_pod(&w, "ps", 0, 0);
	fail_pod(&w, "worker", 0, 0);
	run_plan(&w);
	assert_int_equal(w.status.phase, JOB_SUCCEEDED);
	assert_int_equal(w.status.restarts, 0);
	plan_fixture_end(&w);
}

static void worker__ended_by_its_deletion__is_not_recorded(void **state)
{
	struct plan_fixture w;

	start_running(&w, TWO);
	fail_pod(&w, "worker", 0, 0); /* it ends with 0 after SIGTERM */
	pod(&w, "worker", 0)->deleting = pod(&w, "worker", 0)->ended_by_deletion = true;
	fail_pod(&w, "worker", 1, 143);
	pod(&w, "worker", 1)->deleting = pod(&w, "worker", 1)->ended_by_deletion = true;
	assert_string_equal(run_plan(&w), "");
	assert_int_not_equal(w.status.phase, JOB_SUCCEEDED);
	assert_int_equal(w.status.restarts, 0);
	remove_uid(&w, pod(&w, "worker", 0)->uid);
	remove_uid(&w, pod(&w, "worker", 1)->uid);
	assert_string_equal(run_plan(&w), "+worker/0 +worker/1 ");
	plan_fixture_end(&w);
}

static void worker__evicted_and_ended_with_0__is_not_done(void **state)
{
	struct plan_fixture w;

	start_running(&w, TWO);
	fail_pod(&w, "worker", 1, 137);
	pod(&w, "worker", 1)->exit_code = 0;
	pod(&w, "worker", 1)->disrupted = true;
	assert_string_equal(run_plan(&w), "-worker/1 ");
	assert_int_equal(w.status.restarts, 0);
	assert_int_equal(w.status.tasks[1].succeeded, 0);
	plan_fixture_end(&w);
}

static void worker__whose_earlier_pod_appears_in_a_stale_list__is_counted_once(void **state)
{
	struct plan_fixture w;

	start_running(&w, TWO);
	pod(&w, "worker", 1)->created = w.now;
	fail_pod(&w, "worker", 1, 0);
	run_plan(&w);
	assert_int_equal(w.status.tasks[1].succeeded, 1);
	fail_pod(&w, "worker", 1, 137);
	pod(&w, "worker", 1)->uid = "older";
	pod(&w, "worker", 1)->created = w.now - 100;
	assert_string_equal(run_plan(&w), "");
	assert_int_equal(w.status.tasks[1].succeeded, 1);
	assert_int_equal(w.status.restarts, 0);
	plan_fixture_end(&w);
}

static void worker__stuck_on_a_lost_node__is_replaced_without_a_failure(void **state)
{
	struct observed_pod *p;
	struct plan_fixture w;

	start_running(&w, TWO);
	w.node = (struct node_info){.name = "n", .schedulable = true};
	p = pod(&w, "worker", 1);
	p->node = "n";
	p->deleting = true;
	p->deletion_due = w.now + 30;
	w.now += 100;
	assert_string_equal(run_plan(&w), ""); /* the node is alive, but its kubelet is slow */
	w.node.lost = true;
	w.now = p->deletion_due + 10;
	assert_string_equal(run_plan(&w), "");
	assert_true(w.requeue_at > w.now && w.requeue_at <= w.now + 10);
	w.now = w.requeue_at;
	assert_string_equal(run_plan(&w), "~worker/1 ");
	assert_string_equal(run_plan(&w), "+worker/1 ");
	assert_int_equal(w.status.restarts, 0);
	plan_fixture_end(&w);
}

static void worker__killed__runs_again_after_its_backoff(void **state)
{
	struct plan_fixture w;

	start_running(&w, TWO);
	fail_pod(&w, "worker", 1, 137);
	assert_string_equal(run_plan(&w), "-worker/1 ");
	assert_int_equal(w.status.phase, JOB_RESTARTING);
	assert_int_equal(w.status.restarts, 1);
	assert_string_equal(run_plan(&w), "");
	assert_true(w.requeue_at > w.now);
	w.now = w.requeue_at;
	assert_string_equal(run_plan(&w), "+worker/1 ");
	run_all(&w);
	run_plan(&w);
	assert_int_equal(w.status.phase, JOB_RUNNING);
	assert_false(w.status.conditions[COND_RESTARTING].status);
	plan_fixture_end(&w);
}

static void worker__with_a_permanent_exit_code__fails_the_job(void **state)
{
	struct plan_fixture w;

	start_running(&w, TWO);
	fail_pod(&w, "worker", 1, 1);
	pod(&w, "worker", 1)->reason = "Error";
	pod(&w, "worker", 1)->node = "n7";
	/* the ps stays: the chief may save its variables */
	assert_string_equal(run_plan(&w), "-worker/0 ");
	assert_int_equal(w.status.phase, JOB_FAILED);
	assert_string_equal(w.status.conditions[COND_FAILED].message,
			    "worker/1 ended with exit code 1 (Error) on node n7; why: "
			    "kubectl logs -n default j-worker-1");
	assert_string_equal(run_plan(&w), "-ps/0 ");
	assert_string_equal(run_plan(&w), "");
	plan_fixture_end(&w);
}

static void worker__evicted__has_no_backoff(void **state)
{
	struct plan_fixture w;

	start_running(
	    &w,
	    HEAD "  tasks: {ps: {}, worker: {restartPolicy: Never}}\n  run: {backoffLimit: 0}\n");
	fail_pod(&w, "worker", 0, 1);
	pod(&w, "worker", 0)->disrupted = true;
	assert_string_equal(run_plan(&w), "-worker/0 ");
	assert_int_equal(w.status.restarts, 0);
	assert_string_equal(run_plan(&w), "+worker/0 ");
	/* repeated evictions do get a backoff */
	fail_pod(&w, "worker", 0, 1);
	pod(&w, "worker", 0)->disrupted = true;
	assert_string_equal(run_plan(&w), "-worker/0 ");
	assert_string_equal(run_plan(&w), "");
	assert_true(w.requeue_at > w.now && w.requeue_at <= w.now + 1);
	w.now += 1;
	assert_string_equal(run_plan(&w), "+worker/0 ");
	assert_int_equal(w.status.restarts, 0);
	plan_fixture_end(&w);
}

/* The new policy applies to later ends: the index runs again already. */
static void restart_policy__that_is_edited__does_not_apply_to_earlier_ends(void **state)
{
	struct plan_fixture w;

	start_running(&w, TWO "  run: {restartPolicy: OnFailure}\n");
	fail_pod(&w, "worker", 1, 1);
	run_plan(&w);
	w.now += 2;
	assert_string_equal(run_plan(&w), "+worker/1 ");
	run_all(&w);
	plan_fixture_edit(&w, TWO "  run: {restartPolicy: Never}\n");
	run_plan(&w);
	assert_int_equal(w.status.phase, JOB_RUNNING);
	fail_pod(&w, "worker", 1, 1);
	run_plan(&w);
	assert_int_equal(w.status.phase, JOB_FAILED);
	plan_fixture_end(&w);
}

static void failures__beyond_the_limit__fail_the_job(void **state)
{
	struct plan_fixture w;

	start_running(
	    &w, HEAD
	    "  tasks: {ps: {}, worker: {}}\n  run: {backoffLimit: 1, restartPolicy: OnFailure}\n");
	fail_pod(&w, "worker", 0, 1);
	run_plan(&w);
	w.now += 100;
	assert_string_equal(run_plan(&w), "+worker/0 ");
	run_all(&w);
	fail_pod(&w, "worker", 0, 1);
	run_plan(&w);
	assert_int_equal(w.status.phase, JOB_FAILED);
	assert_string_equal(w.status.conditions[COND_FAILED].reason, "BackoffLimitExceeded");
	plan_fixture_end(&w);
}

static void ps__that_fails_while_workers_run__is_restarted_alone(void **state)
{
	struct plan_fixture w;

	start_running(&w, TWO);
	fail_pod(&w, "ps", 0, 139);
	assert_string_equal(run_plan(&w), "-ps/0 ");
	w.now += 100;
	assert_string_equal(run_plan(&w), "+ps/0 ");
	assert_int_equal(w.n_pods, 3);
	plan_fixture_end(&w);
}

/* The trainer stops its server before it exits: its pod runs and is no longer ready. */
static void worker__restarted_and_now_ending__is_not_restarting(void **state)
{
	struct plan_fixture w;

	start_running(&w, TWO);
	fail_pod(&w, "worker", 0, 139);
	run_plan(&w);
	w.now += 100;
	assert_string_equal(run_plan(&w), "+worker/0 ");
	pod(&w, "worker", 0)->phase = POD_RUNNING; /* running, not yet ready */
	run_plan(&w);
	assert_int_equal(w.status.phase, JOB_RESTARTING);
	pod(&w, "worker", 0)->ready = pod(&w, "worker", 0)->was_ready = true;
	run_plan(&w);
	assert_int_equal(w.status.phase, JOB_RUNNING);
	w.last_progress = w.now;
	pod(&w, "worker", 0)->ready = false;
	run_plan(&w);
	assert_int_equal(w.status.phase, JOB_RUNNING);
	assert_false(w.status.conditions[COND_RESTARTING].status);
	plan_fixture_end(&w);
}

static void replicas__changed__add_and_remove_workers_only(void **state)
{
	struct plan_fixture w;

	start_running(&w, TWO);
	int epoch = w.status.epoch;
	plan_fixture_edit(&w, HEAD "  tasks: {ps: {replicas: 1}, worker: {replicas: 4}}\n");
	assert_string_equal(run_plan(&w), "+worker/2 +worker/3 ");
	assert_int_equal(w.status.epoch, epoch + 1);
	run_all(&w);
	plan_fixture_edit(&w, HEAD "  tasks: {ps: {replicas: 1}, worker: {replicas: 1}}\n");
	run_plan(&w);
	assert_int_equal(w.n_pods, 2);
	assert_non_null(pod(&w, "worker", 0));
	assert_int_equal(w.status.phase, JOB_RUNNING);
	plan_fixture_end(&w);
}

static void epoch_seen__is_set_when_the_last_task_has_the_epoch(void **state)
{
	struct plan_fixture w;

	start_running(&w, TWO);
	int epoch = w.status.epoch;
	assert_int_equal(w.status.epoch_seen, epoch);
	assert_null(w.plan->membership_update);
	plan_fixture_edit(&w, HEAD "  tasks: {ps: {replicas: 1}, worker: {replicas: 3}}\n");
	run_plan(&w);
	run_plan(&w);
	assert_int_equal(w.status.epoch_seen, epoch);
	assert_non_null(
	    strstr(w.plan->membership_update, "{\"epoch\":2,\"cluster\":{\"ps\":[\"j-ps-0."));
	assert_non_null(strstr(w.plan->membership_update, "\"j-worker-2."));
	pod(&w, "ps", 0)->epoch = pod(&w, "worker", 0)->epoch = epoch + 1;
	run_plan(&w);
	assert_int_equal(w.status.epoch_seen, epoch);
	pod(&w, "worker", 1)->epoch = epoch + 1;
	run_plan(&w);
	assert_int_equal(w.status.epoch_seen, epoch + 1);
	assert_null(w.plan->membership_update);
	pod(&w, "ps", 0)->epoch = epoch; /* a new leader has no record of the membership update */
	run_plan(&w);
	assert_int_equal(w.status.epoch_seen, epoch + 1);
	assert_non_null(w.plan->membership_update);
	plan_fixture_end(&w);
}

/* Only tasks that are and remain members of the cluster get membership updates. */
static void epoch__of_departing_or_non_member_tasks__is_not_waited_for(void **state)
{
	struct plan_fixture w;

	start_running(&w, HEAD "  program: {command: [x]}\n"
			       "  tasks: {ps: {}, worker: {replicas: 2}, evaluator: {}}\n");
	int epoch = w.status.epoch;
	plan_fixture_edit(&w, HEAD "  program: {command: [x]}\n"
				   "  tasks: {ps: {}, worker: {replicas: 1}, evaluator: {}}\n");
	pod(&w, "ps", 0)->epoch = pod(&w, "worker", 0)->epoch = epoch + 1;
	pod(&w, "worker", 1)->deleting = true;
	run_plan(&w);
	assert_int_equal(pod(&w, "evaluator", 0)->epoch, epoch);
	assert_int_equal(w.status.epoch, epoch + 1);
	assert_int_equal(w.status.epoch_seen, epoch + 1);
	plan_fixture_end(&w);
}

static void finished_index__whose_pod_is_deleted__does_not_run_again(void **state)
{
	struct plan_fixture w;

	start_running(&w, TWO);
	fail_pod(&w, "worker", 1, 0);
	run_plan(&w);
	remove_uid(&w, pod(&w, "worker", 1)->uid);
	assert_string_equal(run_plan(&w), "");
	remove_uid(&w, pod(&w, "worker", 0)->uid); /* this index has not finished */
	assert_string_equal(run_plan(&w), "+worker/0 ");
	plan_fixture_end(&w);
}

static void suspend__deletes_pods_and_resume_brings_them_back(void **state)
{
	struct plan_fixture w;

	start_running(&w, TWO);
	plan_fixture_edit(&w, TWO "  run: {suspend: true}\n");
	/* the ps stay while the workers save the variables on SIGTERM */
	assert_string_equal(run_plan(&w), "-worker/0 -worker/1 ");
	assert_int_equal(w.status.phase, JOB_SUSPENDED);
	assert_false(w.status.conditions[COND_SUSPENDED].status);
	assert_string_equal(w.status.conditions[COND_SUSPENDED].reason, "Saving");
	assert_string_equal(run_plan(&w), "-ps/0 ");
	assert_string_equal(run_plan(&w), "");
	assert_true(w.status.conditions[COND_SUSPENDED].status);
	assert_int_equal(w.n_pods, 0);
	plan_fixture_edit(&w, TWO);
	assert_string_equal(run_plan(&w), "+ps/0 ");
	assert_false(w.status.conditions[COND_SUSPENDED].status);
	plan_fixture_end(&w);
}

static void ended_job__is_cleaned_by_its_policy_and_deleted_after_its_ttl(void **state)
{
	struct plan_fixture w;

	start_running(&w, TWO "  run: {cleanPodPolicy: All, ttlSecondsAfterFinished: 100}\n");
	fail_pod(&w, "worker", 0, 0);
	run_plan(&w);
	assert_int_equal(w.status.phase, JOB_SUCCEEDED);
	assert_non_null(pod(&w, "worker", 1)); /* it may still end by itself */
	w.now = w.requeue_at;
	assert_string_equal(run_plan(&w), "!ps/0 ");
	w.now = w.requeue_at;
	run_plan(&w);
	assert_int_equal(w.n_pods, 0);
	run_plan(&w);
	assert_false(w.service);
	w.now = w.requeue_at;
	assert_string_equal(run_plan(&w), "gone ");
	plan_fixture_end(&w);
}

static void deadlines__fire_on_time(void **state)
{
	struct plan_fixture w;

	plan_fixture_start(&w, TWO "  run: {schedulingDeadlineSeconds: 50}\n");
	run_plan(&w);
	pod(&w, "ps", 0)->node = "n"; /* the node pulls its image */
	assert_string_equal(run_plan(&w), "");
	assert_true(w.requeue_at == w.now + 50);
	w.now = w.requeue_at;
	run_plan(&w);
	assert_string_equal(w.status.conditions[COND_FAILED].reason, "SchedulingDeadlineExceeded");
	plan_fixture_end(&w);
	start_running(&w, TWO "  run: {activeDeadlineSeconds: 60}\n");
	w.now += 60;
	run_plan(&w);
	assert_string_equal(w.status.conditions[COND_FAILED].reason, "DeadlineExceeded");
	plan_fixture_end(&w);
}

static void all_workers_policy__waits_for_the_last(void **state)
{
	struct plan_fixture w;

	start_running(&w, TWO "  run: {successPolicy: AllWorkers}\n");
	fail_pod(&w, "worker", 0, 0);
	run_plan(&w);
	assert_true(w.status.phase != JOB_SUCCEEDED);
	fail_pod(&w, "worker", 1, 0);
	run_plan(&w);
	assert_int_equal(w.status.phase, JOB_SUCCEEDED);
	plan_fixture_end(&w);
}

static void all_workers_policy__without_workers__does_not_succeed(void **state)
{
	struct plan_fixture w;

	start_running(&w, TWO "  run: {successPolicy: AllWorkers}\n");
	plan_fixture_edit(&w, HEAD "  tasks: {ps: {replicas: 1}, worker: {replicas: 0}}\n"
				   "  run: {successPolicy: AllWorkers}\n");
	run_plan(&w);
	run_plan(&w);
	assert_true(w.status.phase != JOB_SUCCEEDED);
	plan_fixture_end(&w);
}

/* The pods may already have the epoch of the first manifest. */
static void epoch__of_an_edit_before_the_first_status__is_a_new_one(void **state)
{
	struct plan_fixture w;

	plan_fixture_start(&w, TWO);
	w.spec->generation = 1;
	run_plan(&w);
	assert_int_equal(w.status.epoch, 1);
	job_status_fini(&w.status);
	w.status = (struct job_status){0};
	plan_fixture_edit(&w, HEAD "  tasks: {ps: {replicas: 1}, worker: {replicas: 3}}\n");
	w.spec->generation = 2;
	run_plan(&w);
	assert_int_equal(w.status.epoch, 2);
	plan_fixture_end(&w);
}

static const char *env_of(const struct plan_pod *p, const char *name)
{
	for (unsigned i = 0; i < p->n_env; i++)
		if (strcmp(p->env[i].name, name) == 0)
			return p->env[i].value;
	return "";
}

static void pods__carry_cluster_and_program(void **state)
{
	struct plan_fixture w;

	plan_fixture_start(
	    &w, HEAD "  tasks: {worker: {replicas: 1}, evaluator: {}}\n"
		     "  program: {command: [python, t.py], args: [-v], classicFlags: true}\n");
	run_plan(&w);
	const struct plan_pod *p = w.plan->actions[1].pod;
	assert_string_equal(p->name, "j-worker-0");
	assert_int_equal(p->role, ROLE_COMMAND);
	assert_string_equal(p->argv[2], "-v");
	assert_string_equal(p->argv[3], "--worker_hosts=j-worker-0.j.default.svc:2222");
	assert_string_equal(p->argv[5], "--task_index=0");
	assert_null(p->argv[6]);
	assert_string_equal(env_of(p, "TF_CONFIG"),
			    "{\"cluster\":{\"worker\":[\"j-worker-0.j.default.svc:2222\"]},"
			    "\"task\":{\"type\":\"worker\",\"index\":0}}");
	assert_string_equal(p->image, "task:1");
	plan_fixture_end(&w);
}

static void status__of_any_kind__is_restored_from_json(void **state)
{
	struct job_status s;

	status_parse(&s, "{\"phase\":7,\"conditions\":{\"x\":1},\"tasks\":[1],"
			 "\"indexStatuses\":[3,{\"task\":\"w\",\"index\":1e300}]}");
	assert_int_equal(s.phase, JOB_NEW);
	assert_int_equal(s.n_indexes, 1);
	job_status_fini(&s);
}

/* A status with all members set. */
static struct job_status full_status(void)
{
	struct job_status s = {.phase = JOB_RESTARTING,
			       .start_time = 1767268810,
			       .completion_time = 1767268999,
			       .restarts = 3,
			       .epoch = 4,
			       .epoch_seen = 2,
			       .observed_generation = 7,
			       .n_tasks = 2};
	struct index_status *e;

	snprintf(s.members, sizeof(s.members), "abc");
	snprintf(s.selector, sizeof(s.selector), "a=b,c=d");
	s.conditions[COND_READY] = (struct condition){.set = true,
						      .reason = "R",
						      .message = "a \"b\" \\ \n\x01 \xc3\xa9",
						      .since = 1767268811};
	s.conditions[COND_FAILED] = (struct condition){.set = true, .status = true, .reason = ""};
	s.tasks[0] = (struct task_status){"ps", 1, 2, 3, 4, 5, 0, ""};
	s.tasks[1] = (struct task_status){"worker", 6, 7, 8, 9, 10, 11, "cpu-avx2"};
	index_status_get_or_add(&s, "ps", 1)->done = true;
	e = index_status_get_or_add(&s, "worker", 0);
	e->failures = 1;
	e->attempts = 2;
	e->exit_code = 137;
	e->created = 1767268812;
	e->retry_at = 1767268813.25;
	e->uncounted = e->no_gpu = true;
	e->pending_departure_size = 5;
	e->departure_attempts = 6;
	snprintf(e->reason, sizeof(e->reason), "OOMKilled");
	snprintf(e->node, sizeof(e->node), "n1");
	snprintf(e->uid, sizeof(e->uid), "u1");
	s.security =
	    (struct security_status){mu_xstrdup("sec"), 1767268814, 1767268815, 1767268816};
	return s;
}

static void status__written_and_read_back__is_equal(void **state)
{
	struct job_status full = full_status(), empty = {0}, *const cases[] = {&full, &empty};

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		MU_AUTO_BUF text = {0};
		MU_AUTO_BUF again = {0};
		struct job_status back;

		status_print(cases[i], &text);
		status_parse(&back, text.data);
		status_print(&back, &again);
		assert_string_equal(text.data, again.data);
		assert_int_equal(back.n_indexes, cases[i]->n_indexes);
		assert_memory_equal(back.tasks, cases[i]->tasks, sizeof(back.tasks));
		assert_memory_equal(back.conditions, cases[i]->conditions, sizeof(back.conditions));
		for (unsigned k = 0; k < back.n_indexes; k++)
			assert_memory_equal(&back.indexes[k], &cases[i]->indexes[k],
					    sizeof(back.indexes[k]));
		assert_true(back.start_time == cases[i]->start_time &&
			    back.completion_time == cases[i]->completion_time &&
			    back.security.ca_added_at == cases[i]->security.ca_added_at);
		assert_int_equal(back.phase, cases[i]->phase);
		job_status_fini(&back);
	}
	job_status_fini(&full);
}

/* The limit bounds memory: all pods of a plan are in memory together. */
static void plan__with_a_limit_of_creates__has_no_more(void **state)
{
	static const struct {
		const char *gang;
		unsigned creates;
	} cases[] = {{"none", 100}, {"volcano", 300}};

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		const struct plan_options options = {.image = "task:1", .creates_max = 100};
		struct observed_job observed = {.service = true, .group = 300};
		MU_AUTO_FREE char *text = mu_xasprintf(
		    HEAD "  tasks: {worker: {replicas: 300}}\n  run: {gang: %s}\n", cases[i].gang);
		struct job_plan *plan;
		struct job_spec *spec;

		assert_ok(job_spec_parse(&spec, mu_span_of(text), "j.yaml", &err), &err);
		plan = job_plan_new(spec, &options, &observed, 1700000000);
		assert_int_equal(plan->n_actions, cases[i].creates);
		job_plan_free(plan);
		job_spec_free(spec);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(status__written_and_read_back__is_equal),
	    cmocka_unit_test(
		job__from_start_to_end__starts_the_ps_first_and_succeeds_with_its_chief),
	    cmocka_unit_test(ps__that_ends_after_the_chief__is_not_a_failure),
	    cmocka_unit_test(worker__ended_by_its_deletion__is_not_recorded),
	    cmocka_unit_test(worker__evicted_and_ended_with_0__is_not_done),
	    cmocka_unit_test(worker__whose_earlier_pod_appears_in_a_stale_list__is_counted_once),
	    cmocka_unit_test(worker__stuck_on_a_lost_node__is_replaced_without_a_failure),
	    cmocka_unit_test(worker__killed__runs_again_after_its_backoff),
	    cmocka_unit_test(worker__with_a_permanent_exit_code__fails_the_job),
	    cmocka_unit_test(worker__evicted__has_no_backoff),
	    cmocka_unit_test(restart_policy__that_is_edited__does_not_apply_to_earlier_ends),
	    cmocka_unit_test(failures__beyond_the_limit__fail_the_job),
	    cmocka_unit_test(ps__that_fails_while_workers_run__is_restarted_alone),
	    cmocka_unit_test(worker__restarted_and_now_ending__is_not_restarting),
	    cmocka_unit_test(replicas__changed__add_and_remove_workers_only),
	    cmocka_unit_test(epoch_seen__is_set_when_the_last_task_has_the_epoch),
	    cmocka_unit_test(epoch__of_departing_or_non_member_tasks__is_not_waited_for),
	    cmocka_unit_test(finished_index__whose_pod_is_deleted__does_not_run_again),
	    cmocka_unit_test(suspend__deletes_pods_and_resume_brings_them_back),
	    cmocka_unit_test(ended_job__is_cleaned_by_its_policy_and_deleted_after_its_ttl),
	    cmocka_unit_test(deadlines__fire_on_time),
	    cmocka_unit_test(all_workers_policy__waits_for_the_last),
	    cmocka_unit_test(all_workers_policy__without_workers__does_not_succeed),
	    cmocka_unit_test(epoch__of_an_edit_before_the_first_status__is_a_new_one),
	    cmocka_unit_test(pods__carry_cluster_and_program),
	    cmocka_unit_test(status__of_any_kind__is_restored_from_json),
	    cmocka_unit_test(plan__with_a_limit_of_creates__has_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
