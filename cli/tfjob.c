/* SPDX-License-Identifier: Apache-2.0 */
/* Converts a TFJob to a DistributedTrainingJob.
 *
 * Replica types become tasks with unchanged templates. The command, which a TFJob has in each
 * template, becomes the program, which all tasks share. No key is dropped silently: a key that is
 * not in the tables below becomes a note.
 */
#include "cli/tfjob.h"

#include <ctype.h>
#include <stdarg.h>
#include <strings.h>

#include "lib/io/json.h"
#include "operator/api/job_spec.h"

struct converter {
	struct mu_doc *to;
	struct mu_buf *notes;
	const struct mu_doc_node *program_container; /* container that supplies the program */
};

static void add_note(struct converter *c, const struct mu_doc_node *where, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void add_note(struct converter *c, const struct mu_doc_node *where, const char *fmt, ...)
{
	MU_AUTO_BUF path = {0};
	va_list ap;

	if (where && where->line)
		mu_buf_printf(c->notes, "line %u: ", where->line);
	if (where)
		mu_doc_path(where, &path);
	for (size_t i = 0; i < path.len;
	     i++) /* a note is one line, even if a key contains newlines */
		if ((unsigned char)path.data[i] < ' ')
			path.data[i] = '?';
	if (path.len)
		mu_buf_printf(c->notes, "%s: ", path.data);
	va_start(ap, fmt);
	mu_buf_vprintf(c->notes, fmt, ap);
	va_end(ap);
	mu_buf_putc(c->notes, '\n');
}

/* A key of the TFJob, its new place, and a note. */
struct rule {
	const char *from, *to; /* to NULL: no counterpart */
	const char *note;      /* NULL: same meaning */
};

static void apply_rules(struct converter *c, const struct mu_doc_node *from, struct mu_doc_node *to,
			const struct rule *rules)
{
	if (from && from->kind != MU_DOC_MAP) {
		add_note(c, from, "is %s, expected a map; ignored", mu_doc_kind_name(from->kind));
		return;
	}
	mu_doc_each(from, n)
	{
		const struct rule *r = rules;

		while (r->from && strcmp(r->from, n->key) != 0)
			r++;
		if (!r->from)
			add_note(c, n, "has no counterpart; ignored");
		else if (r->note)
			add_note(c, n, "%s", r->note);
		if (r->from && r->to)
			mu_doc_add_copy(c->to, to, r->to, n);
	}
}

static const struct rule policy_rules[] = {
    {"cleanPodPolicy", "cleanPodPolicy", NULL},
    {"ttlSecondsAfterFinished", "ttlSecondsAfterFinished", NULL},
    {"activeDeadlineSeconds", "activeDeadlineSeconds", NULL},
    {"backoffLimit", "backoffLimit",
     "counts failures of all tasks, except evictions, preemptions and lost nodes"},
    {"suspend", "suspend", NULL},
    {"schedulingPolicy", NULL, NULL}, /* below */
    {"managedBy", NULL,
     "not copied; set spec.managedBy for another controller, such as MultiKueue's"},
    {NULL, NULL, NULL},
};
static const struct rule scheduling_rules[] = {
    {"queue", "queue", NULL},
    {"priorityClass", "priorityClass", NULL},
    {"scheduleTimeoutSeconds", "schedulingDeadlineSeconds",
     "fails the job if its pods are not running in time"},
    {"minAvailable", NULL, "the gang is always the whole job"},
    {"minResources", NULL, "the scheduler adds up the resource requests of the pods"},
    {NULL, NULL, NULL},
};

static void convert_policy(struct converter *c, const struct mu_doc_node *spec,
			   struct mu_doc_node *run)
{
	const struct mu_doc_node *policy = mu_doc_key(spec, "runPolicy");
	const struct mu_doc_node *scheduling = mu_doc_key(policy, "schedulingPolicy");
	const char *success = mu_doc_text(spec, "successPolicy", "");

	apply_rules(c, policy, run, policy_rules);
	if (!mu_doc_key(policy, "cleanPodPolicy"))
		add_note(c, policy,
			 "no cleanPodPolicy: running pods are deleted when the job ends");
	if (scheduling && scheduling->kind == MU_DOC_MAP) {
		mu_doc_add_str(c->to, run, "gang", "volcano");
		add_note(
		    c, scheduling,
		    "assumed to be for Volcano; set spec.run.gang to scheduler-plugins or kueue "
		    "for another scheduler");
		apply_rules(c, scheduling, run, scheduling_rules);
	}
	if (strcmp(success, "AllWorkers") == 0)
		mu_doc_add_str(c->to, run, "successPolicy", "AllWorkers");
}

/* The TFJob operator uses the container with this name; Muster uses the first one. */
static const struct mu_doc_node *main_container(struct converter *c,
						const struct mu_doc_node *template)
{
	const struct mu_doc_node *list = mu_doc_get(template, "spec.containers");

	if (!list || list->kind != MU_DOC_LIST)
		return NULL;
	mu_doc_each(list, n)
	{
		if (strcmp(mu_doc_text(n, "name", ""), "tensorflow") != 0)
			continue;
		if (n != list->first)
			add_note(c, n,
				 "the task runs in the first container of a pod: move this one up");
		return n;
	}
	return list->first;
}

static bool same_list(const struct mu_doc_node *a, const struct mu_doc_node *b)
{
	const struct mu_doc_node *y = b ? b->first : NULL;

	mu_doc_each(a, x)
	{
		if (!y || x->kind != MU_DOC_STRING || y->kind != MU_DOC_STRING ||
		    strcmp(x->text, y->text) != 0)
			return false;
		y = y->next;
	}
	return !y;
}

static bool same_program(const struct mu_doc_node *a, const struct mu_doc_node *b)
{
	return same_list(mu_doc_key(a, "command"), mu_doc_key(b, "command")) &&
	       same_list(mu_doc_key(a, "args"), mu_doc_key(b, "args"));
}

static void check_ports(struct converter *c, const struct mu_doc_node *container)
{
	const struct mu_doc_node *ports = mu_doc_key(container, "ports");

	mu_doc_each(ports, p)
	{
		int64_t port = mu_doc_int(p, "containerPort", 0);
		if (strcmp(mu_doc_text(p, "name", ""), "tfjob-port") == 0 &&
		    port != JOB_DEFAULT_PORT)
			add_note(c, p, "tasks listen on port %d, as TF_CONFIG says",
				 JOB_DEFAULT_PORT);
	}
}

static const struct rule replica_rules[] = {
    {"replicas", "replicas", NULL},
    {"restartPolicy", "restartPolicy", NULL},
    {"template", "template", NULL},
    {NULL, NULL, NULL},
};

static void convert_replica(struct converter *c, const struct mu_doc_node *from,
			    struct mu_doc_node *tasks)
{
	struct mu_doc_node *task;
	char name[JOB_MAX_TASK_NAME + 1];
	const struct mu_doc_node *container = main_container(c, mu_doc_key(from, "template"));
	size_t n = strlen(from->key);

	if (n > JOB_MAX_TASK_NAME) {
		add_note(c, from, "is not a valid task name; ignored");
		return;
	}
	for (size_t i = 0; i <= n; i++)
		name[i] = (char)tolower((unsigned char)from->key[i]);
	task = mu_doc_add(c->to, tasks, name, MU_DOC_MAP);
	apply_rules(c, from, task, replica_rules);
	if (!mu_doc_key(from, "restartPolicy")) /* default of TFJob */
		mu_doc_add_str(c->to, task, "restartPolicy", "Never");
	else if (strcmp(mu_doc_text(from, "restartPolicy", ""), "Always") == 0 &&
		 strcmp(name, "ps") != 0)
		add_note(c, mu_doc_key(from, "restartPolicy"),
			 "a task that decides the success of the job completes with exit code 0 in "
			 "spite of Always");
	check_ports(c, container);
	if (container && c->program_container && !same_program(container, c->program_container))
		add_note(c, container,
			 "its command or args differ from those of the chief; all tasks run one "
			 "program, which reads its task from TF_CONFIG");
}

/* Returns the container that supplies the program: of the first of Chief, Master, Worker and PS. */
static const struct mu_doc_node *find_program(const struct mu_doc_node *replicas)
{
	static const char *const order[] = {"chief", "master", "worker", "ps"};

	for (unsigned i = 0; i < MU_COUNT(order); i++)
		mu_doc_each(replicas, r)
		{
			const struct mu_doc_node *list = mu_doc_get(r, "template.spec.containers");
			if (strcasecmp(r->key, order[i]) != 0 || !list || list->kind != MU_DOC_LIST)
				continue;
			mu_doc_each(list, n)
			{
				if (strcmp(mu_doc_text(n, "name", ""), "tensorflow") == 0)
					return n;
			}
			return list->first;
		}
	return NULL;
}

static void convert_program(struct converter *c, struct mu_doc_node *spec)
{
	const struct mu_doc_node *command = mu_doc_key(c->program_container, "command");
	const struct mu_doc_node *args = mu_doc_key(c->program_container, "args");
	struct mu_doc_node *program;

	if (!command) {
		add_note(c, c->program_container,
			 "no command: copy the entry point of the image to "
			 "spec.program.command%s",
			 args ? ", and these args into spec.program.args" : "");
		return;
	}
	program = mu_doc_add(c->to, spec, "program", MU_DOC_MAP);
	mu_doc_add_copy(c->to, program, "command", command);
	if (args)
		mu_doc_add_copy(c->to, program, "args", args);
}

static const struct rule spec_rules[] = {
    {"tfReplicaSpecs", NULL, NULL}, /* above */
    {"runPolicy", NULL, NULL},
    {"successPolicy", NULL, NULL},
    {"enableDynamicWorker", NULL, "workers can always be scaled: kubectl scale dtj/NAME"},
    {NULL, NULL, NULL},
};
static const struct rule metadata_rules[] = {
    {"name", "name", NULL},
    {"namespace", "namespace", NULL},
    {"labels", "labels", NULL},
    {"annotations", "annotations", NULL},
    {"generateName", "generateName", NULL},
    {NULL, NULL, NULL},
};

int convert_tfjob(struct mu_doc **out, const struct mu_doc_node *tfjob, struct mu_buf *notes,
		  struct mu_err *err)
{
	const struct mu_doc_node *spec = mu_doc_key(tfjob, "spec");
	const struct mu_doc_node *replicas = mu_doc_key(spec, "tfReplicaSpecs");
	struct mu_doc_node *root, *new_spec, *tasks;
	struct converter c = {.notes = notes};

	if (!tfjob || tfjob->kind != MU_DOC_MAP ||
	    strcmp(mu_doc_text(tfjob, "kind", ""), "TFJob") != 0 ||
	    strcmp(mu_doc_text(tfjob, "apiVersion", ""), "kubeflow.org/v1") != 0)
		return mu_doc_invalid(tfjob, err,
				      "only a TFJob of kubeflow.org/v1 can be converted");
	if (!replicas || replicas->kind != MU_DOC_MAP || !replicas->n)
		return mu_doc_invalid(spec ? spec : tfjob, err, "tfReplicaSpecs is missing");
	c.to = mu_doc_new(tfjob->doc->source);
	c.program_container = find_program(replicas);
	root = mu_doc_add(c.to, NULL, NULL, MU_DOC_MAP);
	mu_doc_add_str(c.to, root, "apiVersion", JOB_API_VERSION);
	mu_doc_add_str(c.to, root, "kind", JOB_KIND);
	apply_rules(&c, mu_doc_key(tfjob, "metadata"),
		    mu_doc_add(c.to, root, "metadata", MU_DOC_MAP), metadata_rules);
	new_spec = mu_doc_add(c.to, root, "spec", MU_DOC_MAP);
	apply_rules(&c, spec, new_spec, spec_rules);
	convert_program(&c, new_spec);
	tasks = mu_doc_add(c.to, new_spec, "tasks", MU_DOC_MAP);
	mu_doc_each(replicas, r) convert_replica(&c, r, tasks);
	convert_policy(&c, spec, mu_doc_add(c.to, new_spec, "run", MU_DOC_MAP));
	*out = c.to;
	return 0;
}

/* ---- YAML ---- */

/* True for text that is a plain YAML scalar. Other text is quoted as JSON, which is valid YAML. */
static bool is_plain(const struct mu_doc_node *n)
{
	static const char *const special[] = {"true", "false", "yes", "no", "on",
					      "off",  "null",  "y",   "n",  "~"};

	if (!n->len || !isalpha((unsigned char)n->text[0]))
		return false;
	for (size_t i = 0; i < n->len; i++)
		if (!isalnum((unsigned char)n->text[i]) && !strchr("-_./", n->text[i]))
			return false;
	for (unsigned i = 0; i < MU_COUNT(special); i++)
		if (strcasecmp(n->text, special[i]) == 0)
			return false;
	return true;
}

static void write_key(struct mu_buf *out, const char *key)
{
	struct mu_doc_node k = {.kind = MU_DOC_STRING, .text = key, .len = strlen(key)};

	if (is_plain(&k))
		mu_buf_puts(out, key);
	else
		mu_json_write(out, &k);
	mu_buf_puts(out, ":");
}

/* on_current_line: the block starts after "- ". */
static void write_block(struct mu_buf *out, const struct mu_doc_node *n, int indent,
			bool on_current_line)
{
	mu_doc_each(n, child)
	{
		bool block = (child->kind == MU_DOC_MAP || child->kind == MU_DOC_LIST) && child->n;
		bool list = n->kind == MU_DOC_LIST;

		if (!on_current_line)
			mu_buf_printf(out, "%*s", indent, "");
		on_current_line = false;
		if (list)
			mu_buf_puts(out, "-");
		else
			write_key(out, child->key);
		if (!block) {
			mu_buf_putc(out, ' ');
			if (child->kind == MU_DOC_STRING && is_plain(child))
				mu_buf_puts(out, child->text);
			else
				mu_json_write(out, child);
			mu_buf_putc(out, '\n');
		} else if (list) {
			mu_buf_putc(out, ' ');
			write_block(out, child, indent + 2, true);
		} else {
			mu_buf_putc(out, '\n');
			write_block(out, child, indent + (child->kind == MU_DOC_MAP ? 2 : 0),
				    false);
		}
	}
}

void convert_write(struct mu_buf *out, const struct mu_doc *job, struct mu_span notes)
{
	size_t at = 0;

	while (at < notes.len) {
		const char *end = memchr(notes.data + at, '\n', notes.len - at);
		size_t n = end ? (size_t)(end - notes.data) - at : notes.len - at;

		mu_buf_printf(out, "# note: %.*s\n", (int)n, notes.data + at);
		at += n + 1;
	}
	write_block(out, job->root, 0, false);
}
