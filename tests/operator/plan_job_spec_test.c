/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/io/json.h"
#include "operator/plan/job_plan.h"
#include "tests/fuzz/job_spec_fuzz.c"
#include "tests/fuzz/mutate.h"

#define HEAD  "apiVersion: muster.dev/v1\nkind: DistributedTrainingJob\nmetadata: {name: j}\nspec:\n"
#define TASKS "  tasks: {ps: {}, worker: {replicas: 2}}\n"

static struct mu_err err;

static struct job_spec *parsed(const char *text)
{
	struct job_spec *s;

	assert_ok(job_spec_parse(&s, mu_span_of(text), "j.yaml", &err), &err);
	return s;
}

static void manifest__with_required_fields_only__has_the_defaults(void **state)
{
	MU_AUTO(job_spec_free) struct job_spec *s = parsed(HEAD TASKS);

	assert_string_equal(s->name, "j");
	assert_string_equal(s->namespace, "default");
	assert_int_equal(s->n_tasks, 2);
	assert_string_equal(s->tasks[0].name, "ps");
	assert_int_equal(s->tasks[0].replicas, 1);
	assert_string_equal(s->tasks[0].kernels, "cpu");
	assert_string_equal(s->tasks[1].kernels, "auto");
	assert_int_equal(s->tasks[1].restart, RESTART_EXIT_CODE);
	assert_int_equal(s->backoff_limit, 20);
	assert_int_equal(s->clean, CLEAN_RUNNING);
	assert_int_equal(s->program, PROGRAM_NONE);
	assert_int_equal(s->ttl_seconds, -1);
	assert_ptr_equal(job_spec_chief(s), job_spec_task(s, "worker"));
}

/* kubectl converts these to integers. */
static void numbers__that_are_integral__may_have_any_notation(void **state)
{
	MU_AUTO(job_spec_free)
	struct job_spec *s =
	    parsed(HEAD "  program: {train: {steps: 1e3, dataset: {path: d}}}\n"
			"  tasks: {ps: {replicas: 2.0}, worker: {replicas: 0x3}}\n");

	assert_int_equal(s->train.steps, 1000);
	assert_int_equal(s->tasks[0].replicas, 2);
	assert_int_equal(s->tasks[1].replicas, 3);
}

static void manifest__with_everything__is_read(void **state)
{
	MU_AUTO(job_spec_free)
	struct job_spec *s =
	    parsed(HEAD "  program: {train: {model: mlp, hiddenUnits: [64, 32], batchSize: 8, "
			"learningRate: 0.5,\n"
			"    optimizer: adam, steps: 7, seed: 3, dataset: {format: idx, "
			"trainImages: a, trainLabels: b}}}\n"
			"  mode: sync\n"
			"  sync: {replicasToAggregate: 2, backupWorkers: 1}\n"
			"  tasks: {evaluator: {}, worker: {replicas: 3, restartPolicy: Never}, "
			"chief: {image: i}, ps: {replicas: 2}}\n"
			"  checkpoint: {volumeClaim: c, everySteps: 5}\n"
			"  summaries: {path: /s}\n"
			"  run: {restartPolicy: Always, backoffLimit: 1, ttlSecondsAfterFinished: "
			"9, cleanPodPolicy: All, suspend: true}\n");

	assert_int_equal(s->train.n_hidden, 2);
	assert_int_equal(s->train.hidden[1], 32);
	assert_string_equal(s->train.optimizer, "adam");
	assert_true(s->train.sync && s->train.learning_rate == 0.5);
	assert_int_equal(s->train.replicas_to_aggregate, 2);
	assert_string_equal(s->train.checkpoint_path, JOB_VOLUME_PATH);
	assert_int_equal(s->train.checkpoint_seconds, 0);
	assert_int_equal(s->train.checkpoint_steps, 5);
	assert_string_equal(s->tasks[1].name, "chief");
	assert_string_equal(s->tasks[1].image, "i");
	assert_int_equal(s->tasks[1].restart, RESTART_ALWAYS);
	assert_int_equal(s->tasks[2].restart, RESTART_NEVER);
	assert_true(s->suspend && s->clean == CLEAN_ALL && s->ttl_seconds == 9);
	assert_string_equal(job_spec_chief(s)->name, "chief");
}

