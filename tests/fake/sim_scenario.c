/* SPDX-License-Identifier: Apache-2.0 */
/* The scenarios of the simulator: the spec of a job, the exits of its tasks and the actions of
 * users. A seed selects each feature independently, so that all combinations occur.
 *
 * SIM_FEATURE=quota: only scenarios with this feature.
 */
#include "tests/fake/sim.h"

static uint64_t mix(uint64_t a, uint64_t b)
{
	uint64_t z = a * 0x9e3779b97f4a7c15u + b * 0xbf58476d1ce4e5b9u + 1;

	z = (z ^ (z >> 31)) * 0x94d049bb133111ebu;
	return z ^ (z >> 29);
}

/* ---- exit codes of tasks ---- */

/* Some retryable exits, then the final one. */
static int exits_until_success(const struct sim_script *s, const char *task, int index, int n)
{
	uint64_t r = mix(s->seed, (uint64_t)index * 16 + (uint64_t)n + (task[0] == 'c' ? 8192 : 0));

	if (strcmp(task, "ps") == 0 || strcmp(task, JOB_TENSORBOARD) == 0)
		return -1;
	return n < 2 && r % 3 == 0 ? 137 : 0;
}

/* worker/1 ends with a permanent error; the chief runs until then. */
static int worker_1_fails(const struct sim_script *s, const char *task, int index, int n)
{
	return strcmp(task, "worker") == 0 && index == 1 ? (n < (int)(s->seed % 3) ? 137 : 3) : -1;
}

static int always_fails(const struct sim_script *s, const char *task, int index, int n)
{
	return strcmp(task, "worker") == 0 && index == 1 ? 137 : -1;
}

static int never_exits(const struct sim_script *s, const char *task, int index, int n)
{
	return -1;
}

/* ---- script fields ---- */

static cJSON *map_of(cJSON *object, const char *key)
{
	cJSON *map = cJSON_GetObjectItemCaseSensitive(object, key);

	return map ? map : cJSON_AddObjectToObject(object, key);
}

static cJSON *spec_of(struct sim_script *s)
{
	return map_of(s->job, "spec");
}

static cJSON *run_of(struct sim_script *s)
{
	return map_of(spec_of(s), "run");
}

static cJSON *task_of(struct sim_script *s, const char *name)
{
	return map_of(map_of(spec_of(s), "tasks"), name);
}

static void put_text(cJSON *map, const char *key, const char *value)
{
	cJSON_DeleteItemFromObjectCaseSensitive(map, key);
	cJSON_AddStringToObject(map, key, value);
}

static void put_number(cJSON *map, const char *key, uint64_t value)
{
	cJSON_DeleteItemFromObjectCaseSensitive(map, key);
	cJSON_AddNumberToObject(map, key, (double)value);
}

static void put_program(struct sim_script *s, const char *program)
{
	cJSON_DeleteItemFromObjectCaseSensitive(spec_of(s), "program");
	cJSON_AddItemToObject(spec_of(s), "program", cJSON_Parse(program));
}

static void add_user_action(struct sim_script *s, enum sim_user_action action, double at, int value)
{
	for (int i = 0; i < SIM_USER_ACTIONS; i++)
		if (!s->user_actions[i].action) {
			s->user_actions[i].action = action;
			s->user_actions[i].at = at;
			s->user_actions[i].value = value;
			return;
		}
	abort();
}

static bool has_user_action(const struct sim_script *s, enum sim_user_action action)
{
	for (int i = 0; i < SIM_USER_ACTIONS; i++)
		if (s->user_actions[i].action == action)
			return true;
	return false;
}

/* ---- features; r is a new random number for each ---- */

static void set_sync_mode(struct sim_script *s, uint64_t r)
{
	s->in_step = true;
	if (sim_at(s->job, "spec.tasks.ps.replicas")->valueint == 0)
		put_number(task_of(s, "ps"), "replicas", 1); /* the trainer needs one */
	put_text(spec_of(s), "mode", "sync");
	put_program(
	    s, "{\"train\":{\"model\":\"mlp\",\"dataset\":{\"format\":\"csv\",\"path\":\"x\"}}}");
}

static void add_chief(struct sim_script *s, uint64_t r)
{
	put_number(task_of(s, "chief"), "replicas", 1);
}

static void add_evaluator(struct sim_script *s, uint64_t r)
{
	put_number(task_of(s, "evaluator"), "replicas", 1);
}

static void add_tensorboard(struct sim_script *s, uint64_t r)
{
	put_text(map_of(spec_of(s), "checkpoint"), "volumeClaim", "c");
	cJSON_AddTrueToObject(map_of(spec_of(s), "tensorboard"), "enabled");
}

static void add_network_policy(struct sim_script *s, uint64_t r)
{
	cJSON_ReplaceItemInObjectCaseSensitive(map_of(spec_of(s), "security"), "networkPolicy",
					       cJSON_CreateTrue());
}

