/* SPDX-License-Identifier: Apache-2.0 */
/* Usage: load jobs | bare | first. One run of one operator; prints its figures as one line of JSON.
 *
 * Phases of `jobs`: create (from the first create call until all pods exist), mark (workers run
 * until every job reports it), rest, end (workers succeed until every job reports it), rest. The
 * writes are read from the API server's counters before and after, so no audit log disturbs the
 * measurement.
 */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/operator/load.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

static const char usage[] =
    "usage: load jobs  --kubeconfig=F --template=JOB --path=/apis/G/V/namespaces/default/KINDS\n"
    "                  --count=JOBS [--pid=NAME=PID]... [--note=TEXT] [--rest=S] [--keep]\n"
    "                  [--operator=KUBECONFIG of its metrics]\n"
    "       load bare  --kubeconfig=F --template=POD --count=PODS --connections=N\n"
    "       load first --kubeconfig=F --template=JOB --path=... --note=NAME -- COMMAND...\n";

enum { PODS_PER_JOB = 6, TIMEOUT_S = 60, CREATORS = 8, SETTLE_S = 10 };

struct load {
	struct kube_client *client;
	struct kube_client *operator; /* client of the operator's metrics; NULL: not read */
	const char *kubeconfig, *operator_config, *path, *note;
	cJSON *template;
	char prefix[32];
	int count, connections;
	double rest;
	bool keep;
	struct load_process processes[LOAD_PROCESSES];
	int n_processes;
	cJSON *out;
};

static void put(struct load *l, const char *key, double value)
{
	cJSON_AddNumberToObject(l->out, key, value);
}

/* ---- creating ---- */

static void create(struct load *l, const char *path, const char *name)
{
	cJSON *object = cJSON_Duplicate(l->template, true);
	cJSON *metadata = cJSON_GetObjectItemCaseSensitive(object, "metadata");
	MU_AUTO_FREE char *body = NULL;
	struct mu_err err = {0};

	cJSON_DeleteItemFromObjectCaseSensitive(metadata, "name");
	cJSON_AddStringToObject(metadata, "name", name);
	body = cJSON_PrintUnformatted(object);
	cJSON_Delete(object);
	if (kube_call(
		l->client,
		&(struct kube_request){.method = "POST", .path = path, .body = mu_span_of(body)},
		NULL, &err) < 0)
		fprintf(stderr, "load: %s\n", err.msg);
}

static void create_job(void *load, int i)
{
	struct load *l = load;
	char name[64];

	snprintf(name, sizeof(name), "%s%d", l->prefix, i);
	create(l, l->path, name);
}

/* Pods as of a job: two ps, then four workers. */
static void create_pod(void *load, int i)
{
	struct load *l = load;
	int nth = i % PODS_PER_JOB;
	char name[64];

	snprintf(name, sizeof(name), "%s%d-%s-%d", l->prefix, i / PODS_PER_JOB,
		 nth < 2 ? "ps" : "worker", nth < 2 ? nth : nth - 2);
	create(l, "/api/v1/namespaces/default/pods", name);
}

/* ---- resource use ---- */

static void begin(struct load *l)
{
	for (int i = 0; i < l->n_processes; i++)
		l->processes[i].cpu = load_cpu(l->processes[i].pid);
}

static double spent(const struct load *l, int i)
{
	return load_cpu(l->processes[i].pid) - l->processes[i].cpu;
}

static void put_costs(struct load *l, const char *when, int pods)
{
	for (int i = 0; i < l->n_processes; i++) {
		MU_AUTO_FREE char *key =
		    mu_xasprintf("%s_cpu_ms_a_pod_%s", l->processes[i].name, when);
		put(l, key, spent(l, i) * 1000 / pods);
	}
}

