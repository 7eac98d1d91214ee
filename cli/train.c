/* SPDX-License-Identifier: Apache-2.0 */
/* muster train: one worker, chief or evaluator task of a job: the task server and the built-in
 * trainer in one process.
 *
 * TF_CONFIG contains the task and the cluster. MUSTER_TRAIN or a manifest contains the training
 * settings. Exit status: 0 goal reached, 138 cluster lost (the restart policy may retry), 143
 * stopped by a signal, 1 permanent failure.
 */
#include <cjson/cJSON.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/manifest.h"
#include "lib/base/log.h"
#include "lib/cluster/cluster_spec.h"
#include "muster/train.h"
#include "operator/plan/job_plan.h"
#include "task/server.h"

struct trainer_task {
	struct mu_cluster cluster;
	struct mu_self self;
	struct job_spec *spec;            /* from --manifest */
	struct mu_doc *doc;               /* from MUSTER_TRAIN */
	struct train_spec train;          /* the effective settings */
	const char *given_target;         /* --target: address of a running server */
	struct task_server *server;       /* NULL with --target */
	struct mu_progress last_progress; /* the last progress; step 0 if there was none */
};

/* Reasons for an early end of the training. */
enum { STOP_TERMINATED = 1, STOP_FINISH = 2 };
enum { SERVER_GRACE_MS = 2000 };
static volatile int stop_requested;

static void on_stop(int sig)
{
	stop_requested = STOP_TERMINATED;
}

static void on_finish(void *arg)
{
	stop_requested = STOP_FINISH;
}

static double round_to(double v, double power_of_ten)
{
	return round(v * power_of_ten) / power_of_ten;
}

/* The progress as in a job's status.progress. accuracy < 0: unknown. reason: END_UNKNOWN while the
 * training runs. */
static char *progress_json(const struct mu_progress *p, double accuracy, enum end_reason reason)
{
	cJSON *json = cJSON_CreateObject();
	char *text;

	cJSON_AddNumberToObject(json, "step", (double)p->step);
	cJSON_AddNumberToObject(json, "targetStep", (double)p->target);
	cJSON_AddNumberToObject(json, "stepsPerSecond", round_to(p->steps_per_second, 10));
	cJSON_AddNumberToObject(json, "examplesPerSecond", round_to(p->examples_per_second, 10));
	if (isfinite(p->loss))
		cJSON_AddNumberToObject(json, "loss", p->loss);
	if (accuracy >= 0)
		cJSON_AddNumberToObject(json, "accuracy", round_to(accuracy, 1e4));
	if (reason != END_UNKNOWN)
		cJSON_AddStringToObject(json, "reason", end_reason_names[reason]);
	text = cJSON_PrintUnformatted(json);
	cJSON_Delete(json);
	return text;
}

/* Reports progress on standard output and in the status of the server. */
static void report_progress(void *arg, const struct mu_progress *p)
{
	struct trainer_task *t = arg;
	MU_AUTO_FREE char *json = progress_json(p, -1, END_UNKNOWN);

	mu_print_progress(NULL, p);
	t->last_progress = *p;
	if (t->server)
		task_server_set_progress(t->server, json);
}

static enum end_reason end_reason(const struct mu_train_result *r)
{
	if (r->stopped_by_validation)
		return END_VALIDATION_STOPPED;
	if (!r->stopped)
		return END_TARGET_REACHED;
	return stop_requested == STOP_FINISH ? END_FINISH_REQUESTED : END_TERMINATED;
}

/* The loss of the final model; for a stopped training the loss of the last step. */
static double final_loss(const struct trainer_task *t, const struct mu_train_result *r)
{
	return isfinite(r->loss) || !t->last_progress.step ? r->loss : t->last_progress.loss;
}

/* Writes the final report to the container's termination message. The kubelet puts it into the
 * pod's status, so the operator gets it even if it never polled the trainer. The file exists only
 * in a pod. */
static void write_final_report(const struct trainer_task *t, const struct mu_train_result *r)
{
	const char *path = getenv("MUSTER_TERMINATION_LOG");
	struct mu_progress p = t->last_progress;
	MU_AUTO_FREE char *json = NULL;
	int fd = open(path ? path : "/dev/termination-log", O_WRONLY | O_TRUNC | O_CLOEXEC);

	if (fd < 0)
		return;
	p.loss = final_loss(t, r);
	p.step = r->step;
	p.target = t->train.steps;
	json = progress_json(&p, r->accuracy, end_reason(r));
	if (write(fd, json, strlen(json)) < 0)
		mu_warn("train", "write the final report to the termination message: %m");
	close(fd);
}

