/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of a job's objects: each row checks one rule of docs/operator-contract.md. A path is
 * split at '|', because labels contain dots and slashes. */
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "operator/controller/render.h"

#define JOB(spec)                                                                                  \
	"{apiVersion: muster.dev/v1, kind: DistributedTrainingJob, metadata: {name: j, "           \
	"namespace: n1, "                                                                          \
	"uid: u1}, spec: {" spec "}}\n"
#define TRAIN_CSV "program: {train: {dataset: {path: d.csv}}}, security: {mtls: false}, "
#define GANG(fields)                                                                               \
	"program: {command: [x]}, tasks: {ps: {}, worker: {}}, run: {gang: " fields                \
	", priorityClass: high}"

static const struct label h100[] = {{"nvidia.com/gpu.compute.major", "9"},
				    {"nvidia.com/gpu.compute.minor", "0"}};

struct row {
	const char *spec, *object; /* a pod's name, or "policy" */
	const char *path, *json;
};
static const struct row rows[] = {
    /* each pod is owned by the job and has a grace period of 30 s */
    {JOB("tasks: {ps: {}}"), "j-ps-0", "metadata|ownerReferences|0",
     "{\"apiVersion\":\"muster.dev/v1\",\"kind\":\"DistributedTrainingJob\",\"name\":\"j\","
     "\"uid\":\"u1\",\"controller\":true,\"blockOwnerDeletion\":false}"},
    {JOB("tasks: {ps: {}}"), "j-ps-0", "metadata|namespace", "\"n1\""},
    {JOB("tasks: {ps: {}}"), "j-ps-0", "spec|enableServiceLinks", "false"},
    {JOB("tasks: {ps: {}}"), "j-ps-0", "spec|terminationGracePeriodSeconds", "30"},
    {JOB("tasks: {ps: {}}"), "j-ps-0", "spec|securityContext",
     "{\"runAsNonRoot\":true,\"runAsUser\":65532,\"runAsGroup\":65532,\"fsGroup\":65532,"
     "\"seccompProfile\":{\"type\":\"RuntimeDefault\"}}"},
    {JOB("tasks: {ps: {}}"), "j-ps-0", "spec|shareProcessNamespace", "nothing"},
    {JOB("tasks: {ps: {}}"), "j-ps-0", "spec|containers|0|ports",
     "[{\"name\":\"grpc\",\"containerPort\":2222},{\"name\":\"stream\",\"containerPort\":2223},"
     "{\"name\":\"http\",\"containerPort\":8079}]"},
    /* the termination message: the status reports why a task failed */
    {JOB("tasks: {ps: {}}"), "j-ps-0", "spec|containers|0|terminationMessagePolicy",
     "\"FallbackToLogsOnError\""},
    /* a user's program gets SIGTERM and has no HTTP port */
    {JOB("program: {command: [x]}, tasks: {ps: {}}"), "j-ps-0", "spec|shareProcessNamespace",
     "true"},
    {JOB("program: {command: [x]}, tasks: {ps: {}}"), "j-ps-0", "spec|containers|0|ports",
     "[{\"name\":\"grpc\",\"containerPort\":2222},{\"name\":\"stream\",\"containerPort\":2223}]"},
    /* the configuration of a task and its cluster */
    {JOB(TRAIN_CSV "tasks: {ps: {}, worker: {}}"), "j-worker-0", "env|TF_CONFIG",
     "\"{\\\"cluster\\\":{\\\"ps\\\":[\\\"j-ps-0.j.n1.svc:2222\\\"],\\\"worker\\\":["
     "\\\"j-worker-0.j.n1.svc:2222\\\"]},\\\"task\\\":{\\\"type\\\":\\\"worker\\\",\\\"index\\\":0}"
     "}"
     "\""},
    {JOB(TRAIN_CSV "tasks: {ps: {}, worker: {}}"), "j-worker-0", "env|MUSTER_EPOCH", "\"1\""},
    {JOB(TRAIN_CSV "tasks: {ps: {}, worker: {}}"), "j-worker-0", "env|MUSTER_PORT", "\"2222\""},
    {JOB(TRAIN_CSV "tasks: {ps: {}, worker: {}}"), "j-worker-0", "env|MUSTER_STREAM_PORT",
     "\"2223\""},
    {JOB(TRAIN_CSV "tasks: {ps: {}, worker: {}}"), "j-worker-0", "env|MUSTER_HTTP_PORT",
     "\"8079\""},
    {JOB(TRAIN_CSV "tasks: {ps: {}, worker: {}}, checkpoint: {path: '/c/$(HOME)'}"), "j-worker-0",
     "env|MUSTER_CHECKPOINT", "\"/c/$$(HOME)\""},
    {JOB(TRAIN_CSV "tasks: {ps: {}, worker: {}}, checkpoint: {path: '/c/a$$b'}"), "j-worker-0",
     "env|MUSTER_CHECKPOINT", "\"/c/a$$$$b\""},
    {JOB(TRAIN_CSV "tasks: {ps: {}, worker: {}}"), "j-ps-0", "env|MUSTER_TRAIN", "nothing"},
    {JOB("program: {command: [x]}, tasks: {worker: {}, evaluator: {}}"), "j-evaluator-0",
     "env|TF_CONFIG",
     "\"{\\\"cluster\\\":{\\\"worker\\\":[\\\"j-worker-0.j.n1.svc:2222\\\"]},\\\"task\\\":{"
     "\\\"type\\\":"
     "\\\"evaluator\\\",\\\"index\\\":0}}\""},
    /* kernels: GPU tasks request a GPU; other tasks must not see one */
    {JOB("tasks: {worker: {kernels: gpu}}"), "j-worker-0", "spec|containers|0|image", "\"cuda:1\""},
    {JOB("tasks: {worker: {kernels: gpu}}"), "j-worker-0", "spec|tolerations",
     "[{\"key\":\"nvidia.com/gpu\",\"operator\":\"Exists\",\"effect\":\"NoSchedule\"}]"},
    {JOB("tasks: {worker: {kernels: gpu}}"), "j-worker-0", "spec|containers|0|resources|limits",
     "{\"nvidia.com/gpu\":\"1\"}"},
    {JOB("tasks: {worker: {kernels: gpu}}"), "j-worker-0", "spec|nodeSelector",
     "{\"nvidia.com/gpu.compute.major\":\"9\",\"nvidia.com/gpu.compute.minor\":\"0\"}"},
    {JOB("tasks: {worker: {kernels: gpu}}"), "j-worker-0", "metadata|labels|muster.dev/gpu",
     "\"true\""},
    {JOB("tasks: {worker: {kernels: gpu}}"), "j-worker-0", "env|NVIDIA_VISIBLE_DEVICES", "nothing"},
    {JOB("tasks: {worker: {kernels: cpu}}"), "j-worker-0", "env|NVIDIA_VISIBLE_DEVICES",
     "\"void\""},
    {JOB("tasks: {worker: {kernels: cpu}}"), "j-worker-0", "spec|containers|0|image", "\"task:1\""},
    /* gangs: the labels and annotations of each scheduler */
    {JOB(GANG("scheduler-plugins")), "j-ps-0", "metadata|labels|scheduling.x-k8s.io/pod-group",
     "\"j\""},
    {JOB(GANG("scheduler-plugins")), "j-ps-0", "spec|schedulerName",
     "\"scheduler-plugins-scheduler\""},
    {JOB(GANG("scheduler-plugins")), "j-ps-0", "spec|priorityClassName", "\"high\""},
    {JOB(GANG("volcano")), "j-worker-0", "metadata|annotations|scheduling.k8s.io/group-name",
     "\"j\""},
    {JOB(GANG("kueue, queue: q")), "j-worker-0", "metadata|labels|kueue.x-k8s.io/priority-class",
     "\"high\""},
    {JOB(GANG("kueue, queue: q")), "j-worker-0", "spec|schedulerName", "nothing"},
    {JOB(GANG("kueue, queue: q")), "j-worker-0", "spec|priorityClassName", "nothing"},
    /* the peers and ports that the network policy allows */
    {JOB("tasks: {ps: {}}"), "policy", "spec|ingress|1",
     "{\"from\":[{\"podSelector\":{\"matchLabels\":{\"muster.dev/client\":\"j\"}}}],\"ports\":[{"
     "\"protocol\":\"TCP\",\"port\":2222}]}"},
    {JOB("tasks: {ps: {}}"), "policy", "spec|ingress|2|from|1",
     "{\"namespaceSelector\":{\"matchLabels\":{\"kubernetes.io/metadata.name\":\"prometheus\"}}}"},
    {JOB("tasks: {ps: {}}"), "policy", "spec|ingress|3", "nothing"},
};

