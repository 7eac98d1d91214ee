/* SPDX-License-Identifier: Apache-2.0 */
/* The whole controller in a simulated cluster, by schedules drawn from seeds: crashes before,
 * between and after any two calls, old lists, lost answers, events that come late or twice, every
 * refusal, clocks that step, and a second operator that takes the lead in the middle of
 * anything.  Each disturbed run ends as the undisturbed one does, breaks no rule
 * on the way (sim_cluster.c), and then nothing more is written.
 *
 *	SIM_SCHEDULES=100000   how many (700)
 *	SIM_WORKERS=2          in so many processes (1)
 *	SIM_SEED=17            this one only; SIM_TRACE=1 says what happens in it
 */
#include "tests/test.h"

#include <malloc.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "tests/fake/sim.h"

#include "tests/fake/sim_cluster.c"
#include "tests/fake/sim_kubelet.c"
#include "tests/fake/sim_notice.c"
#include "tests/fake/sim_run.c"
#include "tests/fake/sim_secret.c"

static uint64_t mix(uint64_t a, uint64_t b)
{
	uint64_t z = a * 0x9e3779b97f4a7c15u + b * 0xbf58476d1ce4e5b9u + 1;

	z = (z ^ (z >> 31)) * 0x94d049bb133111ebu;
	return z ^ (z >> 29);
}

/* A few ends that may be repeated, then the right one. */
static int ends_well(const struct sim_script *s, const char *task, int index, int n)
{
	uint64_t r = mix(s->seed, (uint64_t)index * 16 + (uint64_t)n + (task[0] == 'c' ? 8192 : 0));

	if (strcmp(task, "ps") == 0)
		return -1;
	return n < 2 && r % 3 == 0 ? 137 : 0;
}

/* worker/1 ends with the program's own error; the chief goes on until then. */
static int ends_badly(const struct sim_script *s, const char *task, int index, int n)
{
	return strcmp(task, "worker") == 0 && index == 1 ? (n < (int)(s->seed % 3) ? 137 : 3) : -1;
}

static int fails_always(const struct sim_script *s, const char *task, int index, int n)
{
	return strcmp(task, "worker") == 0 && index == 1 ? 137 : -1;
}

static cJSON *job(const struct sim_script *s, int ps, int workers, bool chief, bool policy,
		  const char *run)
{
	MU_AUTO_FREE char *text = mu_xasprintf(
	    "{\"apiVersion\":\"muster.dev/v1\",\"kind\":\"DistributedTrainingJob\",\"metadata\":{"
	    "\"name\":\"j\",\"namespace\":\"default\",\"generation\":1},\"spec\":{%s,"
	    "\"tasks\":{\"ps\":{\"replicas\":%d},%s\"worker\":{\"replicas\":"
	    "%d%s}},\"security\":{\"mtls\":false,\"networkPolicy\":%s},\"run\":{%s}}}",
	    s->in_step ? "\"mode\":\"sync\",\"program\":{\"train\":{\"model\":\"mlp\",\"dataset\":{"
			 "\"format\":\"csv\",\"path\":\"x\"}}}"
		       : "\"program\":{\"command\":[\"x\"]}",
	    ps, chief ? "\"chief\":{\"replicas\":1}," : "", workers,
	    s->gpus ? ",\"kernels\":\"prefer-gpu\"" : "", policy ? "true" : "false", run);
	cJSON *o = cJSON_Parse(text);

	assert_non_null(o);
	return o;
}

static struct sim_script script_of(uint64_t seed)
{
	static const char *const clean[] = {"None", "Running", "All"};
	static const char *const gangs[] = {"", "", ",\"gang\":\"volcano\"",
					    ",\"gang\":\"kueue\",\"queue\":\"q\""};
	static int (*const ends[])(const struct sim_script *, const char *, int, int) = {
	    ends_well, ends_well, ends_well, ends_badly, fails_always};
	struct sim_script s = {.seed = seed, .end = ends[mix(seed, 1) % MU_COUNT(ends)]};
	int workers = s.end == ends_well ? 1 + (int)(mix(seed, 2) % 3) : 2;
	MU_AUTO_FREE char *run = mu_xasprintf(
	    "\"backoffLimit\":%d,\"cleanPodPolicy\":\"%s\",\"successPolicy\":\"%s\"%s",
	    s.end == fails_always ? 2 : 100, clean[mix(seed, 3) % 3],
	    mix(seed, 4) % 2 ? "AllWorkers" : "Chief", gangs[mix(seed, 21) % MU_COUNT(gangs)]);
	unsigned n = 0;

