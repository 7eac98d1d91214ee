/* SPDX-License-Identifier: Apache-2.0 */
/* muster validate: refuses what the API server would, with file, line and what was expected; with
 * --plan it says what the operator would do. */
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

/* job/NAME and dtj/NAME are names, as for kubectl; other words with a slash are paths. */
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
	const char *slash = strchr(word, '/'), *said;
	int rc;

	*ns = NULL;
	if (!is_path(word)) {
		*name = mu_xstrdup(slash ? slash + 1 : word);
		return 0;
	}
	rc = manifest_read(&spec, word, err);
	if (rc)
		return rc;
	said = mu_doc_text(spec->doc->root, "metadata.namespace", NULL);
	*ns = said ? mu_xstrdup(said) : NULL;
	*name = mu_xstrdup(spec->name);
	return 0;
}

/* Of several manifests each plan is told whose it is. */
static void show_plan(const struct job_spec *spec, const char *path, bool one_of_many)
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

		if (manifest_read(&spec, argv[i], &err))
			status = cli_fail(&err);
		else if (plan)
			show_plan(spec, argv[i], argc - plan > 1);
		else
			printf("%s: job '%s' is valid\n", argv[i], spec->name);
	}
	return status;
}