static void put_memory(struct load *l, const char *when)
{
	for (int i = 0; i < l->n_processes; i++) {
		MU_AUTO_FREE char *rss = mu_xasprintf("%s_%s_rss_mb", l->processes[i].name, when);
		MU_AUTO_FREE char *peak = mu_xasprintf("%s_%s_peak_mb", l->processes[i].name, when);

		load_memory(&l->processes[i]);
		put(l, rss, (double)l->processes[i].rss / 1024);
		put(l, peak, (double)l->processes[i].peak / 1024);
	}
}

static void put_rest(struct load *l, const char *when, const char *kinds)
{
	MU_AUTO_FREE char *writes = mu_xasprintf("%s_writes", when);
	MU_AUTO_FREE char *reads = mu_xasprintf("%s_reads", when);
	struct load_counts before, after;
	struct load_own own_before = {0}, own_after = {0};
	double cpu[LOAD_PROCESSES];

	kube_client_sleep(l->client, SETTLE_S); /* wait for pending and batched writes */
	load_count(l->client, kinds, &before);
	if (l->operator)
		load_own(l->operator, & own_before);
	for (int i = 0; i < l->n_processes; i++)
		cpu[i] = load_cpu(l->processes[i].pid);
	kube_client_sleep(l->client, l->rest);
	load_count(l->client, kinds, &after);
	put(l, writes, (double)(after.writes - before.writes));
	if (l->operator) {
		load_own(l->operator, & own_after);
		put(l, reads, (double)(own_after.reads - own_before.reads));
	}
	for (int i = 0; i < l->n_processes; i++) {
		MU_AUTO_FREE char *key =
		    mu_xasprintf("%s_%s_cpu_percent", when, l->processes[i].name);
		put(l, key,
		    (load_cpu(l->processes[i].pid) - cpu[i]) * 100 / (l->rest > 0 ? l->rest : 1));
	}
}

static void put_writes(struct load *l, const char *kinds, const struct load_counts *from,
		       const char *when)
{
	MU_AUTO_FREE char *writes = mu_xasprintf("writes_a_job_%s", when);
	MU_AUTO_FREE char *events = mu_xasprintf("events_a_job_%s", when);
	MU_AUTO_FREE char *conflicts = mu_xasprintf("conflicts_%s", when);
	struct load_counts to;

	load_count(l->client, kinds, &to);
	put(l, writes, (double)(to.writes - from->writes) / l->count);
	put(l, events, (double)(to.events - from->events) / l->count);
	put(l, conflicts, (double)(to.conflicts - from->conflicts));
}

/* Counts duplicate and missing work until all jobs run and are idle. */
static void put_losses(struct load *l, struct world *w, int pods)
{
	struct load_own own;

	put(l, "pods_over", world_pods_over(w, pods));
	put(l, "jobs_behind", world_jobs_behind(w));
	if (!l->operator)
		return;
	load_own(l->operator, & own);
	put(l, "own_conflicts", (double)own.conflicts);
	put(l, "own_retries", (double)own.retries);
}

/* ---- verbs ---- */

static int run_jobs(struct load *l)
{
	int pods = l->count * PODS_PER_JOB;
	const char *kinds = strrchr(l->path, '/') + 1;
	struct load_counts from;
	struct world *w;
	double t0, t1;
	bool ok;

	put_rest(l, "idle", kinds);
	put_memory(l, "idle");
	w = world_new(l->client, l->path, pods);
	load_count(l->client, kinds, &from);
	begin(l);
	t0 = mu_clock();
	load_parallel(CREATORS, l->count, create_job, l);
	put(l, "jobs_created_s", mu_clock() - t0);
	ok = world_await_pods(w, pods, TIMEOUT_S);
	t1 = world_pod_time(w, pods, 1);
	put(l, "all_pods_s", t1 - t0);
	put(l, "pods_a_second", pods / (t1 - t0));
	put(l, "pods_a_second_10_90",
	    0.8 * pods / (world_pod_time(w, pods, 0.9) - world_pod_time(w, pods, 0.1)));
	put_costs(l, "create", pods);
	world_run_workers(w);
	ok = ok && world_await_jobs(w, "Running", l->count, TIMEOUT_S);
	put(l, "to_running_s", mu_clock() - t0);
	put_costs(l, "to_running", pods);
	put_rest(l, "rest", kinds);
	put_writes(l, kinds, &from, "to_running");
	put_losses(l, w, pods);
	put_memory(l, "running");
	if (ok && !l->keep) {
		load_count(l->client, kinds, &from);
		world_end_workers(w);
		ok = world_await_jobs(w, "Succeeded", l->count, TIMEOUT_S);
		put(l, "to_succeeded_s", mu_clock() - t0);
		kube_client_sleep(l->client, 5);
		put_writes(l, kinds, &from, "to_succeeded");
		put_memory(l, "end");
	}
	put_costs(l, "life", pods);
	put(l, "complete", ok);
	world_stop(w);
	return ok ? 0 : -1;
}

