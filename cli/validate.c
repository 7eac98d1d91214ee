/* SPDX-License-Identifier: Apache-2.0 */
/* muster validate: rejects the same manifests as the API server, with file, line and the expected
 * value. With --plan it prints what the operator would do. */
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/manifest.h"
#include "operator/plan/job_plan.h"

/* ---- checks of the API server in pod templates ---- */

static const char quantity_pattern[] = "^[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)"
				       "([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$";
static const char label_name_pattern[] = "^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?"
					 "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$";
static const char managed_by_pattern[] = "^[a-z0-9]([-.a-z0-9]*[a-z0-9])?/[-._a-zA-Z0-9]+$";
static const char label_value_pattern[] = "^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$";

static bool matches(const char *text, const char *pattern)
{
	regex_t re;
	bool is_match;

	if (regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB) != 0)
		return false;
	is_match = regexec(&re, text, 0, NULL, 0) == 0;
	regfree(&re);
	return is_match;
}

/* The quantity of a task is an integer or a string; that of a container may be any number. */
static bool is_quantity(const struct mu_doc_node *q, bool is_task_spec)
{
	if (q->kind == MU_DOC_STRING)
		return matches(q->text, quantity_pattern);
	return q->kind == MU_DOC_INT ||
	       (q->kind == MU_DOC_FLOAT && (!is_task_spec || q->f == (double)q->i));
}

static int check_quantities(const struct mu_doc_node *resources, bool is_task_spec,
			    struct mu_err *err)
{
	static const char *const keys[] = {"limits", "requests", NULL};
	int rc = is_task_spec ? mu_doc_known_keys(resources, keys, err) : 0;

	for (unsigned i = 0; keys[i] && rc == 0; i++) {
		struct mu_doc_node *quantities = NULL;

		rc = mu_doc_opt_map(resources, keys[i], &quantities, err);
		mu_doc_each(quantities, q)
		{
			if (rc == 0 && !is_quantity(q, is_task_spec))
				rc = mu_doc_invalid(
				    q, err,
				    "must be a quantity such as 500m, 2, '1.5' or 4Gi, got '%.60s'",
				    q->kind == MU_DOC_STRING ? q->text : mu_doc_kind_name(q->kind));
		}
	}
	return rc;
}

static int check_labels(const struct mu_doc_node *labels, struct mu_err *err)
{
	mu_doc_each(labels, l)
	{
		if (!matches(l->key, label_name_pattern))
			return mu_doc_invalid(l, err,
					      "is not a valid label name: use at most 63 letters, "
					      "digits, '-', '_' and '.'");
		if (l->kind != MU_DOC_STRING || !matches(l->text, label_value_pattern))
			return mu_doc_invalid(l, err,
					      "must be a valid label value: at most 63 letters, "
					      "digits, '-', '_' and '.'");
	}
	return 0;
}

static int check_container(const struct mu_doc_node *c, struct mu_err *err)
{
	struct mu_doc_node *env = NULL;
	int rc = mu_doc_opt_list(c, "env", &env, err);

	mu_doc_each(env, e)
	{
		const char *text = NULL;

		if (rc == 0 && e->kind == MU_DOC_MAP)
			rc = mu_doc_opt_text(e, "name", &text, err);
		if (rc == 0 && !text)
			rc = mu_doc_invalid(e, err, "must be a map with a name");
		if (rc == 0)
			rc = mu_doc_opt_text(e, "value", &text, err);
	}
	return rc ? rc : check_quantities(mu_doc_get(c, "resources"), false, err);
}

static int check_pods(const struct job_spec *spec, struct mu_err *err)
{
	static const char *const known[] = {"metadata", "spec", NULL};
	int rc = 0;

	for (unsigned i = 0; i < spec->n_tasks && rc == 0; i++) {
		const struct task_spec *t = &spec->tasks[i];

		if ((rc = check_quantities(t->resources, true, err)) ||
		    (rc = mu_doc_known_keys(t->template, known, err)) ||
		    (rc = check_labels(mu_doc_get(t->template, "metadata.labels"), err)))
			break;
		mu_doc_each(mu_doc_get(t->template, "spec.containers"), c) if (rc == 0) rc =
		    check_container(c, err);
	}
	return rc;
}

/* ---- checks of the schema that job_spec_parse leaves out ---- */

enum { IMAGE_MAX = 512, WORD_MAX = 32 << 10 };

