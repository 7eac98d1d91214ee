/* SPDX-License-Identifier: Apache-2.0 */
/* muster run: executes the operator's plan with processes.
 *
 * Each iteration polls the processes, makes a job_plan, executes it, and updates the view. All
 * decisions about starts, restarts and completion are in job_plan. The first Ctrl-C ends the
 * workers, which save (SIGTERM), then the ps tasks. A second Ctrl-C kills everything.
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

enum { DEFAULT_LOG_MIB = 64, MAX_LOG_MIB = 1 << 20 };
enum { POLL_MS = 50, GRACE_PERIOD_S = 30, ENDED_JOB_TIMEOUT_S = 15, PATH_SIZE = 4096 };

struct run {
	struct job_spec *spec;
	struct job_status status;
	bool service, stopping, reported_ended_ps;
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

	bool is_chief = chief && t->index == 0 && strcmp(t->task, chief->name) == 0;

	if (is_chief || (r->tasks.reports_step && task_kind_of(t->task) == TASK_PS))
		run_view_parse(&r->view, text, mu_wall());
}

/* Compute threads for each task. The computing tasks share the CPUs; ps tasks mostly wait. */
static unsigned threads_per_task(const struct job_spec *s)
{
	unsigned computing = 0;

	for (unsigned i = 0; i < s->n_tasks; i++)
		if (strcmp(s->tasks[i].name, "ps") != 0)
			computing += (unsigned)s->tasks[i].replicas;
	return computing < mu_cpus() ? mu_cpus() / (computing ? computing : 1) : 1;
}

/* ---- actions of the plan ---- */

static enum pod_phase phase_of(const struct local_task *t)
{
	if (t->pid > 0)
		return POD_RUNNING;
	return t->exit_code == 0 ? POD_SUCCEEDED : POD_FAILED;
}

static void report_failure(struct run *r, const struct local_task *t)
{
	MU_AUTO_BUF last_line = {0};

	put_printable(&last_line, t->last_line[0] ? t->last_line : "(no output)");
	if (t->exit_code > 128 && t->exit_code < 128 + NSIG)
		run_view_print(&r->view, "%s-%d was killed by signal %d (%s), see %s/%s-%d.log",
			       t->task, t->index, t->exit_code - 128, strsignal(t->exit_code - 128),
			       r->logs, t->task, t->index);
	else
		run_view_print(&r->view, "%s-%d ended with exit code %d, see %s/%s-%d.log: %s",
			       t->task, t->index, t->exit_code, r->logs, t->task, t->index,
			       last_line.data);
}

/* A ps that exits with 0 is restarted each time, so only the first exit is reported. */
static void report_ended_ps(struct run *r, const struct local_task *t)
{
	if (!r->reported_ended_ps)
		run_view_print(
		    &r->view,
		    "%s-%d ended with exit code 0 before the job has ended, and is "
		    "started again; a ps must run until it gets SIGTERM, see %s/%s-%d.log",
		    t->task, t->index, r->logs, t->task, t->index);
	r->reported_ended_ps = true;
}

static void delete_task(struct run *r, struct local_task *t, double now)
{
	if (t->pid == 0) {
		run_tasks_remove(&r->tasks, t);
		return;
	}
	t->deleting = true;
	t->sigterm_at = now;
	run_tasks_signal(t, SIGTERM);
}

/* Seconds from SIGTERM to SIGKILL, as in a pod. */
static int64_t grace_period(const struct job_spec *s, const char *task)
{
	const struct task_spec *t = job_spec_task(s, task);

	return mu_doc_int(t ? t->template : NULL, "spec.terminationGracePeriodSeconds",
			  GRACE_PERIOD_S);
}

/* Acts like a kubelet for deleted tasks: removes a task when the plan has recorded its end, and
 * kills a task that does not end. */