static void manifest__that_is_invalid__is_reported_with_line_and_path(void **state)
{
	static const char *const cases[][2] = {
	    {"a: 1", "j.yaml:1: apiVersion: must be muster.dev/v1, got ''"},
	    {"[1]", "must be a map, got a list"},
	    {"apiVersion: muster.dev/v1\nkind: Pod",
	     "kind: must be DistributedTrainingJob, got 'Pod'"},
	    {HEAD "  tasks: {}", "between 1 and 8 entries in spec.tasks"},
	    {HEAD "  tasks:\n    ps:\n      replicas: -1",
	     "j.yaml:7: spec.tasks.ps.replicas: must be between 0 and 1000, got -1"},
	    {HEAD "  tasks: {ps: {replicas: two}}",
	     "spec.tasks.ps.replicas: must be a whole number, got a string"},
	    {HEAD "  tasks: {ps: {kernels: tpu}}", "spec.tasks.ps.kernels: must be auto, cpu, gpu"},
	    {HEAD "  tasks: {ps: {replcas: 1}}", "did you mean 'replicas'?"},
	    {HEAD "  tasks: {Ps: {}}", "lower-case letters"},
	    {HEAD "  tasks: {chief: {replicas: 2}}", "must be 1 for a chief"},
	    {HEAD "  tasks: {master: {replicas: 2}}", "must be 1 for a chief"},
	    {HEAD "  tasks: {chief: {}, master: {}}", "only one of chief and master"},
	    {HEAD "  tasks: {ps: {}}\n  run: {successPolicy: AllWorkers}",
	     "successPolicy AllWorkers needs worker tasks"},
	    {HEAD TASKS "  tensorboard: {enabled: true}", "needs checkpoint.volumeClaim"},
	    {HEAD TASKS "  checkpoint: {volumeClaim: My_Claim}",
	     "j.yaml:6: spec.checkpoint.volumeClaim: 'My_Claim' is not a valid name of a"},
	    {HEAD TASKS "  checkpoint: {volumeClaim: -c}", "is not a valid name of a"},
	    {HEAD TASKS "  checkpoint: {volumeClaim: c.}", "is not a valid name of a"},
	    {HEAD "  tasks: {ps: {replicas: 1.5}}", "must be a whole number, got a number: 1.5"},
	    {HEAD "  tasks: {ps: {replicas: 1e30}}", "must be a whole number, got a number: 1e+30"},
	    {HEAD TASKS "  checkpoint: {volumeClaim: c}\n  tensorboard: {enabled: maybe}",
	     "spec.tensorboard.enabled"},
	    {HEAD TASKS "  mode: fast", "spec.mode: must be async or sync, got 'fast'"},
	    {HEAD TASKS "  sync: {backupWorkers: 1}", "spec.sync: needs mode: sync"},
	    {HEAD TASKS "  program: {command: []}", "must hold between 1 and 256 strings"},
	    {HEAD TASKS "  program: {command: [a, 5]}",
	     "spec.program.command[1]: must be a string, got a whole number"},
	    {HEAD TASKS "  program: {args: [a]}", "spec.program.args: needs a command"},
	    {HEAD TASKS "  program: {command: [a], train: {dataset: {path: x}}}",
	     "must have only one of train and command"},
	    {HEAD TASKS "  program: {train: {}}", "spec.program.train: needs a dataset"},
	    {HEAD TASKS "  program: {train: {dataset: {format: idx, path: x}}}",
	     "format idx needs trainImages"},
	    {HEAD TASKS "  program: {train: {hiddenUnits: [3], dataset: {path: x}}}",
	     "set model: mlp"},
	    {HEAD TASKS "  program: {train: {model: wide-deep, dataset: {path: x}}}",
	     "spec.program.train: categoricalColumns belong to model wide-deep"},
	    {HEAD TASKS "  program: {train: {categoricalColumns: [0], dataset: {path: x}}}",
	     "categoricalColumns belong to model wide-deep"},
	    {HEAD TASKS "  program: {train: {model: wide-deep, categoricalColumns: [-1], dataset: "
			"{path: x}}}",
	     "categoricalColumns[0]: must be a whole number between 0 and 255"},
	    {HEAD TASKS "  program: {train: {validation: {everySteps: 0}, dataset: {path: x}}}",
	     "validation.everySteps: must be between 1 and"},
	    {HEAD TASKS "  program: {train: {dataset: {format: tfrecord}}}",
	     "format tfrecord needs a path"},
	    {HEAD TASKS "  program: {train: {dataset: {path: x, testPath: z}}}",
	     "testPath goes with the formats cifar10 and tfrecord"},
	    {HEAD TASKS "  program: {train: {model: es, perturbations: 0, dataset: {path: x}}}",
	     "perturbations: must be between 1 and 256"},
	    {HEAD "  tasks: {worker: {}}\n  program: {train: {dataset: {path: x}}}",
	     "needs at least one ps"},
	    {HEAD TASKS "  checkpoint: {keep: 3}", "needs a path, a volumeClaim or both"},
	    {HEAD TASKS "  security: {mtls: maybe}", "spec.security.mtls"},
	    {HEAD TASKS "  run: {backoffLimit: -1}", "spec.run.backoffLimit: must be between 0"},
	    {HEAD TASKS "  runn: {}", "j.yaml:6: spec.runn: unknown field; did you mean 'run'?"},
	    {"apiVersion: muster.dev/v1\nkind: DistributedTrainingJob\nmetadata: {name: J}\nspec: "
	     "{}",
	     "metadata.name: must be lower-case"},
	    {"apiVersion: muster.dev/v1\nkind: DistributedTrainingJob\nmetadata: {name: "
	     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	     "}\nspec: {tasks: {worker: {replicas: 11}}}",
	     "longer than 63 characters"},
	};
	struct job_spec *s;

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		err = (struct mu_err){0};
		assert_true(job_spec_parse(&s, mu_span_of(cases[i][0]), "j.yaml", &err) < 0);
		if (!strstr(err.msg, cases[i][1]))
			fail_msg("'%s' does not say '%s'", err.msg, cases[i][1]);
	}
}

