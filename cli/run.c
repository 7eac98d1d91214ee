/* SPDX-License-Identifier: Apache-2.0 */
/* muster run: the operator's plan, carried out with processes.
 *
 * Each turn of the loop looks at the processes, asks job_plan what to do, does it, and shows the
 * view; there is no other logic here about when a task starts, is restarted or is done.  Ctrl-C
 * first asks the workers to save and end (SIGTERM), then ps; a second one ends everything at once.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/manifest.h"
#include "cli/run_control.h"
#include "cli/run_folders.h"
#include "cli/run_tasks.h"
#include "cli/run_view.h"
#include "cli/scale.h"
#include "lib/base/clock.h"
#include "lib/base/cpus.h"
#include "lib/io/folders.h"

enum { LOG_MIB = 64, MOST_LOG_MIB = 1 << 20 };
enum { TURN_MS = 50, KILL_AFTER_SECONDS = 10, STOP_SECONDS = 15, PATH_SIZE = 4096 };

struct run {
	struct job_spec *spec;
	struct job_status status;
	bool service;
	struct run_tasks tasks;
	struct run_view view;
	struct run_control control;
	struct run_folders folders;
	char logs[PATH_SIZE], bin_dir[PATH_SIZE];
	double started;
};

static volatile sig_atomic_t interrupts;

static void on_interrupt(int sig)
{
	interrupts++;
}

static void on_line(void *user, const struct local_task *t, const char *text)
{
	struct run *r = user;
	const struct task_spec *chief = job_spec_chief(r->spec);

	if (chief && t->index == 0 && strcmp(t->task, chief->name) == 0)
		run_view_take(&r->view, text, mu_wall());
}

/* Those who compute share the processors out; ps tasks mostly wait for them. */
static unsigned threads_each(const struct job_spec *s)
{
	unsigned computing = 0;

	for (unsigned i = 0; i < s->n_tasks; i++)
		if (strcmp(s->tasks[i].name, "ps") != 0)
			computing += (unsigned)s->tasks[i].replicas;
	return computing < mu_cpus() ? mu_cpus() / (computing ? computing : 1) : 1;
}

/* ---- the plan's actions ---- */

static enum pod_phase phase_of(const struct local_task *t)
{
	if (t->pid > 0)
		return t->ready ? POD_RUNNING : POD_PENDING;
	return t->exit_code == 0 ? POD_SUCCEEDED : POD_FAILED;
}

static void say_failure(struct run *r, const struct local_task *t)
{
	if (t->exit_code > 128 && t->exit_code < 128 + NSIG)
		run_view_say(&r->view, "%s-%d was ended by signal %d (%s), see %s/%s-%d.log",
			     t->task, t->index, t->exit_code - 128, strsignal(t->exit_code - 128),
			     r->logs, t->task, t->index);
	else
		run_view_say(&r->view, "%s-%d ended with exit code %d, see %s/%s-%d.log: %s",
			     t->task, t->index, t->exit_code, r->logs, t->task, t->index,
			     t->last[0] ? t->last : "(it said nothing)");
}

static void delete_task(struct run *r, const char *uid, double now)
{
	struct local_task *t = run_tasks_find(&r->tasks, uid);

	if (!t)
		return;
	if (t->pid == 0) {
		run_tasks_remove(&r->tasks, t);
		return;
	}
	t->deleting = true;
	t->killed_at = now;
	run_tasks_signal(t, SIGTERM);
}

/* Those that were told to end, as a kubelet does it: gone when the plan has seen how they ended, by
 * force when they do not. */
static void carry_off(struct run *r, double now)
{
	for (unsigned i = r->tasks.n; i-- > 0;) {
		struct local_task *t = r->tasks.list[i];

		if (!t->deleting)
			continue;
		if (t->pid == 0)
			run_tasks_remove(&r->tasks, t);
		else if (now - t->killed_at > KILL_AFTER_SECONDS)
			run_tasks_signal(t, SIGKILL);
	}
}