static void reap_deleted(struct run *r, double now)
{
	for (unsigned i = r->tasks.n; i-- > 0;) {
		struct local_task *t = r->tasks.list[i];

		if (!t->deleting)
			continue;
		if (t->pid == 0)
			run_tasks_remove(&r->tasks, t);
		else if (now - t->sigterm_at > (double)grace_period(r->spec, t->task))
			run_tasks_signal(t, SIGKILL);
	}
}

/* The clients of a job that has only servers need the addresses. */
static int start_task(struct run *r, const struct plan_pod *pod, double now, struct mu_err *err)
{
	char address[64];
	int rc = run_tasks_start(&r->tasks, pod, now, err);

	if (rc || r->spec->program != PROGRAM_NONE)
		return rc;
	run_tasks_address(&r->tasks, r->spec, pod->task, pod->index, address, sizeof(address));
	run_view_print(&r->view, "%s-%d  grpc://%s", pod->task, pod->index, address);
	return 0;
}

static int execute_action(struct run *r, const struct plan_action *a, double now,
			  struct mu_err *err)
{
	struct local_task *t;

	switch (a->kind) {
	case ACTION_MAKE_SECRET:
	case ACTION_ADD_CA:
	case ACTION_ROTATE_CERTIFICATE:
	case ACTION_CHECK_SECRET:
	case ACTION_CREATE_POLICY:
	case ACTION_PUT_GROUP:
		return 0; /* only for clusters */
	case ACTION_CREATE_SERVICE:
		r->service = true;
		return 0;
	case ACTION_DELETE_SERVICE:
		r->service = false;
		return 0;
	case ACTION_CREATE_POD:
		return start_task(r, a->pod, now, err);
	case ACTION_DELETE_POD:
	case ACTION_FORCE_DELETE_POD:
		if ((t = run_tasks_find(&r->tasks, a->uid)))
			delete_task(r, t, now);
		return 0;
	case ACTION_FINISH_POD:
		t = run_tasks_find(&r->tasks, a->uid);
		if (t) {
			t->finish_requested_at = now;
			run_tasks_signal(t, SIGTERM);
		}
		return 0;
	case ACTION_DELETE_JOB:
		return 0;
	}
	return 0;
}

/* Prints changes of the job's conditions. Ends and restarts of tasks are printed when they happen.
 */
static void report_changes(struct run *r, const struct job_status *before,
			   const struct job_status *after)
{
	const struct condition *ready = &after->conditions[COND_READY];

	for (int i = 0; i < JOB_CONDITIONS; i++) {
		const struct condition *c = &after->conditions[i], *old = &before->conditions[i];

		if (condition_kinds[i].printed && c->set && (!old->set || old->since != c->since))
			run_view_print(&r->view, "%s", c->message);
	}
	if (job_status_trouble(after) == ready &&
	    strcmp(ready->reason, before->conditions[COND_READY].reason) != 0 &&
	    after->phase != JOB_FAILED)
		run_view_print(&r->view, "%s", ready->message);
}

/* One iteration: reads the state, makes a plan and executes its actions. */
static int run_iteration(struct run *r, struct mu_err *err)
{
	struct plan_options options = {.image = "muster-task",
				       .plaintext = true, /* loopback only, one user */
				       .address = run_tasks_address,
				       .log_folder = r->logs,
				       .user = &r->tasks};
	double now = mu_wall();
	struct observed_pod *pods = MU_NEW_ARRAY(struct observed_pod, r->tasks.n + 1);
	struct observed_job observed = {.pods = pods,
					.n_pods = r->tasks.n,
					.service = r->service,
					.status = r->status,
					.progress = {.set = true,
						     .step = r->view.progress.step,
						     .target = r->view.progress.target,
						     .reason = r->view.end_reason},
					.last_progress = r->view.step_at,
					.polled_at = now};
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
						.finish_requested_at = t->finish_requested_at,
						.ended_by_deletion = t->deleting && t->pid == 0,
						.is_departure_pod = t->is_departure_pod,
						.exit_code = t->exit_code,
						.created = t->created,
						.finished = t->finished};
	}
	plan = job_plan_new(r->spec, &options, &observed, now);
	for (unsigned i = 0; i < plan->n_actions && !rc; i++)
		rc = execute_action(r, &plan->actions[i], now, err);
	reap_deleted(r, now);
	struct job_status new_status = {0};
	job_status_copy(&new_status, &plan->status);
	report_changes(r, &r->status, &new_status);
	job_plan_free(plan);
	free(pods);
	job_status_fini(&r->status);
	r->status = new_status;
	return rc;
}

