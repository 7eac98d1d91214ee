/* SPDX-License-Identifier: Apache-2.0 */
/* Reads spec.tasks and spec.tensorboard. */
#include <ctype.h>
#include <stdio.h>

#include "operator/api/job_spec.h"
#include "operator/api/node.h"

const char *const restart_policy_names[] = {"Never", "OnFailure", "Always", "ExitCode", NULL};

static bool is_letter_or_digit(char c)
{
	return islower((unsigned char)c) || isdigit((unsigned char)c);
}

bool spec_is_name(const char *s, const char *punctuation, size_t max_len)
{
	size_t n = strlen(s);

	if (n == 0 || n > max_len || !is_letter_or_digit(s[0]) || !is_letter_or_digit(s[n - 1]))
		return false;
	for (; *s; s++)
		if (!is_letter_or_digit(*s) && !strchr(punctuation, *s))
			return false;
	return true;
}

/* A DNS label (RFC 1123), as Kubernetes requires of object names. */
bool spec_is_label(const char *s)
{
	return spec_is_name(s, "-", 63);
}

int kernels_compute_capability(const char *kernels)
{
	bool sm = strncmp(kernels, "cuda-sm", 7) == 0 && isdigit((unsigned char)kernels[7]);
	char *end = NULL;
	long n = sm ? strtol(kernels + 7, &end, 10) : 0;

	return n < 50 || n > 999 || *end ? 0 : (int)n;
}

bool kernels_are_known(const char *kernels)
{
	static const char *const words[] = {"auto",        "cpu",        "gpu",      "prefer-gpu",
					    "cuda",        "cpu-avx512", "cpu-avx2", "arm64",
					    "cpu-generic", NULL};

	return mu_word_index(kernels, words) >= 0 || kernels_compute_capability(kernels);
}

enum task_kind task_kind_of(const char *name)
{
	static const char *const names[] = {"ps", "worker", "chief", "evaluator", NULL};
	int i = mu_word_index(name, names);

	if (strcmp(name, "master") == 0)
		return TASK_CHIEF;
	return i < 0 ? TASK_OTHER : (enum task_kind)i;
}

static int read_template(struct task_spec *t, const struct mu_doc_node *task, struct mu_err *err)
{
	struct mu_doc_node *template, *pod, *containers = NULL;
	int rc;

	if ((rc = mu_doc_opt_map(task, "template", &template, err)) ||
	    (rc = mu_doc_opt_map(template, "spec", &pod, err)) ||
	    (rc = mu_doc_opt_list(pod, "containers", &containers, err)))
		return rc;
	t->template = template;
	if (!containers || !containers->first)
		return 0;
	if (containers->first->kind != MU_DOC_MAP)
		return mu_doc_invalid(containers->first, err, "must be a map, got %s",
				      mu_doc_kind_name(containers->first->kind));
	t->container = containers->first;
	return t->image ? 0 : mu_doc_opt_text(t->container, "image", &t->image, err);
}

static bool requests_gpu(const struct mu_doc_node *resources)
{
	const struct mu_doc_node *n = mu_doc_key(mu_doc_key(resources, "limits"), GPU_RESOURCE);

	return n && (n->kind == MU_DOC_STRING ? strcmp(n->text, "0") != 0 : n->i > 0);
}

static const struct field task_fields[] = {
    {"replicas", FIELD_INT, AT(task_spec, replicas), .min = 0, .max = JOB_MAX_REPLICAS},
    {"kernels", FIELD_TEXT, AT(task_spec, kernels)},
    {"image", FIELD_TEXT, AT(task_spec, image)},
    {"restartPolicy", FIELD_ENUM, AT(task_spec, restart), .names = restart_policy_names},
    {"resources", FIELD_MAP, AT(task_spec, resources)},
    {.key = "template"},
    {NULL}};

static int read_task(struct job_spec *s, struct task_spec *t, const struct mu_doc_node *n,
		     struct mu_err *err)
{
	int rc;

