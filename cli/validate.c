/* SPDX-License-Identifier: Apache-2.0 */
/* muster validate: rejects the same manifests as the API server, with file, line and the expected
 * value. With --plan it prints what the operator would do. */
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/manifest.h"
#include "operator/plan/plan_print.h"

enum { MANIFEST_MAX = 4 << 20 };

int manifest_read(struct job_spec **out, const char *path, struct mu_err *err)
{
	MU_AUTO_BUF text = {0};
	int rc = mu_buf_read_file(&text, path, MANIFEST_MAX, err);

	return rc ? rc : job_spec_parse(out, mu_buf_span(&text), path, err);
}

/* job/NAME and dtj/NAME are names, as in kubectl; other words with a slash are paths. */
static bool is_path(const char *word)
{
	static const char *const kinds[] = {"job/", "dtj/", "distributedtrainingjob/"};
	static const char *const ends[] = {".yaml", ".yml", ".json"};
	const char *dot = strrchr(word, '.');

	for (unsigned i = 0; dot && i < MU_COUNT(ends); i++)
		if (strcmp(dot, ends[i]) == 0)
			return true;
	for (unsigned i = 0; i < MU_COUNT(kinds); i++)
		if (strncmp(word, kinds[i], strlen(kinds[i])) == 0)
			return false;
	return strchr(word, '/') != NULL;
}

int manifest_job(const char *word, char **name, char **ns, struct mu_err *err)
{
	MU_AUTO(job_spec_free) struct job_spec *spec = NULL;
	const char *slash = strchr(word, '/'), *given_namespace;
	int rc;

	*ns = NULL;
	if (!is_path(word)) {
		*name = mu_xstrdup(slash ? slash + 1 : word);
		return 0;
	}
	rc = manifest_read(&spec, word, err);
	if (rc)
		return rc;
	given_namespace = mu_doc_text(spec->doc->root, "metadata.namespace", NULL);
	*ns = given_namespace ? mu_xstrdup(given_namespace) : NULL;
	*name = mu_xstrdup(spec->name);
	return 0;
}

/* ---- checks of the API server in pod templates ---- */

static const char quantity_pattern[] = "^[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)"
				       "([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$";
static const char label_name_pattern[] = "^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?"
					 "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$";
static const char label_value_pattern[] = "^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$";

static bool matches(const char *text, const char *pattern)
{
	regex_t re;
	bool yes;

	if (regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB) != 0)
		return false;
	yes = regexec(&re, text, 0, NULL, 0) == 0;
	regfree(&re);
	return yes;
}

static int check_quantities(const struct mu_doc_node *resources, struct mu_err *err)
{
	mu_doc_each(resources, half) mu_doc_each(half, q)
	{
		bool number = q->kind == MU_DOC_INT || q->kind == MU_DOC_FLOAT;

		if (!number && (q->kind != MU_DOC_STRING || !matches(q->text, quantity_pattern)))
			return mu_doc_fail(q, err, MU_INVALID_ARGUMENT,
					   "must be a quantity such as 500m, 2, 1.5G or 4Gi, got "
					   "'%.60s'",
					   q->kind == MU_DOC_STRING ? q->text
								    : mu_doc_kind_name(q->kind));
	}
	return 0;
}

static int check_labels(const struct mu_doc_node *labels, struct mu_err *err)
{
	mu_doc_each(labels, l)
	{
		if (!matches(l->key, label_name_pattern))
			return mu_doc_fail(l, err, MU_INVALID_ARGUMENT,
					   "is not a valid label name: use at most 63 letters, "
					   "digits, '-', '_' and '.'");
		if (l->kind != MU_DOC_STRING || !matches(l->text, label_value_pattern))
			return mu_doc_fail(l, err, MU_INVALID_ARGUMENT,
					   "must be a valid label value: at most 63 letters, "
					   "digits, '-', '_' and '.'");
	}
	return 0;
}

static int check_container(const struct mu_doc_node *c, struct mu_err *err)
{
	struct mu_doc_node *env;
	int rc = mu_doc_opt_list(c, "env", &env, err);

	mu_doc_each(env, e) if (rc == 0 && (e->kind != MU_DOC_MAP || !mu_doc_text(e, "name", NULL)))
	    rc = mu_doc_fail(e, err, MU_INVALID_ARGUMENT, "must be a map with a name");
	return rc ? rc : check_quantities(mu_doc_get(c, "resources"), err);
}

static int check_pods(const struct job_spec *spec, struct mu_err *err)
{
	static const char *const known[] = {"metadata", "spec", NULL};
	int rc = 0;

	for (unsigned i = 0; i < spec->n_tasks && rc == 0; i++) {
		const struct task_spec *t = &spec->tasks[i];

		if ((rc = check_quantities(t->resources, err)) ||
		    (rc = mu_doc_known_keys(t->template, known, err)) ||
		    (rc = check_labels(mu_doc_get(t->template, "metadata.labels"), err)))
			break;
		mu_doc_each(mu_doc_get(t->template, "spec.containers"), c) if (rc == 0) rc =
		    check_container(c, err);
	}
	return rc;
}

/* With several manifests each plan has a heading. */
static void print_plan(const struct job_spec *spec, const char *path, bool one_of_many)
{
	const char *image = getenv("MUSTER_TASK_IMAGE");
	MU_AUTO_BUF out = {0};

	if (one_of_many)
		mu_buf_printf(&out, "%s: job '%s'\n", path, spec->name);
	plan_print(
	    &out, spec,
	    &(struct plan_options){.image = image && *image ? image : "localhost/muster-task:dev"},
	    NULL, NULL);
	fwrite(out.data, 1, out.len, stdout);
}

int cli_validate(int argc, char **argv)
{
	int status = CLI_OK;
	bool plan = argc && strcmp(argv[0], "--plan") == 0;

	if (argc == plan)
		return cli_usage("validate", "no manifest given");
	for (int i = plan; i < argc; i++) {
		MU_AUTO(job_spec_free) struct job_spec *spec = NULL;
		struct mu_err err;

		if (manifest_read(&spec, argv[i], &err) || check_pods(spec, &err))
			status = cli_fail(&err);
		else if (plan)
			print_plan(spec, argv[i], argc - plan > 1);
		else
			printf("%s: job '%s' is valid\n", argv[i], spec->name);
	}
	return status;
}