static int run_bare(struct load *l)
{
	struct world *w = world_new(l->client, "/api/v1/namespaces/default/configmaps", l->count);
	double t0 = mu_clock(), t1;
	bool ok;

	begin(l);
	load_parallel(l->connections, l->count, create_pod, l);
	ok = world_await_pods(w, l->count, TIMEOUT_S);
	t1 = world_pod_time(w, l->count, 1);
	put(l, "connections", l->connections);
	put(l, "all_pods_s", t1 - t0);
	put(l, "pods_a_second", l->count / (t1 - t0));
	put_costs(l, "create", l->count);
	/* the lower bound for any operator: the same creates and status updates without one */
	world_run_workers(w);
	ok = ok && world_await_marks(w, l->count, TIMEOUT_S);
	put(l, "to_running_s", mu_clock() - t0);
	world_stop(w);
	return ok ? 0 : -1;
}

static void ignore(void *arg, const cJSON *object)
{
}

/* Reads that any operator needs before it can act. */
static double bare_list(struct load *l)
{
	const char *const paths[] = {"/api/v1/pods", "/api/v1/services", l->path};
	double t0 = mu_clock();

	for (unsigned i = 0; i < MU_COUNT(paths); i++) {
		MU_AUTO_FREE char *version = NULL;
		struct mu_err err = {0};
		if (kube_list(l->client, paths[i], NULL, ignore, NULL, &version, &err) < 0)
			fprintf(stderr, "load: %s\n", err.msg);
	}
	return mu_clock() - t0;
}

static int run_first(struct load *l, char **command)
{
	int before, status;
	struct world *w;
	double t0;
	pid_t pid;
	bool ok;

	put(l, "bare_list_ms", bare_list(l) * 1000);
	put(l, "bare_list_again_ms", bare_list(l) * 1000);
	w = world_new(l->client, l->path, 1 << 20);
	kube_client_sleep(l->client, 1);
	for (before = 0; world_pod_time(w, before + 1, 1) > 0;)
		before++;
	create_job(l, 0);
	kube_client_sleep(l->client, 1);
	t0 = mu_clock();
	pid = fork();
	if (pid == 0) {
		execvp(command[0], command);
		_exit(127);
	}
	ok = world_await_pods(w, before + 1, TIMEOUT_S);
	put(l, "first_pod_ms", (world_pod_time(w, before + 1, 1) - t0) * 1000);
	kube_client_sleep(l->client, 3);
	kill(pid, SIGTERM);
	waitpid(pid, &status, 0);
	world_stop(w);
	return ok ? 0 : -1;
}

/* ---- options ---- */

