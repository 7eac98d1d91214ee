/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the input as a manifest.  A parsed job is planned once, and its status is written and
 * parsed again. */
#include "operator/plan/job_plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct plan_options options = {.image = "i"};
	MU_AUTO(job_spec_free) struct job_spec *spec = NULL;
	MU_AUTO(job_plan_free) struct job_plan *plan = NULL;
	struct observed_job seen = {0};
	cJSON *status;

	if (job_spec_parse(&spec, (struct mu_span){(const char *)data, size}, "fuzz", NULL))
		return 0;
	plan = job_plan_new(spec, &options, &seen, 1e9);
	status = job_status_encode(&plan->status);
	job_status_decode(&seen.status, status);
	job_status_fini(&seen.status);
	cJSON_Delete(status);
	return 0;
}
