/* SPDX-License-Identifier: Apache-2.0 */
/* Reading goes section by section (one function each), in the order of the manifest; what needs
 * several sections at once is checked at the end, in check_whole. */
#include "operator/api/job_spec_internal.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>

#include "lib/base/rfc3339.h"
#include "lib/io/yaml.h"

const char *const restart_policy_names[] = {"Never", "OnFailure", "Always", "ExitCode", NULL};
const char *const clean_policy_names[] = {"None", "Running", "All", NULL};
static const char *const gang_names[] = {"none", "volcano", "scheduler-plugins", "kueue", NULL};
static const char *const success_policy_names[] = {"Chief", "AllWorkers", NULL};
const char *const dataset_format_names[] = {"csv", "idx", "cifar10", "tfrecord", NULL};

enum { MAX_COMMAND = 256, MAX_CLAIM = 253 };

static int read_metadata(struct job_spec *s, struct mu_err *err)
{
	struct mu_doc_node *root = s->doc->root, *meta = NULL;
	const char *version = NULL, *kind = NULL, *created = NULL, *deleted = NULL;
	int rc;

	if (root->kind != MU_DOC_MAP)
		return mu_doc_fail(root, err, MU_INVALID_ARGUMENT, "must be a map, got %s",
				   mu_doc_kind_name(root->kind));
	if ((rc = mu_doc_opt_text(root, "apiVersion", &version, err)) ||
	    (rc = mu_doc_opt_text(root, "kind", &kind, err)) ||
	    (rc = mu_doc_opt_map(root, "metadata", &meta, err)))
		return rc;
	if (!version || strcmp(version, JOB_API_VERSION))
		return mu_doc_fail(root, err, MU_INVALID_ARGUMENT,
				   "apiVersion: must be " JOB_API_VERSION ", got '%.60s'",
				   version ? version : "");
	if (!kind || strcmp(kind, JOB_KIND))
		return mu_doc_fail(root, err, MU_INVALID_ARGUMENT,
				   "kind: must be " JOB_KIND ", got '%.60s'", kind ? kind : "");
	s->namespace = "default";
	s->uid = "";
	if ((rc = mu_doc_opt_text(meta, "name", &s->name, err)) ||
	    (rc = mu_doc_opt_text(meta, "namespace", &s->namespace, err)) ||
	    (rc = mu_doc_opt_text(meta, "uid", &s->uid, err)) ||
	    (rc = mu_doc_opt_text(meta, "creationTimestamp", &created, err)) ||
	    (rc = mu_doc_opt_text(meta, "deletionTimestamp", &deleted, err)) ||
	    (rc = mu_doc_opt_int(meta, "generation", 0, INT64_MAX, &s->generation, err)))
		return rc;
	s->created = mu_rfc3339_read(created);
	s->deleting = deleted != NULL;
	if (!s->name)
		return mu_doc_fail(meta ? meta : root, err, MU_INVALID_ARGUMENT,
				   "the job needs a metadata.name");
	if (!spec_is_label(s->name) || !islower((unsigned char)s->name[0]))
		return mu_doc_fail(mu_doc_key(meta, "name"), err, MU_INVALID_ARGUMENT,
				   "must be lower-case letters, digits and '-', beginning with a "
				   "letter and at most 63 long, got '%.80s'",
				   s->name);
	if (!spec_is_label(s->namespace))
		return mu_doc_fail(mu_doc_key(meta, "namespace"), err, MU_INVALID_ARGUMENT,
				   "is no namespace: '%.80s'", s->namespace);
	return 0;
}

static int check_strings(const struct mu_doc_node *list, struct mu_err *err)
{
	if (list && (list->n == 0 || list->n > MAX_COMMAND))
		return mu_doc_fail(list, err, MU_INVALID_ARGUMENT,
				   "must hold between 1 and %d strings, got %u", MAX_COMMAND,
				   list->n);
	mu_doc_each(list, c) if (c->kind != MU_DOC_STRING ||
				 strlen(c->text) !=
				     c->len) return mu_doc_fail(c, err, MU_INVALID_ARGUMENT,
								"must be a string, got %s",
								mu_doc_kind_name(c->kind));
	return 0;
}