/* True if the job has ended; the remaining tasks only have to terminate. */
static bool has_ended(const struct run *r)
{
	return r->status.phase == JOB_SUCCEEDED || r->status.phase == JOB_FAILED;
}

/* Reads the output of the tasks and their exits; reports each failure once. */
static void poll_tasks(struct run *r, int timeout_ms)
{
	double now = mu_wall();
	bool *was_running = MU_NEW_ARRAY(bool, r->tasks.n + 1);

	for (unsigned i = 0; i < r->tasks.n; i++)
		was_running[i] = r->tasks.list[i]->pid > 0;
	run_tasks_poll(&r->tasks, timeout_ms, now);
	for (unsigned i = 0; i < r->tasks.n; i++) {
		const struct local_task *t = r->tasks.list[i];

		if (!was_running[i] || t->pid || t->deleting || interrupts || r->stopping ||
		    has_ended(r))
			continue;
		if (t->exit_code != 0)
			report_failure(r, t);
		else if (task_kind_of(t->task) == TASK_PS && !t->finish_requested_at)
			report_ended_ps(r, t);
	}
	free(was_running);
}

/* Deletes all tasks, the ps last: the checkpoints of other tasks need the ps. */
static void stop_all(struct run *r)
{
	int interrupts_before = interrupts;

	r->stopping = true;
	while (run_tasks_alive(&r->tasks) && interrupts == interrupts_before) {
		unsigned n_others = 0;

		for (unsigned i = 0; i < r->tasks.n; i++)
			n_others += r->tasks.list[i]->pid > 0 &&
				    task_kind_of(r->tasks.list[i]->task) != TASK_PS;
		for (unsigned i = r->tasks.n; i-- > 0;) {
			struct local_task *t = r->tasks.list[i];

			if (!t->deleting && (!n_others || task_kind_of(t->task) != TASK_PS))
				delete_task(r, t, mu_wall());
		}
		poll_tasks(r, POLL_MS);
		reap_deleted(r, mu_wall());
	}
}

/* Handles a request of another process; see run_control.c. */
static int handle_request(void *user, char *request, char *reply, size_t size, struct mu_err *err)
{
	struct run *r = user;
	int rc;

	if (strncmp(request, "scale ", 6) != 0)
		return mu_fail(err, MU_UNIMPLEMENTED, "unknown request '%.100s'", request);
	rc = scale_apply(r->spec, request + 6, reply, size, err);
	if (!rc) {
		r->tasks.threads = threads_per_task(r->spec);
		run_view_print(&r->view, "%s: %s", r->spec->name, reply);
	}
	return rc;
}

static int run_loop(struct run *r)
{
	struct mu_err err;

	while (!interrupts) {
		if (run_iteration(r, &err)) {
			stop_all(r);
			run_view_clear(&r->view);
			return cli_fail(&err);
		}
		if (has_ended(r) && !run_tasks_alive(&r->tasks))
			break;
		/* A finished job may keep its ended tasks, but all processes must end. */
		if (has_ended(r) && mu_wall() - r->status.completion_time > ENDED_JOB_TIMEOUT_S)
			break;
		poll_tasks(r, POLL_MS);
		run_control_serve(&r->control, handle_request, r);
		run_view_show(&r->view, &r->status, mu_wall());
	}
	stop_all(r);
	run_view_clear(&r->view);
	if (interrupts && !has_ended(r))
		return CLI_INTERRUPTED;
	return r->status.phase == JOB_SUCCEEDED ? CLI_OK : CLI_FAILED;
}