/* The API server and `muster validate` reject these manifests now. */
static void stored_job__that_breaks_a_newer_rule__still_runs(void **state)
{
	job_spec_free(parsed(HEAD TASKS "  program: {classicFlags: true}"));
	job_spec_free(parsed(HEAD TASKS "  checkpoint: {volumeClaim: c, path: out/x}"));
	job_spec_free(parsed(HEAD TASKS "  run: {gang: scheduler-plugins, queue: q}"));
}

/* Linux limits one environment string to 128 KiB (MAX_ARG_STRLEN). */
static void cluster__with_addresses_of_more_than_128_kib__is_rejected(void **state)
{
	static const char format[] =
	    "apiVersion: muster.dev/v1\nkind: DistributedTrainingJob\n"
	    "metadata: {name: %.*s, namespace: a-team-of-many}\nspec: {program: {"
	    "command: [x]}, tasks: {ps: {replicas: 9}, worker: {replicas: 1000}}}";
	static const char name[] = "anameofmanylettersthatsaysitallandthensomemorex";
	int longest = 0;

	for (int n = (int)strlen(name); n > 0 && !longest; n--) {
		MU_AUTO_FREE char *text = mu_xasprintf(format, n, name);
		struct job_spec *s;

		if (job_spec_parse(&s, mu_span_of(text), "j.yaml", &err) == 0) {
			struct observed_job observed = {.service = true};
			struct plan_options options = {.image = "i"};
			struct job_plan *plan = job_plan_new(s, &options, &observed, 1e9);
			const struct plan_env *e = plan->actions[plan->n_actions - 1].pod->env;
			size_t env_bytes = strlen("TF_CONFIG=") + strlen(e->value) + 1;

			assert_string_equal(e->name, "TF_CONFIG");
			assert_in_range(env_bytes, (128 << 10) * 97 / 100, 128 << 10);
			longest = n;
			job_plan_free(plan);
			job_spec_free(s);
		} else {
			if (!strstr(err.msg, "KiB of addresses"))
				fail_msg("%s", err.msg);
		}
	}
	assert_in_range(longest, 20, strlen(name) - 1);
}

static void train_settings__written_to_the_environment__are_restored(void **state)
{
	MU_AUTO(job_spec_free)
	struct job_spec *s = parsed(
	    HEAD TASKS "  program: {train: {learningRate: 0.1, steps: 12, dataset: {path: d.csv, "
		       "scale: 16}}}\n"
		       "  checkpoint: {path: out, everySeconds: 10}\n  summaries: {path: sum}\n");
	MU_AUTO(mu_doc_free) struct mu_doc *d = NULL;
	MU_AUTO_BUF json = {0};
	struct train_spec t;

	train_spec_write(&s->train, &json);
	assert_null(strchr(json.data, '\n'));
	assert_ok(train_spec_read(&t, &d, mu_buf_span(&json), &err), &err);
	assert_string_equal(t.model, "softmax");
	assert_string_equal(t.path, "d.csv");
	assert_string_equal(t.checkpoint_path, "out");
	assert_string_equal(t.summary_path, "sum");
	assert_true(t.learning_rate == 0.1 && t.steps == 12 && t.scale == 16 && !t.sync);
	assert_int_equal(t.checkpoint_seconds, 10);
	assert_fails(train_spec_read(&t, &d, MU_SPAN("{\"train\":{\"steps\":0}}"), &err), &err,
		     MU_INVALID_ARGUMENT, "MUSTER_TRAIN: train.steps: must be between 1");
}

static void manifest__as_json__is_read_too(void **state)
{
	MU_AUTO(job_spec_free)
	struct job_spec *s = parsed("{\"apiVersion\":\"muster.dev/"
				    "v1\",\"kind\":\"DistributedTrainingJob\",\"metadata\":{"
				    "\"name\":\"j\",\"uid\":\"u\\/1\","
				    "\"creationTimestamp\":\"2024-01-02T03:04:05Z\",\"generation\":"
				    "3},\"spec\":{\"tasks\":{\"worker\":{\"replicas\":2}}}}");

	assert_string_equal(s->uid, "u/1");
	assert_int_equal(s->generation, 3);
}

