/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a manifest: a table of fields and a check for each section, then check_across_sections for
 * the rules that involve several. */
#include "operator/api/job_spec.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>

#include "lib/base/rfc3339.h"
#include "lib/io/yaml.h"

const char *const clean_policy_names[] = {"None", "Running", "All", NULL};
static const char *const mode_names[] = {"async", "sync", NULL};
static const char *const gang_names[] = {"none", "volcano", "scheduler-plugins", "kueue", NULL};
static const char *const success_policy_names[] = {"Chief", "AllWorkers", NULL};

enum { MAX_COMMAND = 256, MAX_CLAIM = 253 };

static int read_metadata(struct job_spec *s, struct mu_err *err)
{
	struct mu_doc_node *root = s->doc->root, *meta = NULL;
	const char *version, *kind;
	int rc;

	if (root->kind != MU_DOC_MAP)
		return mu_doc_invalid(root, err, "must be a map, got %s",
				      mu_doc_kind_name(root->kind));
	version = mu_doc_text(root, "apiVersion", "");
	kind = mu_doc_text(root, "kind", "");
	if (strcmp(version, JOB_API_VERSION) != 0)
		return mu_doc_invalid(
		    root, err, "apiVersion: must be " JOB_API_VERSION ", got '%.60s'", version);
	if (strcmp(kind, JOB_KIND) != 0)
		return mu_doc_invalid(root, err, "kind: must be " JOB_KIND ", got '%.60s'", kind);
	s->namespace = "default";
	if ((rc = mu_doc_opt_map(root, "metadata", &meta, err)) ||
	    (rc = mu_doc_opt_text(meta, "name", &s->name, err)) ||
	    (rc = mu_doc_opt_text(meta, "namespace", &s->namespace, err)))
		return rc;
	/* the API server writes these */
	s->uid = mu_doc_text(meta, "uid", "");
	s->generation = mu_doc_int(meta, "generation", 0);
	if (!s->name)
		return mu_doc_invalid(meta ? meta : root, err, "the job needs a metadata.name");
	if (!spec_is_label(s->name) || !islower((unsigned char)s->name[0]))
		return mu_doc_invalid(
		    mu_doc_key(meta, "name"), err,
		    "must be lower-case letters, digits and '-', beginning with a "
		    "letter and at most 63 long, got '%.80s'",
		    s->name);
	if (!spec_is_label(s->namespace))
		return mu_doc_invalid(mu_doc_key(meta, "namespace"), err,
				      "is not a valid name of a namespace: '%.80s'", s->namespace);
	return 0;
}

static int check_strings(const struct mu_doc_node *list, struct mu_err *err)
{
	if (list && (list->n == 0 || list->n > MAX_COMMAND))
		return mu_doc_invalid(list, err, "must hold between 1 and %d strings, got %u",
				      MAX_COMMAND, list->n);
	mu_doc_each(list, c)
	{
		if (c->kind != MU_DOC_STRING || strlen(c->text) != c->len)
			return mu_doc_invalid(c, err, "must be a string, got %s",
					      mu_doc_kind_name(c->kind));
	}
	return 0;
}

static const struct field program_fields[] = {
    {"train", FIELD_SECTION, AT(job_spec, train), .section = train_fields},
    {"command", FIELD_LIST, AT(job_spec, command)},
    {"args", FIELD_LIST, AT(job_spec, args)},
    {"classicFlags", FIELD_BOOL, AT(job_spec, classic_flags)},
    {NULL}};
static const struct field sync_fields[] = {
    {"replicasToAggregate", FIELD_INT, AT(job_spec, train.replicas_to_aggregate), .min = 1,
     .max = JOB_MAX_REPLICAS},
    {"backupWorkers", FIELD_INT, AT(job_spec, train.backup_workers), .min = 0,
     .max = JOB_MAX_REPLICAS},
    {NULL}};
static const struct field checkpoint_fields[] = {
    {"path", FIELD_TEXT, AT(job_spec, train.checkpoint_path)},
    {"volumeClaim", FIELD_TEXT, AT(job_spec, volume_claim)},
    {"everySeconds", FIELD_INT64, AT(job_spec, train.checkpoint_seconds), .min = 1,
     .max = INT32_MAX},
    {"everySteps", FIELD_INT64, AT(job_spec, train.checkpoint_steps), .min = 1,
     .max = INT64_MAX / 2},
    {"keep", FIELD_INT, AT(job_spec, train.checkpoint_keep), .min = 1, .max = 1000000},
    {NULL}};
static const struct field summary_fields[] = {
    {"path", FIELD_TEXT, AT(job_spec, train.summary_path)},
    {"everySteps", FIELD_INT64, AT(job_spec, train.summary_steps), .min = 1, .max = INT64_MAX / 2},
    {NULL}};