/* ---- setup and summary ---- */

struct run_arguments {
	const char *manifest, *logs, *scale, *log_size;
	size_t log_limit; /* in bytes, from --log-size; 0: no limit */
	bool fresh;
};

/* Quotes a path for the shell if necessary. Returns a new string. */
static char *shell_word(const char *path)
{
	MU_AUTO_BUF word = {0};

	if (!path[strcspn(path, " \t'\"\\$&;|<>()*?[]`!#~")])
		return mu_xstrdup(path);
	mu_buf_putc(&word, '\'');
	for (; *path; path++)
		if (*path == '\'')
			mu_buf_puts(&word, "'\\''");
		else
			mu_buf_putc(&word, *path);
	mu_buf_putc(&word, '\'');
	return mu_buf_take(&word);
}

/* Prints "  COMMAND PATH". */
static void suggest(const char *command, const char *path)
{
	MU_AUTO_FREE char *word = shell_word(path);

	printf("  %s %s\n", command, word);
}

static void print_summary(const struct run *r, int status)
{
	const struct run_view *v = &r->view;
	MU_AUTO_FREE char *show_command =
	    mu_xasprintf("%s checkpoint show", program_invocation_name);
	MU_AUTO_FREE char *events_command = mu_xasprintf("%s events", program_invocation_name);

	if (status == CLI_INTERRUPTED && !v->progress.step)
		printf("%s: stopped\n", r->spec->name);
	else if (status == CLI_INTERRUPTED)
		printf("%s: stopped at step %lld; run it again to continue from there\n",
		       r->spec->name, (long long)v->progress.step);
	else
		run_view_outcome(v, &r->status, mu_wall() - r->started);
	run_view_results(v);
	printf("  logs           %s\n", r->logs);
	if (v->final && v->checkpoint[0]) {
		printf("Try next:\n");
		suggest(show_command, v->checkpoint);
	}
	if (v->final && v->events[0]) {
		suggest(events_command, v->events);
		suggest("tensorboard --logdir", r->spec->train.summary_path);
	}
}

static int make_folder(const char *path, struct mu_err *err)
{
	MU_AUTO_FREE char *all = mu_xasprintf("%s/", path);

	return mu_make_folders(all, err);
}

/* Locks the checkpoint folder before it is changed, renames the folders of an earlier run
 * (--fresh), then creates and locks the folders of this run. */
static int prepare_folders(struct run *r, const struct run_arguments *a, struct mu_err *err)
{
	const struct train_spec *t = &r->spec->train;
	const char *job = r->spec->name;
	struct mu_err unused;
	int rc = run_folders_lock(&r->folders, t->checkpoint_path, job, err);

	if (!rc && a->fresh)
		rc = run_folders_rename_old(t->checkpoint_path, err);
	if (!rc && a->fresh)
		rc = run_folders_rename_old(t->summary_path, err);
	if (a->logs)
		snprintf(r->logs, sizeof(r->logs), "%s", a->logs);
	else if (t->checkpoint_path)
		snprintf(r->logs, sizeof(r->logs), "%s/logs", t->checkpoint_path);
	else
		snprintf(r->logs, sizeof(r->logs), "muster-logs/%s", job);
	if (!rc)
		rc = make_folder(r->logs, err);
	/* Only an existing folder can be locked. A failure is ignored, because a command may not
	 * use the folder. */
	if (!rc && t->checkpoint_path)
		make_folder(t->checkpoint_path, &unused);
	if (!rc)
		rc = run_folders_lock(&r->folders, t->checkpoint_path, job, err);
	return rc ? rc : run_folders_lock(&r->folders, r->logs, job, err);
}