static void example__as_shipped__is_valid(void **state)
{
	MU_AUTO(job_spec_free) struct job_spec *s = NULL;
	MU_AUTO_BUF text = {0};

	if (access("examples/digits.yaml", R_OK))
		skip();
	assert_ok(mu_buf_read_file(&text, "examples/digits.yaml", 1 << 20, &err), &err);
	assert_ok(job_spec_parse(&s, mu_buf_span(&text), "examples/digits.yaml", &err), &err);
	assert_int_equal(s->program, PROGRAM_TRAIN);
}

static void manifest__of_random_bytes__does_not_crash_parser_or_planner(void **state)
{
	const char text[] = HEAD TASKS
	    "  program: {train: {model: mlp, hiddenUnits: [8], dataset: {path: d}}}\n"
	    "  checkpoint: {volumeClaim: c}\n  run: {suspend: no, ttlSecondsAfterFinished: 3}\n";
	const char command[] = HEAD "  program: {command: [a, b], args: [c], classicFlags: on}\n"
				    "  tasks: {ps: {replicas: 3}, w-1: {kernels: cuda-sm90}}\n";

	mutate_run(LLVMFuzzerTestOneInput, text, sizeof text - 1, 4000);
	mutate_run(LLVMFuzzerTestOneInput, command, sizeof command - 1, 4000);
}

static void network_policy__is_on_by_default_for_the_trainer_only(void **state)
{
	static const struct {
		const char *spec;
		bool on;
	} rows[] = {
	    {"  program: {train: {dataset: {path: x.csv}}}\n  tasks: {ps: {}, worker: {}}\n", true},
	    {"  program: {train: {dataset: {path: x.csv}}}\n  tasks: {ps: {}, worker: {}}\n"
	     "  security: {networkPolicy: false}\n",
	     false},
	    {"  program: {command: [x]}\n  tasks: {worker: {}}\n", false},
	    {"  tasks: {worker: {}}\n  security: {networkPolicy: true}\n", true},
	};

	for (unsigned i = 0; i < MU_COUNT(rows); i++) {
		MU_AUTO_FREE char *text = mu_xasprintf(
		    "apiVersion: muster.dev/v1\nkind: DistributedTrainingJob\nmetadata: {name: j}\n"
		    "spec:\n%s",
		    rows[i].spec);
		struct job_spec *spec;
		struct mu_err why = {0};

		assert_ok(job_spec_parse(&spec, mu_span_of(text), "j.yaml", &why), &why);
		assert_int_equal(spec->network_policy, rows[i].on);
		job_spec_free(spec);
	}
}

static void kernels_auto__with_a_gpu_request__means_gpu(void **state)
{
	static const struct {
		const char *task, *kernels;
	} cases[] = {
	    {"resources: {limits: {nvidia.com/gpu: 1}}", "gpu"},
	    {"kernels: auto, resources: {limits: {nvidia.com/gpu: '1'}}", "gpu"},
	    {"template: {spec: {containers: [{resources: {limits: {nvidia.com/gpu: 1}}}]}}", "gpu"},
	    {"resources: {limits: {nvidia.com/gpu: 0}}", "auto"},
	    {"kernels: prefer-gpu, resources: {limits: {nvidia.com/gpu: 1}}", "prefer-gpu"},
	};

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		MU_AUTO_FREE char *text =
		    mu_xasprintf(HEAD "  tasks: {worker: {%s}}\n", cases[i].task);
		MU_AUTO(job_spec_free) struct job_spec *s = NULL;

		assert_ok(job_spec_parse(&s, mu_span_of(text), "j.yaml", &err), &err);
		assert_string_equal(s->tasks[0].kernels, cases[i].kernels);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(network_policy__is_on_by_default_for_the_trainer_only),
	    cmocka_unit_test(manifest__with_required_fields_only__has_the_defaults),
	    cmocka_unit_test(numbers__that_are_integral__may_have_any_notation),
	    cmocka_unit_test(manifest__with_everything__is_read),
	    cmocka_unit_test(manifest__that_is_invalid__is_reported_with_line_and_path),
	    cmocka_unit_test(stored_job__that_breaks_a_newer_rule__still_runs),
	    cmocka_unit_test(cluster__with_addresses_of_more_than_128_kib__is_rejected),
	    cmocka_unit_test(train_settings__written_to_the_environment__are_restored),
	    cmocka_unit_test(manifest__as_json__is_read_too),
	    cmocka_unit_test(example__as_shipped__is_valid),
	    cmocka_unit_test(manifest__of_random_bytes__does_not_crash_parser_or_planner),
	    cmocka_unit_test(kernels_auto__with_a_gpu_request__means_gpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