/* Texts of 1 to max characters. */
static const struct {
	const char *path;
	size_t max;
} texts[] = {
    {"managedBy", 63},
    {"checkpoint.path", 1024},
    {"checkpoint.volumeClaim", 253},
    {"summaries.path", 1024},
    {"run.queue", 63},
    {"run.priorityClass", 63},
    {"tensorboard.image", 1024},
    {"program.train.exportPath", 4096},
    {"program.train.dataset.path", 1024},
    {"program.train.dataset.testPath", 1024},
    {"program.train.dataset.trainImages", 1024},
    {"program.train.dataset.trainLabels", 1024},
    {"program.train.dataset.testImages", 1024},
    {"program.train.dataset.testLabels", 1024},
    {"program.train.dataset.featureKey", 256},
    {"program.train.dataset.labelKey", 256},
};

static int check_length(const struct mu_doc_node *text, size_t min, size_t max, struct mu_err *err)
{
	size_t n = 0;

	if (!text || text->kind != MU_DOC_STRING)
		return 0;
	for (const char *at = text->text; *at; at++)
		n += (*at & 0xC0) != 0x80; /* the first byte of a character */
	if (n < min || n > max)
		return mu_doc_invalid(text, err, "must have %zu to %zu characters, got %zu", min,
				      max, n);
	return 0;
}

static int check_text_limits(const struct job_spec *spec, const struct mu_doc_node *s,
			     struct mu_err *err)
{
	const char *managed_by = NULL;
	int rc = 0;

	for (unsigned i = 0; i < MU_COUNT(texts) && rc == 0; i++)
		rc = check_length(mu_doc_get(s, texts[i].path), 1, texts[i].max, err);
	mu_doc_each(mu_doc_get(s, "tasks"), t)
	{
		if (rc == 0 && strncmp(mu_doc_text(t, "kernels", ""), "cuda-sm0", 8) == 0)
			rc = mu_doc_invalid(mu_doc_get(t, "kernels"), err,
					    "must be like cuda-sm90, got '%.60s'",
					    mu_doc_text(t, "kernels", ""));
		rc = rc ? rc : check_length(mu_doc_get(t, "image"), 1, IMAGE_MAX, err);
	}
	mu_doc_each(spec->command, word) rc = rc ? rc : check_length(word, 0, WORD_MAX, err);
	mu_doc_each(spec->args, word) rc = rc ? rc : check_length(word, 0, WORD_MAX, err);
	rc = rc ? rc : mu_doc_opt_text(s, "managedBy", &managed_by, err);
	if (rc == 0 && managed_by && !matches(managed_by, managed_by_pattern))
		rc = mu_doc_invalid(mu_doc_get(s, "managedBy"), err,
				    "must be DOMAIN/NAME, such as " JOB_CONTROLLER);
	return rc;
}

int validate_manifest(const struct job_spec *spec, struct mu_err *err)
{
	const struct mu_doc_node *s = mu_doc_section(spec->doc->root, "spec");
	int rc = check_text_limits(spec, s, err);

	if (rc)
		return rc;
	if (spec->classic_flags && !spec->command)
		return mu_doc_invalid(mu_doc_section(s, "program.classicFlags"), err,
				      "needs a command");
	if (spec->volume_claim && *spec->train.checkpoint_path != '/')
		return mu_doc_invalid(mu_doc_section(s, "checkpoint.path"), err,
				      "must be absolute, since the volumeClaim is mounted there");
	if (spec->gang == GANG_SCHEDULER_PLUGINS && spec->queue)
		return mu_doc_invalid(mu_doc_section(s, "run.queue"), err,
				      "gang: scheduler-plugins has no queues");
	return check_pods(spec, err);
}

/* ---- --plan: a simulated job in which each created pod runs at once ---- */

enum { MAX_PLANS = 16 }; /* in case every plan has actions */
static const double simulated_clock = 1e9;

static const char *const action_names[] = {
    [ACTION_MAKE_SECRET] = "create secret",       [ACTION_ADD_CA] = "patch secret",
    [ACTION_ROTATE_CERTIFICATE] = "patch secret", [ACTION_CHECK_SECRET] = "check secret",
    [ACTION_CREATE_SERVICE] = "create service",   [ACTION_CREATE_POLICY] = "create policy",
    [ACTION_PUT_GROUP] = "create podgroup",       [ACTION_CREATE_POD] = "create pod",
    [ACTION_DELETE_POD] = "delete pod",           [ACTION_FORCE_DELETE_POD] = "force delete",
    [ACTION_FINISH_POD] = "finish pod",           [ACTION_DELETE_SERVICE] = "delete service",
    [ACTION_DELETE_JOB] = "delete job",
};