static const cJSON *at(const cJSON *o, const char *key)
{
	return cJSON_IsArray(o) ? cJSON_GetArrayItem(o, atoi(key))
				: cJSON_GetObjectItemCaseSensitive(o, key);
}

/* "env|NAME" is the value of a variable of the task's container. */
static const cJSON *find(const cJSON *o, const char *path)
{
	MU_AUTO_FREE char *copy = mu_xstrdup(path);
	char *save = NULL;
	const cJSON *e;

	if (strncmp(path, "env|", 4) == 0) {
		cJSON_ArrayForEach(e, find(o, "spec|containers|0|env"))
		{
			if (strcmp(cJSON_GetStringValue(at(e, "name")), path + 4) == 0)
				return at(e, "value");
		}
		return NULL;
	}
	for (char *p = strtok_r(copy, "|", &save); p && o; p = strtok_r(NULL, "|", &save))
		o = at(o, p);
	return o;
}

/* Renders the object of a row. Reconciles with all pods running until the plan creates it. */
static cJSON *render_object(const struct row *row)
{
	static const struct node_info nodes[] = {{"n1", h100, MU_COUNT(h100), true, 8, false}};
	static const struct plan_options options = {.image = "task:1", .image_gpu = "cuda:1"};
	struct observed_pod ps = {.task = "ps", .uid = "u2", .phase = POD_RUNNING, .ready = true};
	struct observed_job observed = {
	    .service = true, .nodes = nodes, .n_nodes = MU_COUNT(nodes)};
	struct job_spec *spec;
	struct mu_err err = {0};
	cJSON *object = NULL;

	assert_ok(job_spec_parse(&spec, mu_span_of(row->spec), "t.yaml", &err), &err);
	if (strncmp(row->object, "j-ps-", 5) != 0) {
		observed.pods = &ps;
		observed.n_pods = 1;
	}
	struct job_plan *plan = job_plan_new(spec, &options, &observed, 1e9);
	if (strcmp(row->object, "policy") == 0)
		object = render_policy(spec, "ops", "prometheus");
	for (unsigned i = 0; i < plan->n_actions && !object; i++)
		if (plan->actions[i].pod && strcmp(plan->actions[i].name, row->object) == 0)
			object = render_pod(spec, plan->actions[i].pod);
	job_plan_free(plan);
	job_spec_free(spec);
	return object;
}

