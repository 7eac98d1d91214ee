/* SPDX-License-Identifier: Apache-2.0 */
/* muster convert: converts a Kubeflow TFJob to a DistributedTrainingJob on standard output. */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/tfjob.h"
#include "lib/io/yaml.h"
#include "operator/api/job_spec.h"

enum { TFJOB_MAX = 4 << 20 };

/* Validates the result as a manifest. An invalid result is printed too, with a message, so that the
 * user can complete it. */
static void validate_result(struct mu_span yaml, const char *path, struct mu_buf *problem)
{
	MU_AUTO(job_spec_free) struct job_spec *spec = NULL;
	struct mu_err err = {0};

	if (job_spec_parse(&spec, yaml, path, &err) < 0)
		mu_buf_puts(problem, err.msg);
}

static int convert_one(const struct mu_doc *tfjob, const char *path, bool first, struct mu_err *err)
{
	MU_AUTO(mu_doc_free) struct mu_doc *job = NULL;
	MU_AUTO_BUF notes = {0};
	MU_AUTO_BUF yaml = {0};
	MU_AUTO_BUF problem = {0};
	int rc = convert_tfjob(&job, tfjob->root, &notes, err);

	if (rc < 0)
		return rc;
	convert_write(&yaml, job, mu_buf_span(&notes));
	validate_result(mu_buf_span(&yaml), "the result", &problem);
	if (!first)
		puts("---");
	fwrite(yaml.data, 1, yaml.len, stdout);
	if (problem.len)
		fprintf(stderr, "muster: %s: must be completed before it can be applied: %s\n",
			path, problem.data);
	return 0;
}

int cli_convert(int argc, char **argv)
{
	bool first = true;

	if (!argc)
		return cli_usage("convert", "no TFJob given");
	for (int i = 0; i < argc; i++) {
		MU_AUTO_BUF text = {0};
		struct mu_doc **docs = NULL;
		struct mu_err err = {0};
		unsigned n = 0;
		int rc = mu_buf_read_input(&text, argv[i], TFJOB_MAX, &err);

		if (rc == 0)
			rc = mu_yaml_parse_all(&docs, &n, mu_buf_span(&text), argv[i], &err);
		for (unsigned d = 0; d < n; d++) {
			if (rc == 0)
				rc = convert_one(docs[d], argv[i], first, &err);
			first = false;
			mu_doc_free(docs[d]);
		}
		free(docs);
		if (rc < 0)
			return cli_fail(&err);
	}
	return CLI_OK;
}
