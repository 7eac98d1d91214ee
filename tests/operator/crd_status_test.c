/* SPDX-License-Identifier: Apache-2.0 */
/* The CRD declares each member of a written status: the API server drops the others. */
#include "tests/test.h"

#include <string.h>

#include "lib/io/json.h"
#include "lib/io/yaml.h"
#include "operator/api/job_status.h"
#include "operator/api/object_json.h"

/* A status with each kind of member. */
static cJSON *full_status(void)
{
	struct index_status index;
	struct job_status s = {.phase = JOB_RUNNING,
			       .start_time = 1,
			       .completion_time = 2,
			       .restarts = 1,
			       .epoch = 2,
			       .members = "m",
			       .epoch_seen = 1,
			       .observed_generation = 1,
			       .selector = "s",
			       .n_tasks = 1,
			       .security = {"secret", 1, 2, 3},
			       .progress = {.set = true}};
	cJSON *json;

	index_status_init(&index, "worker", 0);
	index.failures = 1;
	index.retry_at = 1;
	s.indexes = &index;
	s.n_indexes = 1;
	for (int i = 0; i < JOB_CONDITIONS; i++)
		s.conditions[i].set = true;
	strcpy(s.tasks[0].name, "worker");
	s.tasks[0].joined = 1;
	strcpy(s.tasks[0].kernels, "cpu");
	json = job_status_encode(&s);
	return json;
}

static void assert_declared(const cJSON *value, const cJSON *schema, const char *where)
{
	const cJSON *properties = at(schema, "properties"), *items = at(schema, "items"), *member;
	const cJSON *others = at(schema, "additionalProperties");

	cJSON_ArrayForEach(member, value)
	{
		const cJSON *declared = !member->string ? items : at(properties, member->string);

		if (!declared && member->string)
			declared = others;
		if (declared)
			assert_declared(member, declared, member->string ? member->string : where);
		else if (properties && !at(schema, "x-kubernetes-preserve-unknown-fields"))
			fail_msg("deploy/crd.yaml does not declare status member '%s' of '%s'",
				 member->string ? member->string : "(item)", where);
	}
}

static void status__has_no_member_that_the_crd_does_not_declare(void **state)
{
	MU_AUTO_BUF text = {0};
	struct mu_err err = {0};
	struct mu_doc *doc;
	cJSON *crd, *status = full_status();
	const cJSON *version;

	assert_ok(mu_buf_read_file(&text, "deploy/crd.yaml", 1 << 20, &err), &err);
	assert_ok(mu_yaml_parse(&doc, mu_buf_span(&text), "crd.yaml", &err), &err);
	crd = mu_json_from_doc(doc->root);
	version = cJSON_GetArrayItem(at(at(crd, "spec"), "versions"), 0);
	version = at(at(version, "schema"), "openAPIV3Schema");
	assert_non_null(at(at(at(version, "properties"), "status"), "properties"));
	assert_declared(status, at(at(version, "properties"), "status"), "status");
	cJSON_Delete(status);
	cJSON_Delete(crd);
	mu_doc_free(doc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(status__has_no_member_that_the_crd_does_not_declare),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