static const struct field run_fields[] = {
    {"restartPolicy", FIELD_ENUM, AT(job_spec, restart), .names = restart_policy_names},
    {"cleanPodPolicy", FIELD_ENUM, AT(job_spec, clean), .names = clean_policy_names},
    {"successPolicy", FIELD_ENUM, AT(job_spec, success), .names = success_policy_names},
    {"gang", FIELD_ENUM, AT(job_spec, gang), .names = gang_names},
    {"queue", FIELD_TEXT, AT(job_spec, queue)},
    {"priorityClass", FIELD_TEXT, AT(job_spec, priority_class)},
    {"suspend", FIELD_BOOL, AT(job_spec, suspend)},
    {"backoffLimit", FIELD_INT, AT(job_spec, backoff_limit), .min = 0, .max = 100000},
    {"ttlSecondsAfterFinished", FIELD_INT64, AT(job_spec, ttl_seconds), .min = 0, .max = INT32_MAX},
    {"activeDeadlineSeconds", FIELD_INT64, AT(job_spec, active_deadline), .min = 1,
     .max = INT32_MAX},
    {"schedulingDeadlineSeconds", FIELD_INT64, AT(job_spec, scheduling_deadline), .min = 1,
     .max = INT32_MAX},
    {"progressDeadlineSeconds", FIELD_INT64, AT(job_spec, progress_deadline), .min = 1,
     .max = INT32_MAX},
    {NULL}};
static const struct field security_fields[] = {
    {"mtls", FIELD_BOOL, AT(job_spec, mtls)},
    {"networkPolicy", FIELD_BOOL, AT(job_spec, network_policy)},
    {NULL}};
static const struct field tensorboard_fields[] = {
    {"enabled", FIELD_BOOL, AT(job_spec, tensorboard)},
    {"image", FIELD_TEXT, AT(job_spec, tensorboard_image)},
    {NULL}};
static const struct field spec_fields[] = {
    {"program", FIELD_SECTION, .section = program_fields},
    {"mode", FIELD_ENUM, AT(job_spec, mode), .names = mode_names},
    {"sync", FIELD_SECTION, .section = sync_fields},
    {.key = "tasks"},
    {"run", FIELD_SECTION, .section = run_fields},
    {"checkpoint", FIELD_SECTION, .section = checkpoint_fields},
    {"summaries", FIELD_SECTION, .section = summary_fields},
    {"security", FIELD_SECTION, .section = security_fields},
    {"tensorboard", FIELD_SECTION, .section = tensorboard_fields},
    {.key = "managedBy"},
    {NULL}};

static void set_defaults(struct job_spec *s, const struct mu_doc_node *spec)
{
	const struct mu_doc_node *train = mu_doc_section(spec, "program.train");

	train_spec_init(&s->train, train);
	s->train.checkpoint_seconds = -1;
	s->program = train                                     ? PROGRAM_TRAIN
		     : mu_doc_section(spec, "program.command") ? PROGRAM_COMMAND
							       : PROGRAM_NONE;
	s->restart = RESTART_EXIT_CODE;
	s->clean = CLEAN_RUNNING;
	s->backoff_limit = 20;
	s->ttl_seconds = s->active_deadline = s->scheduling_deadline = s->progress_deadline = -1;
	/* for program.train only: a command may start servers without TLS, and servers without a
	 * program have clients outside the job */
	s->mtls = s->network_policy = s->program == PROGRAM_TRAIN;
}

static int check_program(struct job_spec *s, const struct mu_doc_node *spec, struct mu_err *err)
{
	const struct mu_doc_node *train = mu_doc_section(spec, "program.train");
	int rc;

	if ((rc = check_strings(s->command, err)) || (rc = check_strings(s->args, err)))
		return rc;
	if (train && s->command)
		return mu_doc_invalid(train->parent, err,
				      "must have only one of train and command");
	if (!s->command && s->args)
		return mu_doc_invalid(s->args, err, "needs a command");
	return train ? train_spec_check(&s->train, train, err) : 0;
}

static int check_checkpoint(struct job_spec *s, const struct mu_doc_node *spec, struct mu_err *err)
{
	const struct mu_doc_node *c = mu_doc_section(spec, "checkpoint");
	const struct mu_doc_node *summaries = mu_doc_section(spec, "summaries");
	struct train_spec *t = &s->train;

	if (s->volume_claim && !spec_is_name(s->volume_claim, "-.", MAX_CLAIM))
		return mu_doc_invalid(mu_doc_key(c, "volumeClaim"), err,
				      "'%.60s' is not a valid name of a PersistentVolumeClaim",
				      s->volume_claim);
	if (c && !t->checkpoint_path && !s->volume_claim)
		return mu_doc_invalid(c, err, "needs a path, a volumeClaim or both");
	if (summaries && !t->summary_path)
		return mu_doc_invalid(summaries, err, "needs a path");
	if (s->volume_claim && !t->checkpoint_path)
		t->checkpoint_path = JOB_VOLUME_PATH;
	if (t->checkpoint_seconds < 0) /* by time unless by steps */
		t->checkpoint_seconds =
		    t->checkpoint_steps ? 0 : train_spec_defaults.checkpoint_seconds;
	return 0;
}

