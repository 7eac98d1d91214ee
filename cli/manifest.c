/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/manifest.h"

#include <string.h>

enum { MANIFEST_MAX = 4 << 20 };

int manifest_read(struct job_spec **out, const char *path, struct mu_err *err)
{
	MU_AUTO_BUF text = {0};
	int rc = mu_buf_read_input(&text, path, MANIFEST_MAX, err);

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

int manifest_resolve_job(const char *word, char **name, char **ns, struct mu_err *err)
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