struct simulation {
	struct mu_arena arena;
	struct observed_pod pods[JOB_MAX_TASKS * JOB_MAX_REPLICAS];
	struct observed_job observed;
};

static void print_action(struct mu_buf *out, const struct job_spec *spec,
			 const struct plan_action *a)
{
	mu_buf_printf(out, "%-15s %s%s%s\n", action_names[a->kind], a->name ? a->name : spec->name,
		      a->message ? "  # " : "", a->message ? a->message : "");
	if (a->kind == ACTION_CREATE_POD)
		mu_buf_printf(out, "%-15s image %s, kernels %s (%s)\n", "", a->pod->image,
			      a->pod->kernels.variant, a->pod->kernels.reason);
}

/* Carries out the action in the simulated job. */
static void simulate_action(struct simulation *p, const struct plan_action *a)
{
	struct observed_pod *pod;

	p->observed.service = p->observed.service || a->kind == ACTION_CREATE_SERVICE;
	p->observed.policy = p->observed.policy || a->kind == ACTION_CREATE_POLICY;
	if (a->kind == ACTION_PUT_GROUP)
		p->observed.group = a->index;
	if (a->kind != ACTION_CREATE_POD || p->observed.n_pods >= MU_COUNT(p->pods))
		return;
	pod = &p->pods[p->observed.n_pods++];
	pod->task = mu_arena_strdup(&p->arena, a->pod->task);
	pod->uid = mu_arena_printf(&p->arena, "uid-%u", p->observed.n_pods);
	pod->index = a->pod->index;
	pod->phase = POD_RUNNING;
	pod->ready = true;
	pod->exit_code = -1;
	pod->created = simulated_clock;
}

static void simulate(struct mu_buf *out, const struct job_spec *spec,
		     const struct plan_options *options)
{
	struct simulation *p = MU_NEW(struct simulation);

	mu_arena_init(&p->arena);
	p->observed.pods = p->pods;
	for (int round = 0; round < MAX_PLANS; round++) {
		struct job_plan *plan =
		    job_plan_new(spec, options, &p->observed, simulated_clock + round);
		unsigned n = plan->n_actions;

		if (n)
			mu_buf_printf(out, "step %d\n", round + 1);
		for (unsigned i = 0; i < n; i++) {
			print_action(out, spec, &plan->actions[i]);
			simulate_action(p, &plan->actions[i]);
			if (plan->actions[i].kind == ACTION_MAKE_SECRET)
				plan->status.security = (struct security_status){
				    .secret = mu_xasprintf("%s-tls", spec->name),
				    .issued_at = simulated_clock};
		}
		job_status_fini(&p->observed.status);
		job_status_copy(&p->observed.status, &plan->status);
		job_plan_free(plan);
		if (!n)
			break;
	}
	job_status_fini(&p->observed.status);
	mu_arena_fini(&p->arena);
	free(p);
}

static const char *from_env(const char *name, const char *default_value)
{
	const char *value = getenv(name);

	return value && *value ? value : default_value;
}

/* With several manifests each plan has a heading. */
static void print_plan(const struct job_spec *spec, const char *path, bool one_of_many)
{
	const struct plan_options options = {
	    .image = from_env("MUSTER_TASK_IMAGE", "localhost/muster-task:dev"),
	    .image_tensorboard =
		from_env("MUSTER_TENSORBOARD_IMAGE", "localhost/muster-task-tf:dev"),
	};
	MU_AUTO_BUF out = {0};

	if (one_of_many)
		mu_buf_printf(&out, "%s: job '%s'\n", path, spec->name);
	simulate(&out, spec, &options);
	fwrite(out.data, 1, out.len, stdout);
}

int cli_validate(int argc, char **argv)
{
	int status = CLI_OK;
	bool plan = false;
	const struct cli_option table[] = {{"plan", .flag = &plan}, {NULL}};
	int n = cli_options("validate", argc, argv, table, argc);

	if (n < 0)
		return CLI_USAGE;
	if (!n)
		return cli_usage("validate", "no manifest given");
	for (int i = 0; i < n; i++) {
		MU_AUTO(job_spec_free) struct job_spec *spec = NULL;
		struct mu_err err;

		if (manifest_read(&spec, argv[i], &err) || validate_manifest(spec, &err))
			status = cli_fail(&err);
		else if (plan)
			print_plan(spec, argv[i], n > 1);
		else
			printf("%s: job '%s' is valid\n", argv[i], spec->name);
	}
	return status;
}