enum {
	O_KUBECONFIG = 256,
	O_TEMPLATE,
	O_PATH,
	O_COUNT,
	O_CONNECTIONS,
	O_PID,
	O_NOTE,
	O_REST,
	O_KEEP,
	O_OPERATOR
};
static const struct option options[] = {
    {"kubeconfig", required_argument, 0, O_KUBECONFIG},
    {"template", required_argument, 0, O_TEMPLATE},
    {"path", required_argument, 0, O_PATH},
    {"count", required_argument, 0, O_COUNT},
    {"connections", required_argument, 0, O_CONNECTIONS},
    {"pid", required_argument, 0, O_PID},
    {"note", required_argument, 0, O_NOTE},
    {"rest", required_argument, 0, O_REST},
    {"keep", no_argument, 0, O_KEEP},
    {"operator", required_argument, 0, O_OPERATOR},
    {0, 0, 0, 0},
};

static bool read_option(struct load *l, int which)
{
	MU_AUTO_BUF text = {0};
	char *equals;

	switch (which) {
	case O_KUBECONFIG:
		l->kubeconfig = optarg;
		return true;
	case O_TEMPLATE:
		if (mu_buf_read_file(&text, optarg, 1 << 20, NULL) == 0)
			l->template = cJSON_ParseWithLength(text.data, text.len);
		return l->template != NULL;
	case O_PATH:
		l->path = optarg;
		return strrchr(optarg, '/') != NULL;
	case O_COUNT:
		l->count = atoi(optarg);
		return l->count > 0;
	case O_CONNECTIONS:
		l->connections = atoi(optarg);
		return l->connections > 0;
	case O_PID:
		equals = strchr(optarg, '=');
		if (!equals || l->n_processes == LOAD_PROCESSES)
			return false;
		*equals = 0;
		l->processes[l->n_processes++] =
		    (struct load_process){.name = optarg, .pid = atoi(equals + 1)};
		return true;
	case O_NOTE:
		l->note = optarg;
		return true;
	case O_REST:
		l->rest = atof(optarg);
		return true;
	case O_OPERATOR:
		l->operator_config = optarg;
		return true;
	case O_KEEP:
		l->keep = true;
		return true;
	default:
		return false;
	}
}

static int connect_to(struct kube_client **out, const char *path)
{
	struct kube_config config;
	struct mu_err err = {0};

	if (kube_config_load(&config, path, NULL, &err) == 0 &&
	    kube_client_new(out, &config, &err) == 0)
		return 0;
	fprintf(stderr, "load: %s\n", err.msg);
	return -1;
}

int main(int argc, char **argv)
{
	struct load l = {.connections = 8, .rest = 10, .prefix = "j"};
	const char *verb = argc > 1 ? argv[1] : "";
	char *text;
	int which, rc = -1;

	optind = 2;
	while ((which = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (!read_option(&l, which))
			optind = argc + 1;
	if (optind > argc || !l.template || !l.kubeconfig ||
	    (strcmp(verb, "bare") != 0 && !l.path)) {
		fputs(usage, stderr);
		return 2;
	}
	mu_log_init("load");
	mu_log_set_level(MU_ERROR);
	signal(SIGPIPE, SIG_IGN);
	if (connect_to(&l.client, l.kubeconfig) ||
	    (l.operator_config && connect_to(&l.operator, l.operator_config)))
		return 1;
	l.out = cJSON_CreateObject();
	cJSON_AddStringToObject(l.out, "verb", verb);
	cJSON_AddStringToObject(l.out, "note", l.note ? l.note : "");
	put(&l, "count", l.count);
	if (strcmp(verb, "jobs") == 0)
		rc = run_jobs(&l);
	else if (strcmp(verb, "bare") == 0)
		rc = run_bare(&l);
	else if (strcmp(verb, "first") == 0 && argv[optind]) {
		snprintf(l.prefix, sizeof(l.prefix), "late");
		rc = run_first(&l, argv + optind);
	} else
		fputs(usage, stderr);
	text = cJSON_PrintUnformatted(l.out);
	puts(text);
	free(text);
	cJSON_Delete(l.out);
	cJSON_Delete(l.template);
	kube_client_free(l.client);
	if (l.operator)
		kube_client_free(l.operator);
	return rc < 0;
}
