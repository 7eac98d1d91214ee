/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion of a status to JSON text, and back. */
#ifndef MU_TESTS_OPERATOR_STATUS_TEXT_H
#define MU_TESTS_OPERATOR_STATUS_TEXT_H

#include "lib/io/json.h"
#include "operator/api/job_status.h"

static inline void status_print(const struct job_status *s, struct mu_buf *out)
{
	cJSON *json = job_status_encode(s);

	mu_json_print(out, json);
	cJSON_Delete(json);
}

static inline void status_parse(struct job_status *out, const char *text)
{
	cJSON *json = cJSON_Parse(text);

	assert_non_null(json);
	job_status_decode(out, json);
	cJSON_Delete(json);
}

#endif
