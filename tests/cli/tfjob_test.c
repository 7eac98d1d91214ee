/* SPDX-License-Identifier: Apache-2.0 */
/* TFJobs become valid jobs, and fields without a counterpart become notes. */
#include "tests/test.h"

#include <stdlib.h>
#include <string.h>

#include "cli/tfjob.h"
#include "lib/io/yaml.h"
#include "operator/api/job_spec.h"

#define CONTAINER                                                                                  \
	"template: {spec: {containers: [{name: tensorflow, image: i, command: [python, "           \
	"x.py]}]}}"
#define JOB(spec)                                                                                  \
	"apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {name: j, uid: u}\nspec:\n" spec

struct converted {
	struct mu_buf yaml, notes;
	struct job_spec *spec;
};

static struct mu_err err;

static struct converted convert(const char *tfjob)
{
	MU_AUTO(mu_doc_free) struct mu_doc *from = NULL;
	MU_AUTO(mu_doc_free) struct mu_doc *to = NULL;
	struct converted c = {0};

	assert_ok(mu_yaml_parse(&from, mu_span_of(tfjob), "tfjob.yaml", &err), &err);
	assert_ok(convert_tfjob(&to, from->root, &c.notes, &err), &err);
	convert_write(&c.yaml, to, mu_buf_span(&c.notes));
	assert_ok(job_spec_parse(&c.spec, mu_buf_span(&c.yaml), "result", &err), &err);
	return c;
}

static void free_converted(struct converted *c)
{
	mu_buf_fini(&c->yaml);
	mu_buf_fini(&c->notes);
	job_spec_free(c->spec);
}

static bool notes_contain(const struct converted *c, const char *text)
{
	return c->notes.len && strstr(c->notes.data, text);
}

static void typical_tfjobs__become_equivalent_jobs(void **state)
{
	struct converted c = convert(
	    JOB("  successPolicy: AllWorkers\n"
		"  runPolicy: {cleanPodPolicy: All, backoffLimit: 3, ttlSecondsAfterFinished: 60}\n"
		"  tfReplicaSpecs:\n"
		"    PS: {replicas: 2, restartPolicy: Never, " CONTAINER "}\n"
		"    Worker: {replicas: 4, restartPolicy: ExitCode, " CONTAINER "}\n"));
	const struct job_spec *s = c.spec;

	assert_string_equal(s->name, "j");
	assert_int_equal(s->program, PROGRAM_COMMAND);
	assert_int_equal(s->command->n, 2);
	assert_int_equal(s->n_tasks, 2);
	assert_string_equal(s->tasks[0].name, "ps");
	assert_int_equal(s->tasks[0].replicas, 2);
	assert_int_equal(s->tasks[0].restart, RESTART_NEVER);
	assert_int_equal(s->tasks[1].replicas, 4);
	assert_int_equal(s->tasks[1].restart, RESTART_EXIT_CODE);
	assert_string_equal(s->tasks[1].image, "i");
	assert_int_equal(s->clean, CLEAN_ALL);
	assert_int_equal(s->success, SUCCESS_ALL_WORKERS);
	assert_int_equal(s->backoff_limit, 3);
	assert_int_equal(s->ttl_seconds, 60);
	assert_true(notes_contain(&c, "metadata.uid: has no counterpart"));
	free_converted(&c);
}

static void tfjob__with_unsupported_fields__gets_a_note_for_each(void **state)
{
	struct converted c = convert(
	    JOB("  enableDynamicWorker: true\n  strange: 1\n"
		"  runPolicy: {schedulingPolicy: {queue: q, minAvailable: 3}}\n"
		"  tfReplicaSpecs:\n"
		"    PS: {template: {spec: {containers: [{name: tensorflow, command: [other]}]}}}\n"
		"    Worker: {odd: 1, restartPolicy: Always, template: {spec: {containers: [{name: "
		"side}, {name: "
		"tensorflow, command: [python], ports: [{name: tfjob-port, containerPort: "
		"3333}]}]}}}\n"));

	assert_int_equal(c.spec->gang, GANG_VOLCANO);
	assert_string_equal(c.spec->queue, "q");
	assert_true(notes_contain(&c, "line 6: spec.strange: has no counterpart"));
	assert_true(notes_contain(&c, "enableDynamicWorker: workers can always be scaled"));
	assert_true(notes_contain(&c, "minAvailable: the gang is always the whole job"));
	assert_true(notes_contain(&c, "tfReplicaSpecs.Worker.odd: has no counterpart"));
	assert_true(
	    notes_contain(&c, "Worker.restartPolicy: a task that decides the success of the job"));
	assert_true(notes_contain(&c, "move this one up"));
	assert_true(notes_contain(&c, "port 2222"));
	assert_true(notes_contain(&c, "all tasks run one program"));
	assert_true(notes_contain(&c, "no cleanPodPolicy"));
	assert_int_equal(strncmp(c.yaml.data, "# note: ", 8), 0);
	free_converted(&c);
}

static void list__instead_of_a_map__is_ignored(void **state)
{
	struct converted c = convert(JOB("  runPolicy: [{cleanPodPolicy: All}, backoffLimit]\n"
					 "  tfReplicaSpecs:\n"
					 "    Worker: {replicas: 4, " CONTAINER "}\n"));

	assert_true(notes_contain(&c, "runPolicy: is a list, expected a map"));
	free_converted(&c);
}

static void text__that_is_not_a_plain_yaml_string__is_quoted(void **state)
{
	struct converted c = convert(
	    "apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {name: j, labels: {\"on\": "
	    "\"yes\", "
	    "a: \"5\", b: \"x: y\\n# z\"}}\nspec: {tfReplicaSpecs: {Worker: {" CONTAINER "}}}\n");
	const struct mu_doc_node *labels = mu_doc_get(c.spec->doc->root, "metadata.labels");

	assert_string_equal(mu_doc_text(labels, "on", ""), "yes");
	assert_string_equal(mu_doc_text(labels, "a", ""), "5");
	assert_string_equal(mu_doc_text(labels, "b", ""), "x: y\n# z");
	free_converted(&c);
}

static void other_kinds__are_rejected(void **state)
{
	static const char *const bad[] = {
	    "kind: PyTorchJob\napiVersion: kubeflow.org/v1\n", "[1]\n", "kind: TFJob\n",
	    "kind: TFJob\napiVersion: kubeflow.org/v1\nspec: {tfReplicaSpecs: []}\n",
	    "kind: TFJob\napiVersion: kubeflow.org/v1\nspec: 3\n"};

	for (unsigned i = 0; i < MU_COUNT(bad); i++) {
		MU_AUTO(mu_doc_free) struct mu_doc *from = NULL;
		struct mu_doc *to = NULL;
		MU_AUTO_BUF notes = {0};

		assert_ok(mu_yaml_parse(&from, mu_span_of(bad[i]), "t", &err), &err);
		assert_int_equal(convert_tfjob(&to, from->root, &notes, &err),
				 -MU_INVALID_ARGUMENT);
		assert_null(to);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(typical_tfjobs__become_equivalent_jobs),
	    cmocka_unit_test(tfjob__with_unsupported_fields__gets_a_note_for_each),
	    cmocka_unit_test(list__instead_of_a_map__is_ignored),
	    cmocka_unit_test(text__that_is_not_a_plain_yaml_string__is_quoted),
	    cmocka_unit_test(other_kinds__are_rejected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