static void add_certificates(struct sim_script *s, uint64_t r)
{
	cJSON_ReplaceItemInObjectCaseSensitive(map_of(spec_of(s), "security"), "mtls",
					       cJSON_CreateTrue());
}

/* Its tasks run longer than the lifetime of its certificates. */
static void replace_certificates(struct sim_script *s, uint64_t r)
{
	add_certificates(s, r);
	s->cert_life = 1800;
	s->work = 1500;
}

static void add_gang(struct sim_script *s, uint64_t r)
{
	static const char *const gang_texts[] = {"volcano", "scheduler-plugins", "kueue"};

	put_text(run_of(s), "gang", gang_texts[r % MU_COUNT(gang_texts)]);
	if (r % MU_COUNT(gang_texts) == 2)
		put_text(run_of(s), "queue", "q");
}

static void add_gpus(struct sim_script *s, uint64_t r)
{
	s->gpus = true;
	s->gpus_taken = r % 3 == 1;
	s->broken_gpus = r % 3 == 2;
	put_text(task_of(s, "worker"), "kernels", r / 3 % 2 ? "auto" : "prefer-gpu");
}

/* A task that its policy restarts forever does not decide the end of the job. */
static void set_restart_policy(struct sim_script *s, uint64_t r)
{
	const char *policy = s->end == exits_until_success ? "OnFailure" : "Never";

	if (s->end == exits_until_success && r % 2 && !s->gpus_taken)
		policy = "Always";
	put_text(run_of(s), "restartPolicy", policy);
}

static void set_active_deadline(struct sim_script *s, uint64_t r)
{
	s->end = never_exits;
	put_number(run_of(s), "activeDeadlineSeconds", 60 + r % 100);
}

static void set_scheduling_deadline(struct sim_script *s, uint64_t r)
{
	s->end = never_exits;
	s->stuck_pending = true;
	put_number(run_of(s), "schedulingDeadlineSeconds", 60 + r % 100);
}

static void set_progress_deadline(struct sim_script *s, uint64_t r)
{
	set_sync_mode(s, r);
	s->end = never_exits;
	put_number(run_of(s), "progressDeadlineSeconds", 60 + r % 100);
}

static void set_time_to_live(struct sim_script *s, uint64_t r)
{
	put_number(run_of(s), "ttlSecondsAfterFinished", r % 3 ? r % 200 : 0);
}

static void add_suspend_and_resume(struct sim_script *s, uint64_t r)
{
	double at = 1 + (double)(r % 30);

	add_user_action(s, USER_SUSPEND, at, 0);
	add_user_action(s, USER_RESUME, at + 1 + (double)(r / 30 % 20), 0);
}

static void add_pod_deletion(struct sim_script *s, uint64_t r)
{
	add_user_action(s, USER_DELETE_POD, 1 + (double)(r / 4 % 30), (int)(r % 4));
}

static void add_eviction(struct sim_script *s, uint64_t r)
{
	add_user_action(s, USER_EVICT, 5 + (double)(r / 4 % 30), (int)(r % 4));
}

static void add_scaling(struct sim_script *s, uint64_t r)
{
	int workers = sim_at(s->job, "spec.tasks.worker.replicas")->valueint;
	double at = 1 + (double)(r / 64 % 20);
	bool down = workers > 1 && r % 2, by_hand = r / 2 % 2;

	if (s->end != exits_until_success && s->end != never_exits)
		return;
	add_user_action(s, USER_SCALE, at, down ? workers - 1 : workers + 1);
	if (!down || r / 4 % 2 == 0)
		return;
	/* the worker is killed just before or just after */
	at += (double)(r / 2048 % 10) / 10 - 0.5;
	add_user_action(s, by_hand ? USER_FORCE_DELETE : USER_KILL, at,
			by_hand ? workers - 1 : (int)(r / 8 % 4));
}

static void add_node_loss(struct sim_script *s, uint64_t r)
{
	add_user_action(s, USER_NODE_LOST, 1 + (double)(r % 60), 0);
}

/* Not while synchronous workers start: under an invalid manifest the operator records no start. So
 * it would not deregister a worker that is removed in that time. */
static void break_and_fix_manifest(struct sim_script *s, uint64_t r)
{
	double at = (double)(r % 40) + (s->in_step ? 10 : 0);

	add_user_action(s, USER_BREAK_MANIFEST, at, 0);
	add_user_action(s, USER_FIX_MANIFEST, at + 1 + (double)(r / 40 % 30), 0);
}