static int read_program(struct job_spec *s, const struct mu_doc_node *spec, struct mu_err *err)
{
	static const char *const known[] = {"train", "command", "args", "classicFlags", NULL};
	struct mu_doc_node *p, *train, *command, *args;
	int rc;

	if ((rc = mu_doc_opt_map(spec, "program", &p, err)) ||
	    (rc = mu_doc_known_keys(p, known, err)) ||
	    (rc = mu_doc_opt_map(p, "train", &train, err)) ||
	    (rc = mu_doc_opt_list(p, "command", &command, err)) ||
	    (rc = mu_doc_opt_list(p, "args", &args, err)) ||
	    (rc = mu_doc_opt_bool(p, "classicFlags", &s->flags, err)) ||
	    (rc = check_strings(command, err)) || (rc = check_strings(args, err)))
		return rc;
	if (train && command)
		return mu_doc_fail(p, err, MU_INVALID_ARGUMENT,
				   "must have only one of train and command");
	if (args && !command)
		return mu_doc_fail(args, err, MU_INVALID_ARGUMENT, "needs a command beside it");
	s->command = command;
	s->args = args;
	s->program = train ? PROGRAM_TRAIN : command ? PROGRAM_COMMAND : PROGRAM_NONE;
	return train ? job_spec_read_train(&s->train, train, err) : 0;
}

static int read_mode(struct job_spec *s, const struct mu_doc_node *spec, struct mu_err *err)
{
	static const char *const modes[] = {"async", "sync", NULL};
	static const char *const known[] = {"replicasToAggregate", "backupWorkers", NULL};
	int64_t aggregate = 0, backup = 0;
	struct mu_doc_node *sync;
	int mode = 0, rc;

	if ((rc = mu_doc_opt_choice(spec, "mode", modes, &mode, err)) ||
	    (rc = mu_doc_opt_map(spec, "sync", &sync, err)) ||
	    (rc = mu_doc_known_keys(sync, known, err)) ||
	    (rc = mu_doc_opt_int(sync, "replicasToAggregate", 1, JOB_MAX_REPLICAS, &aggregate,
				 err)) ||
	    (rc = mu_doc_opt_int(sync, "backupWorkers", 0, JOB_MAX_REPLICAS, &backup, err)))
		return rc;
	if (sync && mode != 1)
		return mu_doc_fail(sync, err, MU_INVALID_ARGUMENT, "needs mode: sync");
	s->train.sync = mode == 1;
	s->train.replicas_to_aggregate = (int)aggregate;
	s->train.backup_workers = (int)backup;
	return 0;
}

static int read_checkpoint(struct job_spec *s, const struct mu_doc_node *spec, struct mu_err *err)
{
	static const char *const known[] = {"path",       "volumeClaim", "everySeconds",
					    "everySteps", "keep",        NULL};
	static const char *const known_summaries[] = {"path", "everySteps", NULL};
	struct train_spec *t = &s->train;
	struct mu_doc_node *c, *sum;
	int64_t keep = 5;
	int rc;

	t->checkpoint_seconds = -1;
	if ((rc = mu_doc_opt_map(spec, "checkpoint", &c, err)) ||
	    (rc = mu_doc_known_keys(c, known, err)) ||
	    (rc = mu_doc_opt_text(c, "path", &t->checkpoint_path, err)) ||
	    (rc = mu_doc_opt_text(c, "volumeClaim", &s->volume_claim, err)) ||
	    (rc = mu_doc_opt_int(c, "everySeconds", 1, INT32_MAX, &t->checkpoint_seconds, err)) ||
	    (rc = mu_doc_opt_int(c, "everySteps", 1, INT64_MAX / 2, &t->checkpoint_steps, err)) ||
	    (rc = mu_doc_opt_int(c, "keep", 1, 1000000, &keep, err)))
		return rc;
	if (s->volume_claim && !spec_is_name(s->volume_claim, "-.", MAX_CLAIM))
		return mu_doc_fail(mu_doc_key(c, "volumeClaim"), err, MU_INVALID_ARGUMENT,
				   "'%.60s' is no name of a PersistentVolumeClaim",
				   s->volume_claim);
	if (c && !t->checkpoint_path && !s->volume_claim)
		return mu_doc_fail(c, err, MU_INVALID_ARGUMENT,
				   "needs a path, a volumeClaim or both");
	if (s->volume_claim && !t->checkpoint_path)
		t->checkpoint_path = JOB_VOLUME_PATH;
	if (t->checkpoint_seconds < 0) /* by time unless by steps */
		t->checkpoint_seconds = t->checkpoint_steps ? 0 : 60;
	t->checkpoint_keep = (int)keep;
	t->summary_steps = 100;
	if ((rc = mu_doc_opt_map(spec, "summaries", &sum, err)) ||
	    (rc = mu_doc_known_keys(sum, known_summaries, err)) ||
	    (rc = mu_doc_opt_text(sum, "path", &t->summary_path, err)) ||
	    (rc = mu_doc_opt_int(sum, "everySteps", 1, INT64_MAX / 2, &t->summary_steps, err)))
		return rc;
	if (sum && !t->summary_path)
		return mu_doc_fail(sum, err, MU_INVALID_ARGUMENT, "needs a path");
	return 0;
}

