// SPDX-License-Identifier: Apache-2.0
/* muster validate: refuses what the API server would, with file, line and what was expected. */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/manifest.h"

enum { MANIFEST_MAX = 4 << 20 };

int manifest_read(struct job_spec **out, const char *path, struct mu_err *err)
{
	MU_AUTO_BUF text = {0};
	int rc = mu_buf_read_file(&text, path, MANIFEST_MAX, err);

	return rc ? rc : job_spec_parse(out, mu_buf_span(&text), path, err);
}

int cli_validate(int argc, char **argv)
{
	int status = CLI_OK;

	if (!argc)
		return cli_usage("validate", "no manifest given");
	for (int i = 0; i < argc; i++) {
		MU_AUTO(job_spec_free) struct job_spec *spec = NULL;
		struct mu_err err;

		if (manifest_read(&spec, argv[i], &err))
			status = cli_fail(&err);
		else
			printf("%s: job '%s' is valid\n", argv[i], spec->name);
	}
	return status;
}
