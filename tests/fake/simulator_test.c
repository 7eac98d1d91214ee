/* SPDX-License-Identifier: Apache-2.0 */
/* The complete controller in a simulated cluster, with schedules drawn from seeds. Faults: crashes
 * before, between and after any two calls, stale lists, lost responses, delayed or duplicate
 * events, every API error, and clock steps. A second operator may become leader at any time. Each
 * faulty run ends as the run without faults does and violates no invariant (sim_cluster.c). Then
 * nothing more is written.
 *
 * 	SIM_SCHEDULES=100000   number of schedules (700)
 * 	SIM_FIRST=5000         first seed (1)
 * 	SIM_WORKERS=2          number of processes (1)
 * 	SIM_SEED=17            only this seed; SIM_TRACE=1 prints its events
 *
 * sim_scenario.c has the table of the scenarios.
 */
#include "tests/test.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "tests/fake/sim.h"

#include "tests/fake/sim_cluster.c"
#include "tests/fake/sim_kubelet.c"
#include "tests/fake/sim_membership.c"
#include "tests/fake/sim_run.c"
#include "tests/fake/sim_scenario.c"
#include "tests/fake/sim_secret.c"

#define JOB_PATH "/apis/muster.dev/v1/namespaces/default/distributedtrainingjobs/j"

static const cJSON *condition(const cJSON *o, const char *type)
{
	const cJSON *c;

	cJSON_ArrayForEach(
	    c, sim_at(o, "status.conditions")) if (strcmp(sim_text(c, "type"), type) == 0) return c;
	return NULL;
}

/* ps tasks run until they are asked to finish; other tasks are not cluster members. */
static bool is_counted(const char *task)
{
	return strcmp(task, "ps") != 0 && strcmp(task, "evaluator") != 0 &&
	       strcmp(task, JOB_TENSORBOARD) != 0;
}

/* Describes how an index ended, if that decided the job. */
static void describe_index(const cJSON *job, const struct sim_script *script, const char *task,
			   int index, struct mu_buf *out)
{
	bool chief_decides = strcmp(sim_text(job, "spec.run.successPolicy"), "Chief") == 0, done;
	const cJSON *e = record_of(job, task, index, &done), *failures = sim_at(e, "failures");
	bool decides =
	    condition(job, "Succeeded") &&
	    (!chief_decides || strcmp(task, "chief") == 0 ||
	     (!sim_at(job, "spec.tasks.chief") && strcmp(task, "worker") == 0 && !index));

	if ((!e && !done) || !is_counted(task) || !decides || has_user_action(script, USER_SCALE))
		return;
	/* A failure in the second of the pod's deletion may not be counted. The same holds for a
	 * pod deleted because its last known state was a wait for a GPU. */
	if (has_user_action(script, USER_SUSPEND) || has_user_action(script, USER_RECREATE_JOB) ||
	    script->gpus)
		failures = NULL;
	mu_buf_printf(out, ", %s/%d failures %d%s", task, index, failures ? failures->valueint : 0,
		      done || cJSON_IsTrue(sim_at(e, "done")) ? " done" : "");
}

/* A killed task that may not be restarted fails a job that would otherwise run to its deadline.
 * This does not hold if the task is scaled away, the job is suspended, or the deadline passes
 * before the end is seen. Which pod exists at the time of the kill also varies. */
static bool ended_by_killed_task(const struct sim *s, const cJSON *job)
{
	const cJSON *failed = condition(job, "Failed");
	size_t n = strlen(s->killed);

	return s->script.end == never_exits && n &&
	       strcmp(sim_text(failed, "reason"), "TaskFailed") == 0 &&
	       strncmp(sim_text(failed, "message"), s->killed, n) == 0;
}

static bool has_run(const struct sim *s)
{
	for (int i = 0; i < s->n_events; i++)
		if (s->events[i].kind == SIM_JOB &&
		    strcmp(sim_text(s->events[i].json, "status.phase"), "Running") == 0)
			return true;
	return false;
}

/* The end state as text, with only those parts that do not depend on timing.  n_others: the
 * number of policies and groups at the end without faults; set by that run. */
static void describe_end(struct sim *s, const struct sim_script *script, bool faulty, int *n_others,
			 struct mu_buf *out)
{
	struct sim_object *o = sim_find(s, JOB_PATH);
	const cJSON *e;
	int live = 0, services = 0, pods = 0, others = 0, all = 0;
	const char *clean, *reason;
	bool late;