	s.in_step = mix(seed, 23) % 3 == 0;
	s.gpus = mix(seed, 28) % 4 == 0;
	s.taken = s.gpus && mix(seed, 29) % 2;
	s.job = job(&s, (int)(mix(seed, 5) % 3), workers, mix(seed, 6) % 3 == 0, mix(seed, 22) % 2,
		    run);
	if (mix(seed, 7) % 4 == 0) {
		double at = 1 + (double)(mix(seed, 8) % 30);
		s.deeds[n].deed = DEED_SUSPEND;
		s.deeds[n++].at = at;
		s.deeds[n].deed = DEED_RESUME;
		s.deeds[n++].at = at + 10;
	}
	if (mix(seed, 9) % 4 == 0) {
		s.deeds[n].deed = DEED_DELETE_POD;
		s.deeds[n].value = (int)(mix(seed, 10) % 4);
		s.deeds[n++].at = 1 + (double)(mix(seed, 11) % 30);
	}
	if (mix(seed, 12) % 4 == 0) {
		s.deeds[n].deed = DEED_EVICT;
		s.deeds[n].value = (int)(mix(seed, 13) % 4);
		s.deeds[n++].at = 5 + (double)(mix(seed, 14) % 30);
	}
	if (s.end == ends_well && mix(seed, 15) % 4 == 0) {
		s.deeds[n].deed = DEED_SCALE;
		double at = 1 + (double)(mix(seed, 16) % 20);
		bool down = workers > 1 && mix(seed, 24) % 2;

		s.deeds[n].value = down ? workers - 1 : workers + 1;
		s.deeds[n++].at = at;
		if (down && mix(seed, 25) % 2) { /* killed just before, or just after */
			bool by_hand = mix(seed, 30) % 2;

			s.deeds[n].deed = by_hand ? DEED_FORCE_DELETE : DEED_KILL;
			s.deeds[n].value = by_hand ? workers - 1 : (int)(mix(seed, 26) % 4);
			s.deeds[n++].at = at - 0.5 + (double)(mix(seed, 27) % 10) / 10;
		}
	}
	if (mix(seed, 19) % 8 == 0) {
		s.deeds[n].deed = DEED_NODE_LOST;
		s.deeds[n++].at = 1 + (double)(mix(seed, 20) % 60);
	}
	if (mix(seed, 17) % 20 == 0) {
		s.deeds[n].deed = DEED_DELETE_JOB;
		s.deeds[n++].at = 1 + (double)(mix(seed, 18) % 30);
	}
	return s;
}

static const cJSON *condition(const cJSON *o, const char *type)
{
	const cJSON *c;

	cJSON_ArrayForEach(
	    c, sim_at(o, "status.conditions")) if (strcmp(sim_text(c, "type"), type) == 0) return c;
	return NULL;
}

static bool has_deed(const struct sim_script *s, enum sim_deed deed)
{
	for (int i = 0; i < SIM_DEEDS; i++)
		if (s->deeds[i].deed == deed)
			return true;
	return false;
}

/* How an index ended, when that decided the job. */
static void describe_index(const cJSON *job, const struct sim_script *script, const char *task,
			   int index, struct mu_buf *out)
{
	bool chief_decides = strcmp(sim_text(job, "spec.run.successPolicy"), "Chief") == 0, done;
	const cJSON *e = record_of(job, task, index, &done), *failures = sim_at(e, "failures");
	bool decides =
	    condition(job, "Succeeded") &&
	    (!chief_decides || strcmp(task, "chief") == 0 ||
	     (!sim_at(job, "spec.tasks.chief") && strcmp(task, "worker") == 0 && !index));

	if ((!e && !done) || strcmp(task, "ps") == 0 || !decides || has_deed(script, DEED_SCALE))
		return;
	/* a pod that failed in the second of its deletion may not be counted, nor one that was
	 * deleted because the last that was heard of it was that it waits for a GPU */
	if (has_deed(script, DEED_SUSPEND) || script->gpus)
		failures = NULL;
	mu_buf_printf(out, ", %s/%d failures %d%s", task, index, failures ? failures->valueint : 0,
		      done || cJSON_IsTrue(sim_at(e, "done")) ? " done" : "");
}

