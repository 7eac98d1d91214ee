/* SPDX-License-Identifier: Apache-2.0 */
/* Converts the input as a TFJob.  The output must parse as one YAML document. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/io/yaml.h"
#include "cli/tfjob.h"
#include "operator/api/job_spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	MU_AUTO(job_spec_free) struct job_spec *spec = NULL;
	MU_AUTO(mu_doc_free) struct mu_doc *tfjob = NULL, *job = NULL, *again = NULL;
	MU_AUTO_BUF notes = {0};
	MU_AUTO_BUF text = {0};
	struct mu_err err;

	if (mu_yaml_parse(&tfjob, (struct mu_span){(const char *)data, size}, "fuzz", &err) ||
	    convert_tfjob(&job, tfjob->root, &notes, &err))
		return 0;
	convert_write(&text, job, mu_buf_span(&notes));
	if (mu_yaml_parse(&again, mu_buf_span(&text), "again", &err) && !strstr(err.msg, "too "))
		abort();
	job_spec_parse(&spec, mu_buf_span(&text), "job", &err); /* the job may be rejected */
	return 0;
}