static int act(struct run *r, const struct plan_action *a, double now, struct mu_err *err)
{
	struct local_task *t;

	switch (a->kind) {
	case ACTION_MAKE_SECRET:
	case ACTION_SPREAD_CA:
	case ACTION_SWITCH_SECRET:
	case ACTION_CHECK_SECRET:
	case ACTION_CREATE_POLICY:
	case ACTION_PUT_GROUP:
		return 0; /* of a cluster */
	case ACTION_CREATE_SERVICE:
		r->service = true;
		return 0;
	case ACTION_DELETE_SERVICE:
		r->service = false;
		return 0;
	case ACTION_CREATE_POD:
		return run_tasks_start(&r->tasks, a->pod, now, err);
	case ACTION_DELETE_POD:
	case ACTION_FORCE_DELETE_POD:
		delete_task(r, a->uid, now);
		return 0;
	case ACTION_FINISH_POD:
		t = run_tasks_find(&r->tasks, a->uid);
		if (t && !t->finishing) {
			t->finishing = true;
			run_tasks_signal(t, SIGTERM);
		}
		return 0;
	case ACTION_DELETE_JOB:
		return 0;
	}
	return 0;
}

/* Prints what has just become true of the job and a person has to know.  How tasks end and restart
 * is printed when it happens. */
static void say_news(struct run *r, const struct job_status *was, const struct job_status *is)
{
	static const enum condition_type told[] = {COND_DEPARTURE_STUCK, COND_STEP_RESET};
	const struct condition *ready = &is->conditions[COND_READY];

	for (unsigned i = 0; i < MU_COUNT(told); i++) {
		const struct condition *c = &is->conditions[told[i]];

		if (c->set &&
		    (!was->conditions[told[i]].set || was->conditions[told[i]].since != c->since))
			run_view_say(&r->view, "%s", c->message);
	}
	if (job_status_trouble(is) == ready &&
	    strcmp(ready->reason, was->conditions[COND_READY].reason) != 0 &&
	    is->phase != JOB_FAILED)
		run_view_say(&r->view, "%s", ready->message);
}

/* One look at the world, one plan, its actions. */
static int turn(struct run *r, struct mu_err *err)
{
	struct plan_options options = {.image = "muster-task",
				       .in_the_clear = true, /* on the loopback, by one user */
				       .address = run_tasks_address,
				       .log_folder = r->logs,
				       .user = &r->tasks};
	double now = mu_wall();
	struct observed_pod *pods = MU_NEW_ARRAY(struct observed_pod, r->tasks.n + 1);
	struct observed_job seen = {.pods = pods,
				    .n_pods = r->tasks.n,
				    .service = r->service,
				    .status = r->status,
				    .progress = {.set = true,
						 .step = r->view.progress.step,
						 .target = r->view.progress.target,
						 .reason = r->view.end_reason},
				    .last_progress = r->view.step_at};
	struct job_plan *plan;
	int rc = 0;

	for (unsigned i = 0; i < r->tasks.n; i++) {
		const struct local_task *t = r->tasks.list[i];

		pods[i] = (struct observed_pod){.task = t->task,
						.index = t->index,
						.uid = t->uid,
						.phase = phase_of(t),
						.ready = t->ready && t->pid > 0,
						.deleting = t->deleting,
						.killed = t->deleting && t->pid == 0,
						.is_departure_pod = t->leaves,
						.exit_code = t->exit_code,
						.created = t->created,
						.finished = t->finished};
	}
	plan = job_plan_new(r->spec, &options, &seen, now);
	for (unsigned i = 0; i < plan->n_actions && !rc; i++)
		rc = act(r, &plan->actions[i], now, err);
	carry_off(r, now);
	struct job_status wanted = {0};
	job_status_copy(&wanted, &plan->status);
	say_news(r, &r->status, &wanted);
	job_plan_free(plan);
	free(pods);
	job_status_fini(&r->status);
	r->status = wanted;
	return rc;
}

/* Decided: what still runs is only to end. */
static bool over(const struct run *r)
{
	return r->status.phase == JOB_SUCCEEDED || r->status.phase == JOB_FAILED;
}

/* Reads what the tasks say and how they end; each failure is told once. */
static void watch(struct run *r, int timeout_ms)
{
	double now = mu_wall();
	bool *ran = MU_NEW_ARRAY(bool, r->tasks.n + 1);

	for (unsigned i = 0; i < r->tasks.n; i++)
		ran[i] = r->tasks.list[i]->pid > 0;
	run_tasks_poll(&r->tasks, timeout_ms, now);
	for (unsigned i = 0; i < r->tasks.n; i++) {
		const struct local_task *t = r->tasks.list[i];

		if (ran[i] && t->pid == 0 && t->exit_code != 0 && !t->deleting && !interrupts &&
		    !over(r))
			say_failure(r, t);
	}
	free(ran);
}