/* What the end state says, as text; only of what does not depend on who was faster. */
static void describe_end(struct sim *s, const struct sim_script *script, struct mu_buf *out)
{
	struct sim_object *o =
	    sim_find(s, "/apis/muster.dev/v1/namespaces/default/distributedtrainingjobs/j");
	const cJSON *e;
	int live = 0, services = 0, pods = 0, others = 0;
	const char *clean;

	for (int i = 0; i < s->n_objects; i++) {
		bool ours =
		    strncmp(sim_text(cJSON_GetArrayItem(
					 sim_at(s->objects[i].json, "metadata.ownerReferences"), 0),
				     "uid"),
			    "uid", 3) == 0;
		pods += ours && s->objects[i].kind == SIM_POD;
		live += ours && s->objects[i].kind == SIM_POD && s->objects[i].stage != STAGE_OVER;
		others += ours && s->objects[i].kind == SIM_OTHER;
		services += ours && s->objects[i].kind == SIM_SERVICE;
	}
	if (!o) {
		mu_buf_printf(out, "no job, %d objects", pods + services + others);
		return;
	}
	clean = sim_text(o->json, "spec.run.cleanPodPolicy");
	e = condition(o->json, "Failed");
	mu_buf_printf(out, "%s%s%s, services %d, others %d", sim_text(o->json, "status.phase"),
		      e ? " " : "", e ? sim_text(e, "reason") : "", services, others);
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

/* Every story has an end, unless somebody may wait for a GPU for ever. */
static void check_end(struct sim *s)
{
	struct sim_object *o =
	    sim_find(s, "/apis/muster.dev/v1/namespaces/default/distributedtrainingjobs/j");
	const char *phase = o ? sim_text(o->json, "status.phase") : "Succeeded";

	if (!s->script.taken && strcmp(phase, "Succeeded") != 0 && strcmp(phase, "Failed") != 0)
		sim_break(s, "the job stands still, %s", phase);
}

/* What one worker has done. */
struct tally {
	uint64_t schedules, crashes, splits, notices, together;
	int bad;
};

/* Looks at everything again, from a new list too: nothing may be written. */
static void check_rest(struct sim *s)
{
	struct cache *cache;
	int before;

	if (s->broken[0])
		return;
	before = s->writes;
	cache = &s->leader->control.cache;
	cache_each_key(cache, cache->changed, cache->arg);
	sim_settle(s, 600);
	if (s->writes != before)
		sim_break(s, "%d writes at rest", s->writes - before);
	before = s->writes;
	sim_restart(s);
	sim_settle(s, 600);
	if (s->writes != before)
		sim_break(s, "%d writes after a restart at rest", s->writes - before);
}

/* How the story ends when nothing goes wrong, kept for the schedules that share it. */
struct story {
	struct sim_script script;
	struct mu_buf end;
	bool broken;
};

static void story_fini(struct story *y)
{
	cJSON_Delete(y->script.job);
	mu_buf_fini(&y->end);
	memset(y, 0, sizeof(*y));
}

static void tell_story(struct story *y, uint64_t seed)
{
	struct sim *s = MU_NEW(struct sim);

	story_fini(y);
	y->script = script_of(seed);
	sim_start(s, &y->script, mix(seed, 100), false);
	sim_run(s);
	check_end(s);
	describe_end(s, &y->script, &y->end);
	y->broken = s->broken[0];
	if (y->broken)
		print_message("undisturbed: %s\n", s->broken);
	sim_end(s);
	free(s);
}

static int run_schedule(const struct story *y, uint64_t seed, struct tally *t)
{
	MU_AUTO_BUF got = {0};
	struct sim *s = MU_NEW(struct sim);
	int rc = 0;

	if (getenv("SIM_TRACE"))
		fprintf(stderr, "---- disturbed ----\n");
	sim_start(s, &y->script, mix(seed, 101), true);
	sim_run(s);
	check_end(s);
	check_rest(s);
	describe_end(s, &y->script, &got);
	if (!s->broken[0] && strcmp(y->end.data, got.data) != 0)
		sim_break(s, "ends as '%s', undisturbed as '%s'", got.data, y->end.data);
	if (s->broken[0] || y->broken) {
		print_message("SEED=%llu %s\n", (unsigned long long)seed, s->broken);
		rc = -1;
	}
	t->crashes += (uint64_t)s->crashes;
	t->splits += (uint64_t)s->splits;
	t->together += (uint64_t)s->together;
	t->notices += (uint64_t)s->notices;
	sim_end(s);
	free(s);
	return rc;
}

enum { BAD_MAX = 5, WORKERS_MAX = 64, SCHEDULES_A_STORY = 4 };

/* A few schedules in a row are disturbances of one story. */
static void run_schedules(uint64_t from, uint64_t until, struct tally *t)
{
	struct story y = {0};
	uint64_t told = UINT64_MAX;

	for (uint64_t seed = from; seed < until && t->bad < BAD_MAX; seed++) {
		if (told != seed / SCHEDULES_A_STORY)
			tell_story(&y, told = seed / SCHEDULES_A_STORY);
		t->bad += run_schedule(&y, seed, t) < 0;
		t->schedules++;
	}
	story_fini(&y);
}

static uint64_t number(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);
	return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

/* In so many processes: each has a cluster of its own, and a crash ends only one. */
static void run_forked(uint64_t n, unsigned workers, struct tally *all)
{
	pid_t pids[WORKERS_MAX];
	struct tally *t = mmap(NULL, WORKERS_MAX * sizeof(*t), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_true(t != MAP_FAILED);
	for (unsigned i = 0; i < workers; i++) {
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (pids[i] == 0) {
			run_schedules(1 + n * i / workers, 1 + n * (i + 1) / workers, &t[i]);
			fflush(stdout);
			_exit(0);
		}
	}
	for (unsigned i = 0; i < workers; i++) {
		int status = 0;
		waitpid(pids[i], &status, 0);
		if (status != 0)
			print_message("worker %u died in SEED=%llu\n", i,
				      (unsigned long long)(1 + n * i / workers + t[i].schedules));
		all->bad += t[i].bad + (status != 0);
		all->schedules += t[i].schedules;
		all->crashes += t[i].crashes;
		all->splits += t[i].splits;
		all->together += t[i].together;
		all->notices += t[i].notices;
	}
	munmap(t, WORKERS_MAX * sizeof(*t));
}

static void schedules__whatever_goes_wrong__end_as_undisturbed(void **state)
{
	uint64_t one = number("SIM_SEED", 0), n = number("SIM_SCHEDULES", 700);
	uint64_t workers = number("SIM_WORKERS", 1);
	struct tally all = {0};

	if (one)
		run_schedules(one, one + 1, &all);
	else if (workers > 1)
		run_forked(n, workers < WORKERS_MAX ? (unsigned)workers : WORKERS_MAX, &all);
	else
		run_schedules(1, n + 1, &all);
	print_message(
	    "%llu schedules, %llu crashes, %llu changes of the leader, %llu epochs seen\n",
	    (unsigned long long)all.schedules, (unsigned long long)all.crashes,
	    (unsigned long long)all.splits, (unsigned long long)all.notices);
	assert_int_equal(all.bad, 0);
	assert_true(one || n < 100 || (all.crashes && all.splits && all.notices && all.together));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(schedules__whatever_goes_wrong__end_as_undisturbed),
	};

	/* joining all small free pieces before each large one took a tenth of the time */
	mallopt(M_MXFAST, 0);
	mu_log_set_level(getenv("SIM_TRACE") ? MU_DEBUG : MU_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