static int check_run(const struct job_spec *s, const struct mu_doc_node *spec, struct mu_err *err)
{
	const struct mu_doc_node *run = mu_doc_section(spec, "run");

	if (s->gang == GANG_NONE && (s->queue || s->priority_class))
		return mu_doc_invalid(
		    run, err, "queue and priorityClass belong to a gang scheduler: set run.gang");
	if (s->gang == GANG_KUEUE && !s->queue)
		return mu_doc_invalid(run, err, "gang: kueue needs a queue");
	return 0;
}

/* MAX_ARG_STRLEN of Linux: execve fails for a longer string of the environment. */
enum { ENV_STRING_MAX = 128 << 10 };

/* The size of TF_CONFIG, which has "NAME-TASK-INDEX.NAME.NAMESPACE.svc:PORT" for each task. */
static size_t tf_config_size(const struct job_spec *s)
{
	static const char fixed_part[] =
	    "TF_CONFIG={\"cluster\":{},\"task\":{\"type\":\"evaluator\",\"index\":1000}}";
	size_t host = 2 * strlen(s->name) + strlen(s->namespace) + strlen("\"--999..svc:22222\",");
	size_t n = sizeof(fixed_part);

	for (unsigned i = 0; i < s->n_tasks; i++) {
		const struct task_spec *t = &s->tasks[i];
		size_t count = t->kind == TASK_TENSORBOARD ? 0 : (size_t)t->replicas;

		n += strlen(t->name) + strlen("\"\":[],") + count * (host + strlen(t->name));
	}
	return n;
}

static int check_across_sections(struct job_spec *s, const struct mu_doc_node *spec,
				 struct mu_err *err)
{
	const struct task_spec *ps = job_spec_task(s, "ps"), *chief = job_spec_chief(s);
	const struct mu_doc_node *tasks = mu_doc_key(spec, "tasks");
	unsigned chiefs = 0;

	for (unsigned i = 0; i < s->n_tasks; i++)
		chiefs += s->tasks[i].kind == TASK_CHIEF;
	if (chiefs > 1)
		return mu_doc_invalid(tasks, err, "must have only one of chief and master");
	if (s->program == PROGRAM_TRAIN && (!ps || !ps->replicas))
		return mu_doc_invalid(tasks, err, "program.train needs at least one ps");
	if (s->program == PROGRAM_TRAIN && !chief)
		return mu_doc_invalid(tasks, err, "program.train needs a worker or a chief");
	if (s->success == SUCCESS_ALL_WORKERS && !job_spec_task(s, "worker"))
		return mu_doc_invalid(tasks, err, "successPolicy AllWorkers needs worker tasks");
	if (tf_config_size(s) > ENV_STRING_MAX)
		return mu_doc_invalid(
		    tasks, err,
		    "need %zu KiB of addresses, but one environment variable holds %d KiB: "
		    "reduce the replicas or shorten metadata.name",
		    tf_config_size(s) >> 10, ENV_STRING_MAX >> 10);
	return 0;
}

static int read_all(struct job_spec *s, struct mu_err *err)
{
	struct mu_doc_node *spec;
	int rc;

	if ((rc = read_metadata(s, err)) || (rc = mu_doc_opt_map(s->doc->root, "spec", &spec, err)))
		return rc;
	if (!spec)
		return mu_doc_invalid(s->doc->root, err, "the job needs a spec");
	set_defaults(s, spec);
	if ((rc = fields_read(spec, spec_fields, s, err)))
		return rc;
	s->train.sync = s->mode == MODE_SYNC;
	if (!s->train.sync && mu_doc_section(spec, "sync"))
		return mu_doc_invalid(mu_doc_section(spec, "sync"), err, "needs mode: sync");
	if ((rc = check_program(s, spec, err)) || (rc = check_checkpoint(s, spec, err)) ||
	    (rc = check_run(s, spec, err)) || (rc = job_spec_read_tasks(s, spec, err)) ||
	    (rc = job_spec_add_tensorboard(s, mu_doc_section(spec, "tensorboard"), err)))
		return rc;
	return check_across_sections(s, spec, err);
}

int job_spec_from_doc(struct job_spec **out, struct mu_doc *doc, struct mu_err *err)
{
	struct job_spec *s = MU_NEW(struct job_spec);

	s->doc = doc;
	int rc = read_all(s, err);
	if (rc)
		job_spec_free(s);
	else
		*out = s;
	return rc;
}

int job_spec_parse(struct job_spec **out, struct mu_span text, const char *source,
		   struct mu_err *err)
{
	struct mu_doc *doc;
	int rc = mu_yaml_parse(&doc, text, source, err);

	return rc ? rc : job_spec_from_doc(out, doc, err);
}

void job_spec_free(struct job_spec *s)
{
	if (!s)
		return;
	mu_doc_free(s->doc);
	free(s);
}