static int read_settings(struct trainer_task *t, const char *manifest, struct mu_err *err)
{
	const char *config = getenv("TF_CONFIG"), *train = getenv("MUSTER_TRAIN");
	int rc;

	if (!config)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "TF_CONFIG is not set: it must describe the cluster and this task; "
			       "'muster run' sets it");
	rc = mu_cluster_parse_tf_config(&t->cluster, &t->self, mu_span_of(config), err);
	if (rc)
		return rc;
	if (!mu_cluster_address(&t->cluster, t->self.job, t->self.index, err))
		return mu_wrap(err, "TF_CONFIG");
	if (manifest) {
		rc = manifest_read(&t->spec, manifest, err);
		if (!rc && t->spec->program != PROGRAM_TRAIN)
			rc = mu_fail(err, MU_INVALID_ARGUMENT, "%s: spec.program.train is missing",
				     manifest);
		if (!rc)
			t->train = t->spec->train;
		return rc;
	}
	if (!train)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "no training settings: set MUSTER_TRAIN or use --manifest");
	return train_spec_read(&t->train, &t->doc, mu_span_of(train), err);
}

/* The job whose task 0 is the chief. */
static const char *chief_job(const struct mu_cluster *c)
{
	return mu_cluster_job(c, "chief")    ? "chief"
	       : mu_cluster_job(c, "master") ? "master"
					     : "worker";
}

static bool is_chief(const struct mu_cluster *c, const struct mu_self *self)
{
	return strcmp(self->job, chief_job(c)) == 0 && self->index == 0;
}

/* All chiefs and workers are replicas; a step needs all of them except the backup workers. */
static int sync_options(const struct trainer_task *t, struct mu_sync_options *o, struct mu_err *err)
{
	const char *chief = chief_job(&t->cluster);
	int chiefs = strcmp(chief, "worker") == 0 ? 0 : mu_cluster_num_tasks(&t->cluster, chief);
	int workers = mu_cluster_num_tasks(&t->cluster, "worker") + chiefs;
	int aggregate = t->train.replicas_to_aggregate;

	/* A job that was scaled down may have fewer workers than backupWorkers of the manifest. */
	*o = (struct mu_sync_options){
	    .aggregate = (unsigned)aggregate,
	    .backup = (unsigned)(t->train.backup_workers < workers ? t->train.backup_workers : 0),
	    .workers = (unsigned)workers,
	    .self = (unsigned)(t->self.index + (strcmp(t->self.job, chief) == 0 ? 0 : chiefs))};
	return workers > 0
		   ? 0
		   : mu_fail(err, MU_INVALID_ARGUMENT, "mode sync needs a chief or a worker");
}

/* Converts the settings of the manifest to trainer options. */
static int to_options(struct trainer_task *t, struct mu_train_options *o, struct mu_err *err)
{
	const struct train_spec *s = &t->train;
	bool csv = s->format == DATASET_CSV;

	*o = (struct mu_train_options){
	    .csv = csv ? s->path : NULL,
	    .train_images = s->train_images,
	    .train_labels = s->train_labels,
	    .test_images = s->test_images,
	    .test_labels = s->test_labels,
	    .records = {.pattern = s->format > DATASET_IDX ? s->path : NULL,
			.feature = s->feature,
			.label = s->label,
			.skip_bad = s->skip_bad,
			.scale = s->scale},
	    .test_records = s->test_path,
	    .cifar10 = s->format == DATASET_CIFAR10,
	    .test_fraction = s->test_fraction,
	    .split_seed = (uint64_t)s->split_seed,
	    .scale = s->scale,
	    .model = s->model,
	    .n_hidden = s->n_hidden < MU_MAX_LAYERS ? s->n_hidden : MU_MAX_LAYERS,
	    .categorical = s->categorical,
	    .n_categorical = s->n_categorical,
	    .embedding = s->embedding,
	    .pairs = s->pairs,
	    .noise = s->noise,
	    .batch = s->batch_size,
	    .steps = s->steps,
	    .seed = s->seed,
	    .target = t->given_target ? t->given_target : task_server_target(t->server),
	    .job = t->self.job,
	    .index = t->self.index,
	    .n_ps = mu_cluster_num_tasks(&t->cluster, "ps"),
	    .chief = is_chief(&t->cluster, &t->self),
	    .evaluator = strcmp(t->self.job, "evaluator") == 0,
	    .checkpoint_folder = s->checkpoint_path,
	    .summary_folder = s->summary_path,
	    .checkpoint_seconds = (double)s->checkpoint_seconds,
	    .checkpoint_steps = s->checkpoint_steps,
	    .summary_steps = s->summary_steps,
	    .checkpoint_keep = (unsigned)s->checkpoint_keep,
	    .validation_steps = s->validation_steps,
	    .patience = (unsigned)s->patience,
	    .export_prefix = s->export_prefix,
	    .progress = report_progress,
	    .progress_arg = t,
	    .stop = &stop_requested,
	    .leave = getenv("MUSTER_LEAVE") != NULL,
	};
	if (s->sync && !o->evaluator && sync_options(t, &o->sync, err))
		return -(int)MU_INVALID_ARGUMENT;
	if (t->server)
		o->transport = (struct mu_transport){.call = task_server_call, .ctx = t->server};
	for (unsigned i = 0; i < o->n_hidden; i++)
		o->hidden[i] = s->hidden[i];
	if (mu_optimizer_named(s->optimizer, s->learning_rate, &o->optimizer, err))
		return -(int)MU_INVALID_ARGUMENT;
	o->optimizer.l2 = s->l2;
	o->optimizer.clip_norm = s->clip_norm;
	o->optimizer.schedule.kind = s->decay; /* the enums have the same order */
	o->optimizer.schedule.decay = s->decay_rate;
	o->optimizer.schedule.steps = s->decay_steps;
	if (o->optimizer.kind == MU_MOMENTUM)
		o->optimizer.momentum = s->momentum;
	return 0;
}