/* Ends what still runs: first those who have something to save, then everybody. */
static void stop_all(struct run *r)
{
	double until = mu_wall() + STOP_SECONDS;
	bool servers = false;
	int seen = interrupts;

	for (unsigned i = 0; i < r->tasks.n; i++)
		if (strcmp(r->tasks.list[i]->task, "ps") != 0)
			run_tasks_signal(r->tasks.list[i], SIGTERM);
	while (run_tasks_alive(&r->tasks) && mu_wall() < until && interrupts == seen) {
		unsigned others = 0;

		watch(r, TURN_MS);
		for (unsigned i = 0; i < r->tasks.n; i++)
			others +=
			    r->tasks.list[i]->pid > 0 && strcmp(r->tasks.list[i]->task, "ps") != 0;
		for (unsigned i = 0; i < r->tasks.n && !others && !servers; i++)
			run_tasks_signal(r->tasks.list[i], SIGTERM);
		servers |= !others;
	}
}

/* What others ask of the job; see run_control.c. */
static int answer(void *user, char *request, char *said, size_t size, struct mu_err *err)
{
	struct run *r = user;
	int rc;

	if (strncmp(request, "scale ", 6) != 0)
		return mu_fail(err, MU_UNIMPLEMENTED, "'%.100s' cannot be asked of a job", request);
	rc = scale_apply(r->spec, request + 6, said, size, err);
	if (!rc) {
		r->tasks.threads = threads_each(r->spec);
		run_view_say(&r->view, "%s: %s", r->spec->name, said);
	}
	return rc;
}

static int loop(struct run *r)
{
	struct mu_err err;

	while (!interrupts) {
		if (turn(r, &err)) {
			run_view_clear(&r->view);
			return cli_fail(&err);
		}
		if (over(r) && !run_tasks_alive(&r->tasks))
			break;
		/* A finished job may keep its ended tasks, but nothing of it may go on running. */
		if (over(r) && mu_wall() - r->status.completion_time > STOP_SECONDS)
			break;
		watch(r, TURN_MS);
		run_control_serve(&r->control, answer, r);
		run_view_show(&r->view, &r->status, mu_wall());
	}
	stop_all(r);
	run_view_clear(&r->view);
	if (interrupts)
		return CLI_INTERRUPTED;
	return r->status.phase == JOB_SUCCEEDED ? CLI_OK : CLI_FAILED;
}

/* ---- before and after ---- */

struct run_arguments {
	const char *manifest, *logs, *scale, *log_size;
	size_t log_limit; /* of log_size, in bytes; 0: none */
	bool fresh;
};

static void say_end(const struct run *r, int status)
{
	const struct run_view *v = &r->view;

	if (status == CLI_INTERRUPTED)
		printf("%s: stopped at step %lld; run it again to go on from there\n",
		       r->spec->name, (long long)v->progress.step);
	else
		run_view_outcome(v, &r->status, mu_wall() - r->started);
	run_view_results(v);
	printf("  logs           %s\n", r->logs);
	if (v->final && v->checkpoint[0])
		printf("Try next:\n"
		       "  %s checkpoint show %s\n",
		       program_invocation_name, v->checkpoint);
	if (v->final && v->events[0])
		printf("  %s events %s\n"
		       "  tensorboard --logdir %s\n",
		       program_invocation_name, v->events, r->spec->train.summary_path);
}

/* Ours alone before anything in them is touched; a folder that is moved aside stays so. */
static int take_folders(struct run *r, const struct run_arguments *a, struct mu_err *err)
{
	const struct train_spec *t = &r->spec->train;
	const char *job = r->spec->name;
	int rc = run_folders_hold(&r->folders, t->checkpoint_path, job, err);

	if (!rc && a->fresh)
		rc = run_folders_set_aside(t->checkpoint_path, err);
	if (!rc && a->fresh)
		rc = run_folders_set_aside(t->summary_path, err);
	if (a->logs)
		snprintf(r->logs, sizeof(r->logs), "%s", a->logs);
	else if (t->checkpoint_path)
		snprintf(r->logs, sizeof(r->logs), "%s/logs", t->checkpoint_path);
	else
		snprintf(r->logs, sizeof(r->logs), "muster-logs/%s", job);
	if (!rc) {
		MU_AUTO_FREE char *all = mu_xasprintf("%s/", r->logs);
		rc = mu_make_folders(all, err);
	}
	if (!rc)
		rc = run_folders_hold(&r->folders, t->checkpoint_path, job, err);
	return rc ? rc : run_folders_hold(&r->folders, r->logs, job, err);
}