	for (int i = 0; i < s->n_objects; i++) {
		const struct sim_object *x = &s->objects[i];

		all += *owner_of(x->json) != 0;
		if (!*owner_of(x->json) || strstr(x->path, JOB_TENSORBOARD) ||
		    strstr(x->path, "/secrets/"))
			continue;
		pods += x->kind == SIM_POD;
		live += x->kind == SIM_POD && x->stage != STAGE_OVER;
		others += x->kind == SIM_OTHER;
		services += x->kind == SIM_SERVICE;
	}
	if (!o) {
		mu_buf_printf(out, "no job, %d objects", all);
		return;
	}
	clean = sim_text(o->json, "spec.run.cleanPodPolicy");
	e = condition(o->json, "Failed");
	reason = e ? sim_text(e, "reason") : "";
	late = strstr(reason, "DeadlineExceeded");
	/* The objects of a new job may have to wait for other pods, or be rejected. If a task fails
	 * or the deadline passes before (the clock may be set forward), they are not created. */
	if (faulty && *reason && !services && strcmp(clean, "All") != 0 && !has_run(s))
		services = 1;
	if (faulty && *reason && !others && !has_run(s))
		others = *n_others;
	if (!faulty)
		*n_others = others;
	late = late || ended_by_killed_task(s, o->json);
	mu_buf_printf(out, "%s %s", sim_text(o->json, "status.phase"),
		      late ? "at a deadline" : reason);
	/* otherwise they may be missing at the end */
	if (!script->taken_name && !s->lost_owned && !has_user_action(script, USER_RECREATE_JOB))
		mu_buf_printf(out, ", services %d, others %d", services, others);
	if (strcmp(clean, "None") != 0)
		mu_buf_printf(out, ", live %d", live);
	if (strcmp(clean, "All") == 0)
		mu_buf_printf(out, ", pods %d", pods);
	cJSON_ArrayForEach(e, sim_at(o->json, "status.tasks"))
	{
		for (int index = 0; index < SIM_WORKERS_MAX; index++)
			describe_index(o->json, script, e->string, index, out);
	}
}

static bool has_ended(struct sim *s)
{
	const struct sim_object *o = sim_find(s, JOB_PATH);
	const char *phase = o ? sim_text(o->json, "status.phase") : "Succeeded";

	return strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0;
}

/* Every scenario ends, unless a pod may wait for a GPU forever. */
static void check_end(struct sim *s)
{
	const struct sim_object *o = sim_find(s, JOB_PATH);
	const cJSON *failed = o ? condition(o->json, "Failed") : NULL;

	if (!s->script.gpus_taken && !has_ended(s))
		sim_violation(s, "the job stands still, %s", sim_text(o->json, "status.phase"));
	if (s->script.broken_gpus && s->script.end == exits_until_success &&
	    strstr(sim_text(failed, "message"), "exit code 3"))
		sim_violation(s, "a GPU that does not work failed the job: %s",
			      sim_text(failed, "message"));
	if (strcmp(sim_text(failed, "reason"), PLAN_INVALID_SPEC) == 0)
		sim_violation(s, "%s", sim_text(failed, "message"));
}

/* Results of one worker process. */
struct tally {
	uint64_t schedules, crashes, splits, epochs_acked;
	int bad;
};

/* Reconciles everything again, also from a new list: nothing may be written. */
static void check_quiescence(struct sim *s)
{
	struct store *store;
	int before;

	if (s->violation[0] || (s->script.cert_life && !has_ended(s)))
		return;
	before = s->writes;
	store = &s->leader->controller.store;
	store_requeue_all(store);
	sim_settle(s, 600);
	if (s->writes != before)
		sim_violation(s, "%d writes at rest", s->writes - before);
	before = s->writes;
	sim_restart(s);
	sim_settle(s, 600);
	if (s->writes != before)
		sim_violation(s, "%d writes after a restart at rest", s->writes - before);
}

/* The end of the scenario without faults, shared by several schedules. */
struct scenario {
	struct sim_script script;
	struct mu_buf end;
	int others; /* policies and groups at that end */
	bool violation;
};

static void scenario_fini(struct scenario *y)
{
	cJSON_Delete(y->script.job);
	mu_buf_fini(&y->end);
	memset(y, 0, sizeof(*y));
}

static void run_without_faults(struct scenario *y, uint64_t seed)
{
	struct sim *s = MU_NEW(struct sim);

	scenario_fini(y);
	y->script = script_of(seed);
	sim_start(s, &y->script, mix(seed, 100), false);
	sim_run(s);
	check_end(s);
	describe_end(s, &y->script, false, &y->others, &y->end);
	y->violation = s->violation[0];
	if (y->violation)
		print_message("without faults: %s\n", s->violation);
	sim_end(s);
	free(s);
}