	if (n->kind != MU_DOC_MAP)
		return mu_doc_invalid(n, err, "must be a map, got %s", mu_doc_kind_name(n->kind));
	if (!spec_is_label(n->key) || !islower((unsigned char)n->key[0]) ||
	    strlen(n->key) > JOB_MAX_TASK_NAME)
		return mu_doc_invalid(
		    n, err,
		    "a task's name must be at most %d lower-case letters, digits and "
		    "'-'",
		    JOB_MAX_TASK_NAME);
	*t = (struct task_spec){.name = n->key, .kind = task_kind_of(n->key)};
	t->kernels = t->kind == TASK_PS ? "cpu" : "auto";
	t->replicas = 1;
	t->restart = s->restart;
	if ((rc = fields_read(n, task_fields, t, err)) || (rc = read_template(t, n, err)))
		return rc;
	if (strcmp(t->kernels, "auto") == 0 &&
	    (requests_gpu(t->resources) || requests_gpu(mu_doc_get(t->container, "resources"))))
		t->kernels = "gpu";
	if (!kernels_are_known(t->kernels))
		return mu_doc_invalid(
		    mu_doc_key(n, "kernels"), err,
		    "must be auto, cpu, gpu, prefer-gpu or a variant like cpu-avx2 "
		    "or cuda-sm90, got '%.60s'",
		    t->kernels);
	if (t->kind == TASK_CHIEF && t->replicas != 1)
		return mu_doc_invalid(mu_doc_key(n, "replicas"), err,
				      "must be 1 for a chief, got %d", t->replicas);
	char longest[256];
	snprintf(longest, sizeof longest, "%s-%s-%d", s->name, t->name,
		 t->replicas ? t->replicas - 1 : 0);
	if (strlen(longest) > JOB_MAX_NAME)
		return mu_doc_invalid(
		    n, err,
		    "its pods would be named like '%.80s', longer than %d characters: "
		    "shorten metadata.name",
		    longest, JOB_MAX_NAME);
	return 0;
}

static int by_start_order(const void *a, const void *b)
{
	static const int rank[] = {[TASK_PS] = 0,        [TASK_CHIEF] = 1, [TASK_WORKER] = 2,
				   [TASK_EVALUATOR] = 4, [TASK_OTHER] = 3, [TASK_TENSORBOARD] = 5};
	const struct task_spec *x = a, *y = b;

	return rank[x->kind] != rank[y->kind] ? rank[x->kind] - rank[y->kind]
					      : strcmp(x->name, y->name);
}

int job_spec_read_tasks(struct job_spec *s, const struct mu_doc_node *spec, struct mu_err *err)
{
	struct mu_doc_node *tasks;
	int rc = mu_doc_opt_map(spec, "tasks", &tasks, err);

	if (rc)
		return rc;
	if (!tasks || tasks->n < 1 || tasks->n > JOB_MAX_TASKS)
		return mu_doc_invalid(tasks ? tasks : spec, err,
				      "a job needs between 1 and %d entries in spec.tasks",
				      JOB_MAX_TASKS);
	mu_doc_each(tasks, n)
	{
		if ((rc = read_task(s, &s->tasks[s->n_tasks], n, err)))
			return rc;
		s->replicas += s->tasks[s->n_tasks++].replicas;
	}
	qsort(s->tasks, s->n_tasks, sizeof s->tasks[0], by_start_order);
	return 0;
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

/* Adds TensorBoard as one more pod, which reads the volume that the tasks write. */
int job_spec_add_tensorboard(struct job_spec *s, const struct mu_doc_node *n, struct mu_err *err)
{
	if (!s->tensorboard)
		return 0;
	if (!s->volume_claim)
		return mu_doc_invalid(
		    n, err, "needs checkpoint.volumeClaim, the volume whose event files it shows");
	if (s->n_tasks == JOB_MAX_TASKS || job_spec_task(s, JOB_TENSORBOARD))
		return mu_doc_invalid(
		    n, err, "allows at most %d other task types, and none called " JOB_TENSORBOARD,
		    JOB_MAX_TASKS - 1);
	if (strlen(s->name) + strlen("-" JOB_TENSORBOARD "-0") > JOB_MAX_NAME)
		return mu_doc_invalid(
		    n, err,
		    "its pod's name would be longer than %d characters: shorten metadata.name",
		    JOB_MAX_NAME);
	if (!s->train.summary_path)
		s->train.summary_path = s->train.checkpoint_path;
	s->tasks[s->n_tasks++] = (struct task_spec){.name = JOB_TENSORBOARD,
						    .kind = TASK_TENSORBOARD,
						    .replicas = 1,
						    .kernels = "cpu",
						    .restart = RESTART_ALWAYS,
						    .image = s->tensorboard_image};
	return 0;
}