static int prepare(struct run *r, const struct run_arguments *a, struct mu_err *err)
{
	ssize_t n = readlink("/proc/self/exe", r->bin_dir, sizeof(r->bin_dir) - 1);
	int rc = take_folders(r, a, err);

	if (rc)
		return rc;
	if (n > 0) {
		r->bin_dir[n] = 0;
		*strrchr(r->bin_dir, '/') = 0;
	}
	r->tasks = (struct run_tasks){.logs = r->logs,
				      .log_limit = a->log_limit,
				      .bin_dir = r->bin_dir,
				      .threads = threads_each(r->spec),
				      .line = on_line,
				      .user = r};
	run_view_init(&r->view, r->spec->name,
		      r->spec->program == PROGRAM_TRAIN ? r->spec->train.steps : 0);
	if (mu_doc_bool(r->spec->doc->root, "spec.security.mtls", false))
		run_view_say(&r->view, "on one machine tasks talk in the clear over the loopback: "
				       "security.mtls is for a cluster");
	return 0;
}

static bool read_log_size(struct run_arguments *a)
{
	const char *text = a->log_size;
	char *end;
	long mib = LOG_MIB;

	if (text) {
		mib = strtol(text, &end, 10);
		if (*text < '0' || *text > '9' || *end || mib > MOST_LOG_MIB)
			return false;
	}
	a->log_limit = (size_t)mib << 20;
	return true;
}

/* 0, or the exit status of a wrong command line. */
static int read_arguments(struct run_arguments *a, int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		int got = cli_option(argc, argv, &i, "logs", &a->logs);

		if (!got)
			got = cli_option(argc, argv, &i, "scale", &a->scale);
		if (!got)
			got = cli_option(argc, argv, &i, "log-size", &a->log_size);
		if (got < 0)
			return cli_usage("run", "%s needs a value", argv[i]);
		if (got)
			continue;
		if (strcmp(argv[i], "--fresh") == 0)
			a->fresh = true;
		else if (argv[i][0] == '-' && argv[i][1])
			return cli_usage("run", "unknown option '%s'", argv[i]);
		else if (a->manifest)
			return cli_usage("run", "one manifest at a time, got '%s' too", argv[i]);
		else
			a->manifest = argv[i];
	}
	if (!read_log_size(a))
		return cli_usage("run", "--log-size is a number of MiB, got '%s'", a->log_size);
	return a->manifest ? 0 : cli_usage("run", "no manifest given");
}

/* --scale: a job that runs already is changed; 1: none does, so it is started with that number. */
static int scale_running(struct run *r, const struct run_arguments *a, struct mu_err *err)
{
	char request[CONTROL_LINE], said[CONTROL_LINE];
	int rc;

	snprintf(request, sizeof(request), "scale %.200s", a->scale);
	rc = run_control_ask(r->spec->name, request, said, sizeof(said), err);
	if (rc == -(int)MU_NOT_FOUND)
		rc = scale_apply(r->spec, a->scale, said, sizeof(said), err) ? -1 : 1;
	else if (!rc)
		printf("%s: %s\n", r->spec->name, said);
	return rc;
}

static int start(struct run *r, const struct run_arguments *a, struct mu_err *err)
{
	struct mu_err why;
	int rc = manifest_read(&r->spec, a->manifest, err);

	if (!rc && a->scale) {
		rc = scale_running(r, a, err);
		if (rc <= 0)
			return rc;
	}
	if (!rc || rc == 1)
		rc = prepare(r, a, err);
	if (rc)
		return rc;
	if (run_control_open(&r->control, r->spec->name, &why))
		run_view_say(&r->view, "muster scale cannot reach this job: %s", why.msg);
	return 1;
}

int cli_run(int argc, char **argv)
{
	struct run r = {.started = mu_wall(), .control.fd = -1};
	struct run_arguments a = {0};
	struct sigaction interrupt = {.sa_handler = on_interrupt};
	struct mu_err err;
	int status = read_arguments(&a, argc, argv);

	if (status)
		return status;
	sigaction(SIGINT, &interrupt, NULL);
	sigaction(SIGTERM, &interrupt, NULL);
	signal(SIGPIPE, SIG_IGN);
	switch (start(&r, &a, &err)) {
	case 0: /* it was running */
		break;
	case 1:
		status = loop(&r);
		run_control_close(&r.control);
		say_end(&r, status);
		break;
	default:
		status = cli_fail(&err);
	}
	run_tasks_fini(&r.tasks);
	run_folders_fini(&r.folders);
	job_status_fini(&r.status);
	job_spec_free(r.spec);
	return status;
}