static int read_run(struct job_spec *s, const struct mu_doc_node *spec, struct mu_err *err)
{
	static const char *const known[] = {"restartPolicy",
					    "backoffLimit",
					    "schedulingDeadlineSeconds",
					    "activeDeadlineSeconds",
					    "progressDeadlineSeconds",
					    "ttlSecondsAfterFinished",
					    "cleanPodPolicy",
					    "suspend",
					    "successPolicy",
					    "gang",
					    "queue",
					    "priorityClass",
					    NULL};
	int restart = RESTART_EXIT_CODE, clean = CLEAN_RUNNING, success = SUCCESS_CHIEF, gang = 0;
	int64_t backoff = 20;
	struct mu_doc_node *run;
	int rc;

	s->ttl_seconds = s->active_deadline = s->scheduling_deadline = s->progress_deadline = -1;
	if ((rc = mu_doc_opt_map(spec, "run", &run, err)) ||
	    (rc = mu_doc_known_keys(run, known, err)) ||
	    (rc = mu_doc_opt_choice(run, "restartPolicy", restart_policy_names, &restart, err)) ||
	    (rc = mu_doc_opt_choice(run, "cleanPodPolicy", clean_policy_names, &clean, err)) ||
	    (rc = mu_doc_opt_choice(run, "successPolicy", success_policy_names, &success, err)) ||
	    (rc = mu_doc_opt_choice(run, "gang", gang_names, &gang, err)) ||
	    (rc = mu_doc_opt_bool(run, "suspend", &s->suspend, err)) ||
	    (rc = mu_doc_opt_int(run, "backoffLimit", 0, 100000, &backoff, err)) ||
	    (rc = mu_doc_opt_int(run, "ttlSecondsAfterFinished", 0, INT32_MAX, &s->ttl_seconds,
				 err)) ||
	    (rc = mu_doc_opt_int(run, "activeDeadlineSeconds", 1, INT32_MAX, &s->active_deadline,
				 err)) ||
	    (rc = mu_doc_opt_int(run, "schedulingDeadlineSeconds", 1, INT32_MAX,
				 &s->scheduling_deadline, err)) ||
	    (rc = mu_doc_opt_int(run, "progressDeadlineSeconds", 1, INT32_MAX,
				 &s->progress_deadline, err)))
		return rc;
	s->queue = mu_doc_text(run, "queue", NULL);
	s->priority_class = mu_doc_text(run, "priorityClass", NULL);
	s->gang = (enum gang_kind)gang;
	if (s->gang == GANG_NONE && (s->queue || s->priority_class))
		return mu_doc_fail(run, err, MU_INVALID_ARGUMENT,
				   "queue and priorityClass are the gang scheduler's: say gang");
	if (s->gang == GANG_KUEUE && !s->queue)
		return mu_doc_fail(run, err, MU_INVALID_ARGUMENT, "gang: kueue needs a queue");
	s->restart = (enum restart_policy)restart;
	s->clean = (enum clean_policy)clean;
	s->success = (enum success_policy)success;
	s->backoff_limit = (int)backoff;
	return 0;
}

static int read_security(struct job_spec *s, const struct mu_doc_node *spec, struct mu_err *err)
{
	static const char *const known[] = {"mtls", "networkPolicy", NULL};
	struct mu_doc_node *n;
	int rc;

	/* a command may start servers that know no TLS, and servers alone are called from outside
	 */
	s->mtls = s->network_policy = s->program == PROGRAM_TRAIN;
	if ((rc = mu_doc_opt_map(spec, "security", &n, err)) ||
	    (rc = mu_doc_known_keys(n, known, err)) ||
	    (rc = mu_doc_opt_bool(n, "mtls", &s->mtls, err)) ||
	    (rc = mu_doc_opt_bool(n, "networkPolicy", &s->network_policy, err)))
		return rc;
	return 0;
}

/* Linux starts no program with a longer string in its environment. */
enum { ENV_STRING_MAX = 128 << 10 };

/* How many digits 0, 1 … n-1 have. */
static size_t digits_below(size_t n)
{
	size_t digits = n;

	for (size_t ten = 10; ten < n; ten *= 10)
		digits += n - ten;
	return digits;
}