static void object__of_each_row__has_the_member(void **state)
{
	int bad = 0;

	for (unsigned i = 0; i < MU_COUNT(rows); i++) {
		cJSON *object = render_object(&rows[i]);
		const cJSON *item = find(object, rows[i].path);
		MU_AUTO_FREE char *is = item ? cJSON_PrintUnformatted(item) : mu_xstrdup("nothing");

		assert_non_null(object);
		if (strcmp(is, rows[i].json) != 0) {
			print_message("%s of %s in\n  %s\nis     %s\nnot    %s\n", rows[i].path,
				      rows[i].object, rows[i].spec, is, rows[i].json);
			bad++;
		}
		cJSON_Delete(object);
	}
	assert_int_equal(bad, 0);
}

/* One variable holds the settings of the built-in trainer; a command does not get it. */
static void trainer__gets_its_settings(void **state)
{
	struct row row = {JOB(TRAIN_CSV "tasks: {ps: {}, worker: {}}"), "j-worker-0", NULL, NULL};
	cJSON *pod = render_object(&row);
	const char *text = cJSON_GetStringValue(find(pod, "env|MUSTER_TRAIN"));
	MU_AUTO(mu_doc_free) struct mu_doc *d = NULL;
	struct mu_err err = {0};
	struct train_spec t;

	assert_non_null(text);
	assert_ok(train_spec_read(&t, &d, mu_span_of(text), &err), &err);
	assert_string_equal(t.path, "d.csv");
	cJSON_Delete(pod);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(object__of_each_row__has_the_member),
	    cmocka_unit_test(trainer__gets_its_settings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