/* An object of another owner temporarily has a name that the job needs. */
static void add_name_conflict(struct sim_script *s, uint64_t r)
{
	static const char *const names[] = {
	    "/api/v1/namespaces/default/pods/j-worker-0",
	    "/api/v1/namespaces/default/pods/j-ps-0",
	    "/api/v1/namespaces/default/services/j",
	    "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies/j",
	    "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups/j",
	    "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups/j",
	};

	s->taken_name = names[r % MU_COUNT(names)];
	add_user_action(s, USER_FREE_NAME, 20 + (double)(r / 8 % 60), 0);
}

/* A quota of pods, until a user raises it or the job gives up. */
static void add_quota(struct sim_script *s, uint64_t r)
{
	s->quota = 1 + (int)(r % 3);
	if (s->end == never_exits && !s->stuck_pending) {
		s->quota = 1;
		put_number(run_of(s), "schedulingDeadlineSeconds", 50 + r % 50);
	} else {
		add_user_action(s, USER_RAISE_QUOTA, 20 + (double)(r / 4 % 60), 0);
	}
}

static void add_owned_deletion(struct sim_script *s, uint64_t r)
{
	add_user_action(s, USER_DELETE_OWNED, 1 + (double)(r / 4 % 40), (int)(r % 4));
}

static void add_job_recreation(struct sim_script *s, uint64_t r)
{
	add_user_action(s, USER_RECREATE_JOB, 1 + (double)(r % 60), 0);
}

static void add_job_deletion(struct sim_script *s, uint64_t r)
{
	add_user_action(s, USER_DELETE_JOB, 1 + (double)(r % 30), 0);
}

/* In order of application: features that decide how tasks end come first. */
static const struct {
	const char *name;
	unsigned one_in;
	void (*add)(struct sim_script *s, uint64_t r);
} features[] = {
    {"sync", 3, set_sync_mode},
    {"chief", 3, add_chief},
    {"evaluator", 6, add_evaluator},
    {"board", 8, add_tensorboard},
    {"policy", 2, add_network_policy},
    {"tls", 4, add_certificates},
    {"rotation", 10, replace_certificates},
    {"gang", 2, add_gang},
    {"gpu", 4, add_gpus},
    {"active-deadline", 12, set_active_deadline},
    {"scheduling-deadline", 12, set_scheduling_deadline},
    {"progress-deadline", 12, set_progress_deadline},
    {"restart-policy", 5, set_restart_policy},
    {"ttl", 5, set_time_to_live},
    {"suspend", 4, add_suspend_and_resume},
    {"delete-pod", 4, add_pod_deletion},
    {"evict", 4, add_eviction},
    {"scale", 4, add_scaling},
    {"node", 8, add_node_loss},
    {"spoil", 8, break_and_fix_manifest},
    {"taken-name", 8, add_name_conflict},
    {"quota", 8, add_quota},
    {"lose-owned", 8, add_owned_deletion},
    {"make-anew", 12, add_job_recreation},
    {"delete-job", 20, add_job_deletion},
};
enum { FEATURES = MU_COUNT(features), SALT = 64 };

static struct sim_script script_of(uint64_t seed)
{
	static const char *const clean[] = {"None", "Running", "All"};
	static int (*const ends[])(const struct sim_script *, const char *, int,
				   int) = {exits_until_success, exits_until_success,
					   exits_until_success, worker_1_fails, always_fails};
	const char *only = getenv("SIM_FEATURE");
	struct sim_script s = {.seed = seed, .end = ends[mix(seed, 1) % MU_COUNT(ends)]};

	s.job = cJSON_Parse(
	    "{\"apiVersion\":\"muster.dev/v1\",\"kind\":\"DistributedTrainingJob\",\"metadata\":{"
	    "\"name\":\"j\",\"namespace\":\"default\",\"generation\":1},\"spec\":{\"security\":{"
	    "\"mtls\":false,\"networkPolicy\":false}}}");
	put_program(&s, "{\"command\":[\"x\"]}");
	put_number(task_of(&s, "ps"), "replicas", mix(seed, 5) % 3);
	put_number(task_of(&s, "worker"), "replicas",
		   s.end == exits_until_success ? 1 + mix(seed, 2) % 3 : 2);
	put_number(run_of(&s), "backoffLimit", s.end == always_fails ? 2 : 100);
	put_text(run_of(&s), "cleanPodPolicy", clean[mix(seed, 3) % MU_COUNT(clean)]);
	put_text(run_of(&s), "successPolicy", mix(seed, 4) % 2 ? "AllWorkers" : "Chief");
	for (unsigned f = 0; f < FEATURES; f++) {
		if (!(only && strcmp(only, features[f].name) == 0) &&
		    mix(seed, SALT + 2 * f) % features[f].one_in != 0)
			continue;
		features[f].add(&s, mix(seed, SALT + 2 * f + 1) >> 8);
		if (getenv("SIM_TRACE"))
			fprintf(stderr, "---- %s\n", features[f].name);
	}
	return s;
}