static int exit_status(int rc, const struct mu_err *err)
{
	cli_fail(err);
	switch (-rc) {
	case MU_UNAVAILABLE:
	case MU_ABORTED:
	case MU_CANCELLED:
	case MU_DEADLINE_EXCEEDED:
		return CLI_TRY_AGAIN;
	default:
		return CLI_FAILED;
	}
}

/* run_view.c parses this line for `muster run`. */
static void print_final_report(const struct trainer_task *t, const struct mu_train_result *r)
{
	double loss = final_loss(t, r);

	printf("%s step=%lld reason=%s checkpoint=%s events=%s", r->stopped ? "stopped" : "final",
	       (long long)r->step, end_reason_names[end_reason(r)], r->checkpoint, r->events);
	if (isfinite(loss))
		printf(" loss=%.6g", loss);
	if (r->accuracy >= 0)
		printf(" accuracy=%.4f", r->accuracy);
	putchar('\n');
	fflush(stdout);
}

static int run_training(struct trainer_task *t, struct mu_err *err)
{
	struct mu_train_options o;
	struct mu_train_result r = {.accuracy = -1, .loss = NAN};
	int rc = to_options(t, &o, err);

	if (!rc)
		rc = mu_train(&o, &r, err);
	/* A stop before the training is not a failure, except for a synchronous worker. That worker
	 * has not deregistered, so the operator must create a departure pod. */
	if (rc == -(int)MU_CANCELLED && stop_requested && !o.sync.workers)
		r.stopped = true;
	else if (rc)
		return exit_status(rc, err);
	if (o.chief && !rc) {
		write_final_report(t, &r);
		print_final_report(t, &r);
	}
	return !r.stopped || stop_requested == STOP_FINISH ? CLI_OK : CLI_TERMINATED;
}

/* *unsupported is set to true when the machine does not support the kernels. */
static int start_server(struct trainer_task *t, bool *unsupported, struct mu_err *err)
{
	char bind[TASK_SERVER_BIND];
	struct task_server_options o = {.cluster = &t->cluster,
					.job = t->self.job,
					.index = t->self.index,
					.http_port = -1,
					.finish = on_finish,
					.unsupported = unsupported};
	int rc = task_options_from_env(&o, bind, err);

	return rc ? rc : task_server_start(&o, &t->server, err);
}

static int serve_and_train(struct trainer_task *t, const char *manifest)
{
	struct mu_err err;
	int rc = read_settings(t, manifest, &err), status;
	bool unsupported = false;

	if (!rc && !t->given_target)
		rc = start_server(t, &unsupported, &err);
	if (unsupported) {
		cli_fail(&err);
		return MU_EXIT_KERNELS;
	}
	if (rc)
		return exit_status(rc, &err);
	status = run_training(t, &err);
	if (t->server)
		task_server_stop(t->server, SERVER_GRACE_MS);
	return status;
}

int cli_train(int argc, char **argv)
{
	struct trainer_task t = {.spec = NULL};
	struct sigaction stop = {.sa_handler = on_stop};
	const char *manifest = NULL;
	const struct cli_option table[] = {
	    {"manifest", .value = &manifest}, {"target", .value = &t.given_target}, {NULL}};
	int status;

	if (cli_options("train", argc, argv, table, 0) < 0)
		return CLI_USAGE;
	sigaction(SIGTERM, &stop, NULL);
	sigaction(SIGINT, &stop, NULL);
	signal(SIGPIPE, SIG_IGN);
	status = serve_and_train(&t, manifest);
	mu_cluster_fini(&t.cluster);
	job_spec_free(t.spec);
	mu_doc_free(t.doc);
	return status;
}