static int prepare(struct run *r, const struct run_arguments *a, struct mu_err *err)
{
	ssize_t n = readlink("/proc/self/exe", r->bin_dir, sizeof(r->bin_dir) - 1);
	int rc = 0;

	if (r->spec->suspend)
		return mu_doc_invalid(mu_doc_get(r->spec->doc->root, "spec.run.suspend"), err,
				      "is true, so nothing would start: remove it to run the job "
				      "on this machine");
	if ((rc = prepare_folders(r, a, err)))
		return rc;
	if (n > 0) {
		r->bin_dir[n] = 0;
		*strrchr(r->bin_dir, '/') = 0;
	}
	r->tasks = (struct run_tasks){.logs = r->logs,
				      .log_limit = a->log_limit,
				      .bin_dir = r->bin_dir,
				      .namespace = r->spec->namespace,
				      .threads = threads_per_task(r->spec),
				      .reports_step = r->spec->program == PROGRAM_COMMAND,
				      .line = on_line,
				      .user = r};
	run_view_init(&r->view, r->spec->name,
		      r->spec->program == PROGRAM_TRAIN ? r->spec->train.steps : 0);
	if (mu_doc_bool(r->spec->doc->root, "spec.security.mtls", false))
		run_view_print(&r->view,
			       "security.mtls is ignored: tasks on one machine communicate "
			       "over the loopback without TLS");
	return 0;
}

static bool read_log_size(struct run_arguments *a)
{
	const char *text = a->log_size;
	char *end;
	long mib = DEFAULT_LOG_MIB;

	if (text) {
		mib = strtol(text, &end, 10);
		if (*text < '0' || *text > '9' || *end || mib > MAX_LOG_MIB)
			return false;
	}
	a->log_limit = (size_t)mib << 20;
	return true;
}

/* Returns 0, or the exit status for a wrong command line. */
static int read_arguments(struct run_arguments *a, int argc, char **argv)
{
	const struct cli_option table[] = {{"logs", .value = &a->logs},
					   {"scale", .value = &a->scale},
					   {"log-size", .value = &a->log_size},
					   {"fresh", .flag = &a->fresh},
					   {NULL}};
	int n = cli_options("run", argc, argv, table, 1);

	if (n < 0)
		return CLI_USAGE;
	if (!read_log_size(a))
		return cli_usage("run", "--log-size must be a number of MiB, got '%s'",
				 a->log_size);
	if (!n)
		return cli_usage("run", "no manifest given");
	a->manifest = argv[0];
	return 0;
}

/* --scale: changes a running job. Returns 1 if the job is not running, so that it is started with
 * that number of tasks. */
static int scale_running(struct run *r, const struct run_arguments *a, struct mu_err *err)
{
	char request[CONTROL_LINE], reply[CONTROL_LINE];
	int rc;

	snprintf(request, sizeof(request), "scale %.200s", a->scale);
	rc = run_control_ask(r->spec->name, request, reply, sizeof(reply), err);
	if (rc == -(int)MU_NOT_FOUND)
		rc = scale_apply(r->spec, a->scale, reply, sizeof(reply), err) ? -1 : 1;
	else if (!rc)
		printf("%s: %s\n", r->spec->name, reply);
	return rc;
}

static int start_run(struct run *r, const struct run_arguments *a, struct mu_err *err)
{
	struct mu_err why;
	int rc = manifest_read(&r->spec, a->manifest, err);

	if (!rc)
		rc = validate_manifest(r->spec, err);
	if (!rc && r->spec->tensorboard) /* the last task; only clusters run it */
		r->spec->n_tasks--;
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
		run_view_print(&r->view, "muster scale cannot reach this job: %s", why.msg);
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
	if (signal(SIGHUP, SIG_IGN) != SIG_IGN) /* else nohup */
		sigaction(SIGHUP, &interrupt, NULL);
	signal(SIGPIPE, SIG_IGN);
	switch (start_run(&r, &a, &err)) {
	case 0: /* the job was running */
		break;
	case 1:
		status = run_loop(&r);
		run_control_close(&r.control);
		print_summary(&r, status);
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