static int run_schedule(const struct scenario *y, uint64_t seed, struct tally *t)
{
	MU_AUTO_BUF got = {0};
	struct sim *s = MU_NEW(struct sim);
	int rc = 0, others = y->others;

	if (getenv("SIM_TRACE"))
		fprintf(stderr, "---- with faults ----\n");
	sim_start(s, &y->script, mix(seed, 101), true);
	sim_run(s);
	check_end(s);
	check_quiescence(s);
	describe_end(s, &y->script, true, &others, &got);
	if (!s->violation[0] && strcmp(y->end.data, got.data) != 0)
		sim_violation(s, "ends as '%s', without faults as '%s'", got.data, y->end.data);
	if (s->violation[0] || y->violation) {
		print_message("SIM_SEED=%llu %s\n", (unsigned long long)seed, s->violation);
		rc = -1;
	}
	t->crashes += (uint64_t)s->crashes;
	t->splits += (uint64_t)s->splits;
	t->epochs_acked += (uint64_t)s->epochs_acked;
	sim_end(s);
	free(s);
	return rc;
}

enum { BAD_MAX = 5, WORKERS_MAX = 64, SCHEDULES_PER_SCENARIO = 4 };

/* Several consecutive schedules put faults into the same scenario. */
static void run_schedules(uint64_t from, uint64_t until, struct tally *t)
{
	struct scenario y = {0};
	uint64_t current_scenario = UINT64_MAX;

	for (uint64_t seed = from; seed < until && t->bad < BAD_MAX; seed++) {
		if (current_scenario != seed / SCHEDULES_PER_SCENARIO)
			run_without_faults(&y, current_scenario = seed / SCHEDULES_PER_SCENARIO);
		t->bad += run_schedule(&y, seed, t) < 0;
		t->schedules++;
	}
	scenario_fini(&y);
}

static uint64_t number(const char *name, uint64_t default_value)
{
	const char *text = getenv(name);
	return text && *text ? strtoull(text, NULL, 10) : default_value;
}

/* Runs in several processes, so that a crash ends only one of them. */
static void run_forked(uint64_t first, uint64_t n, unsigned workers, struct tally *all)
{
	pid_t pids[WORKERS_MAX];
	struct tally *t = mmap(NULL, WORKERS_MAX * sizeof(*t), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_true(t != MAP_FAILED);
	for (unsigned i = 0; i < workers; i++) {
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (pids[i] == 0) {
			run_schedules(first + n * i / workers, first + n * (i + 1) / workers,
				      &t[i]);
			fflush(stdout);
			_exit(0);
		}
	}
	for (unsigned i = 0; i < workers; i++) {
		int status = 0;
		waitpid(pids[i], &status, 0);
		if (status != 0)
			print_message(
			    "worker %u died in SIM_SEED=%llu\n", i,
			    (unsigned long long)(first + n * i / workers + t[i].schedules));
		all->bad += t[i].bad + (status != 0);
		all->schedules += t[i].schedules;
		all->crashes += t[i].crashes;
		all->splits += t[i].splits;
		all->epochs_acked += t[i].epochs_acked;
	}
	munmap(t, WORKERS_MAX * sizeof(*t));
}

static void schedules__with_faults__end_as_without_faults(void **state)
{
	uint64_t one = number("SIM_SEED", 0), n = number("SIM_SCHEDULES", 700);
	uint64_t workers = number("SIM_WORKERS", 1), first = number("SIM_FIRST", 1);
	struct tally all = {0};

	if (one)
		run_schedules(one, one + 1, &all);
	else if (workers > 1)
		run_forked(first, n, workers < WORKERS_MAX ? (unsigned)workers : WORKERS_MAX, &all);
	else
		run_schedules(first, first + n, &all);
	print_message(
	    "%llu schedules, %llu crashes, %llu changes of the leader, %llu epochs seen\n",
	    (unsigned long long)all.schedules, (unsigned long long)all.crashes,
	    (unsigned long long)all.splits, (unsigned long long)all.epochs_acked);
	assert_int_equal(all.bad, 0);
	assert_true(one || n < 100 || (all.crashes && all.splits && all.epochs_acked));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(schedules__with_faults__end_as_without_faults),
	};

	mu_log_set_level(getenv("SIM_TRACE") ? MU_DEBUG : MU_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