/* How long TF_CONFIG becomes: "NAME-TASK-INDEX.NAME.NAMESPACE.svc:PORT", for each task. */
static size_t told_size(const struct job_spec *s)
{
	static const char around[] =
	    "TF_CONFIG={\"cluster\":{},\"task\":{\"type\":\"evaluator\",\"index\":1000}}";
	size_t host = 2 * strlen(s->name) + strlen(s->namespace) + strlen("\"--..svc:22222\",");
	size_t n = sizeof(around);

	for (unsigned i = 0; i < s->n_tasks; i++) {
		const struct task_spec *t = &s->tasks[i];
		size_t count = t->kind == TASK_BOARD ? 0 : (size_t)t->replicas;

		n += strlen(t->name) + strlen("\"\":[],") + digits_below(count) +
		     count * (host + strlen(t->name));
	}
	return n;
}

static int check_whole(struct job_spec *s, const struct mu_doc_node *spec, struct mu_err *err)
{
	const struct task_spec *ps = job_spec_task(s, "ps"), *chief = job_spec_chief(s);
	unsigned chiefs = 0;

	for (unsigned i = 0; i < s->n_tasks; i++)
		chiefs += s->tasks[i].kind == TASK_CHIEF;
	if (chiefs > 1)
		return mu_doc_fail(mu_doc_key(spec, "tasks"), err, MU_INVALID_ARGUMENT,
				   "must have only one of chief and master");
	if (s->program == PROGRAM_TRAIN && (!ps || !ps->replicas))
		return mu_doc_fail(mu_doc_key(spec, "tasks"), err, MU_INVALID_ARGUMENT,
				   "the ready-made trainer needs at least one ps");
	if (s->program == PROGRAM_TRAIN && !chief)
		return mu_doc_fail(mu_doc_key(spec, "tasks"), err, MU_INVALID_ARGUMENT,
				   "the ready-made trainer needs a worker");
	if (s->success == SUCCESS_ALL_WORKERS && !job_spec_task(s, "worker"))
		return mu_doc_fail(mu_doc_key(spec, "tasks"), err, MU_INVALID_ARGUMENT,
				   "successPolicy AllWorkers needs worker tasks");
	if (told_size(s) > ENV_STRING_MAX)
		return mu_doc_fail(
		    mu_doc_key(spec, "tasks"), err, MU_INVALID_ARGUMENT,
		    "need %zu KiB of addresses, and a program can be told of %d KiB: "
		    "have fewer replicas, or a shorter name of the job",
		    told_size(s) >> 10, ENV_STRING_MAX >> 10);
	return 0;
}

static int read_all(struct job_spec *s, struct mu_err *err)
{
	static const char *const known[] = {"program",     "mode",      "sync", "tasks",
					    "checkpoint",  "summaries", "run",  "security",
					    "tensorboard", "managedBy", NULL};
	struct mu_doc_node *spec;
	int rc;

	if ((rc = read_metadata(s, err)) || (rc = mu_doc_opt_map(s->doc->root, "spec", &spec, err)))
		return rc;
	if (!spec)
		return mu_doc_fail(s->doc->root, err, MU_INVALID_ARGUMENT, "the job needs a spec");
	if ((rc = mu_doc_known_keys(spec, known, err)) ||
	    (rc = mu_doc_opt_text(spec, "managedBy", &s->managed_by, err)) ||
	    (rc = read_program(s, spec, err)) || (rc = read_mode(s, spec, err)) ||
	    (rc = read_checkpoint(s, spec, err)) || (rc = read_run(s, spec, err)) ||
	    (rc = job_spec_read_tasks(s, spec, err)) || (rc = read_security(s, spec, err)) ||
	    (rc = job_spec_read_tensorboard(s, spec, err)))
		return rc;
	return check_whole(s, spec, err);
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

bool job_spec_is_foreign(const struct job_spec *s)
{
	return s->managed_by && strcmp(s->managed_by, JOB_CONTROLLER) != 0;
}

void job_spec_free(struct job_spec *s)
{
	if (!s)
		return;
	mu_doc_free(s->doc);
	free(s);
}

const struct task_spec *job_spec_task(const struct job_spec *s, const char *name)
{
	for (unsigned i = 0; i < s->n_tasks; i++)
		if (strcmp(s->tasks[i].name, name) == 0)
			return &s->tasks[i];
	return NULL;
}

const struct task_spec *job_spec_chief(const struct job_spec *s)
{
	for (unsigned i = 0; i < s->n_tasks; i++) /* a chief sorts before workers */
		if (s->tasks[i].kind == TASK_CHIEF || s->tasks[i].kind == TASK_WORKER)
			return &s->tasks[i];
	return NULL;
}
