/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a manifest; a job that is read is planned once, and its status written and read. */
#include "lib/io/json.h"
#include "operator/plan/job_plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct plan_options options = {.image = "i"};
	MU_AUTO(job_spec_free) struct job_spec *spec = NULL;
	MU_AUTO(job_plan_free) struct job_plan *plan = NULL;
	MU_AUTO(mu_doc_free) struct mu_doc *d = NULL;
	struct observed_job seen = {0};
	MU_AUTO_BUF text = {0};

	if (job_spec_parse(&spec, (struct mu_span){(const char *)data, size}, "fuzz", NULL))
		return 0;
	plan = job_plan_new(spec, &options, &seen, 1e9);
	job_status_write(&plan->status, &text);
	if (mu_json_parse(&d, mu_buf_span(&text), "status", NULL) == 0 &&
	    job_status_read(&seen.status, d->root, NULL) == 0)
		job_status_fini(&seen.status);
	return 0;
}
