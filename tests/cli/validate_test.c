/* SPDX-License-Identifier: Apache-2.0 */
/* muster validate accepts the manifests that the API server accepts. tests/cluster-api gives the
 * same manifests to an API server. */
#include "tests/test.h"

#include <stdio.h>
#include <string.h>

#include "cli/manifest.h"
#include "lib/io/yaml.h"

/* NULL if the manifest is valid, else the error. */
static const char *validate(struct mu_span text)
{
	static struct mu_err err;
	MU_AUTO(job_spec_free) struct job_spec *spec = NULL;

	if (job_spec_parse(&spec, text, "t", &err) || validate_manifest(spec, &err))
		return err.msg;
	return NULL;
}

static void manifests__are_accepted_or_rejected_as_by_the_api_server(void **state)
{
	FILE *f = fopen("tests/cluster-api/manifests.txt", "r");
	char line[4096], name[128], reply[256];
	int n = 0, at;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		MU_AUTO_BUF text = {0};
		const char *error;

		if (sscanf(line, "%127[^#|]|%255[^|]|%n", name, reply, &at) != 2)
			continue;
		mu_buf_printf(&text,
			      "{\"apiVersion\":\"muster.dev/v1\","
			      "\"kind\":\"DistributedTrainingJob\","
			      "\"metadata\":{\"name\":\"%s\"},\"spec\":%s}",
			      name, line + at);
		error = validate(mu_buf_span(&text));
		if (!error != !strcmp(reply, "ok"))
			fail_msg("%s: %s: %s", line, reply, error ? error : "accepted");
		n++;
	}
	fclose(f);
	assert_true(n > 100);
}

/* Validates a spec with only one text of n characters, and expects an error or none about its
 * length. */
static void expect_length(const char *path, size_t n, bool valid)
{
	MU_AUTO_BUF yaml = {0};
	MU_AUTO(mu_doc_free) struct mu_doc *doc = NULL;
	struct mu_err err;
	bool rejected;

	mu_buf_puts(&yaml, "{");
	for (const char *at = path; *at; at++)
		*at == '.' ? mu_buf_puts(&yaml, ": {") : mu_buf_putc(&yaml, *at);
	mu_buf_puts(&yaml, ": '");
	for (size_t i = 0; i < n; i++)
		mu_buf_puts(&yaml, "é");
	mu_buf_puts(&yaml, "'}");
	for (const char *at = path; *at; at++)
		if (*at == '.')
			mu_buf_puts(&yaml, "}");
	assert_ok(mu_yaml_parse(&doc, mu_buf_span(&yaml), "t", &err), &err);
	rejected = validate_manifest(&(struct job_spec){.doc = doc}, &err) &&
		   strstr(err.msg, path) && strstr(err.msg, " characters");
	if (rejected == valid)
		fail_msg("%s with %zu characters: %s", path, n, rejected ? err.msg : "accepted");
}

/* Returns the number of texts in the schema that have a minimum length. */
static int check_texts_of(const struct mu_doc_node *schema, const char *path)
{
	const struct mu_doc_node *of_tasks = mu_doc_get(schema, "additionalProperties");
	int64_t min = mu_doc_int(schema, "minLength", 0), max = mu_doc_int(schema, "maxLength", 0);
	int n = 0;
	char member[256];

	if (min) {
		expect_length(path, (size_t)min - 1, false);
		expect_length(path, (size_t)max, true);
		expect_length(path, (size_t)max + 1, false);
		n++;
	}
	mu_doc_each(mu_doc_get(schema, "properties"), p)
	{
		snprintf(member, sizeof(member), "%s.%s", path, p->key);
		n += check_texts_of(p, member);
	}
	snprintf(member, sizeof(member), "%s.worker", path);
	return of_tasks ? n + check_texts_of(of_tasks, member) : n;
}

static void texts__have_the_lengths_of_the_schema(void **state)
{
	MU_AUTO_BUF text = {0};
	MU_AUTO(mu_doc_free) struct mu_doc *crd = NULL;
	struct mu_err err;
	const struct mu_doc_node *versions;

	assert_ok(mu_buf_read_input(&text, "deploy/crd.yaml", 1 << 20, &err), &err);
	assert_ok(mu_yaml_parse(&crd, mu_buf_span(&text), "deploy/crd.yaml", &err), &err);
	versions = mu_doc_get(crd->root, "spec.versions");
	assert_true(
	    check_texts_of(mu_doc_get(versions->first, "schema.openAPIV3Schema.properties.spec"),
			   "spec") > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(manifests__are_accepted_or_rejected_as_by_the_api_server),
	    cmocka_unit_test(texts__have_the_lengths_of_the_schema),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
