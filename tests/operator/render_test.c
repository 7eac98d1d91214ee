/* SPDX-License-Identifier: Apache-2.0 */
/* Rendered pods and services: the restricted Pod Security Standard and the pod template. */
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "operator/controller/reconcile.h"
#include "operator/controller/render.h"

struct rendered_job {
	struct job_spec *spec;
	struct job_plan *plan;
	cJSON *pod;
};

/* The first pod of a job. */
static struct rendered_job render_first_pod(const char *manifest)
{
	struct rendered_job m = {0};
	struct observed_job observed = {.service = true,
					.status.security = {.secret = "j-tls-1", .issued_at = 1e9}};
	struct plan_options options = {.image = "localhost/muster-task:dev"};
	struct mu_err err = {0};

	assert_ok(job_spec_parse(&m.spec, mu_span_of(manifest), "test.yaml", &err), &err);
	m.plan = job_plan_new(m.spec, &options, &observed, 1e9);
	for (unsigned i = 0; i < m.plan->n_actions && !m.pod; i++)
		if (m.plan->actions[i].kind == ACTION_CREATE_POD)
			m.pod = render_pod(m.spec, m.plan->actions[i].pod);
	assert_non_null(m.pod);
	return m;
}

static void rendered_job_free(struct rendered_job *m)
{
	cJSON_Delete(m->pod);
	job_plan_free(m->plan);
	job_spec_free(m->spec);
}

/* "spec.containers.0.env.1.name" */
static const cJSON *find(const cJSON *o, const char *path)
{
	MU_AUTO_FREE char *copy = mu_xstrdup(path);
	char *save = NULL;

	for (char *p = strtok_r(copy, ".", &save); p && o; p = strtok_r(NULL, ".", &save))
		o = cJSON_IsArray(o) ? cJSON_GetArrayItem(o, atoi(p))
				     : cJSON_GetObjectItemCaseSensitive(o, p);
	return o;
}

static void expect(const cJSON *o, const char *path, const char *json)
{
	const cJSON *item = find(o, path);
	MU_AUTO_FREE char *is = item ? cJSON_PrintUnformatted(item) : mu_xstrdup("nothing");

	if (strcmp(is, json) != 0)
		fail_msg("%s is %s, not %s", path, is, json);
}

static const char *env_of(const cJSON *pod, const char *name)
{
	const cJSON *e;

	cJSON_ArrayForEach(e, find(pod, "spec.containers.0.env"))
	{
		if (strcmp(cJSON_GetStringValue(find(e, "name")), name) == 0)
			return cJSON_GetStringValue(find(e, "value"));
	}
	return NULL;
}

#define HEAD                                                                                       \
	"apiVersion: muster.dev/v1\nkind: DistributedTrainingJob\nmetadata: {name: j, uid: u1}\n"

static void job__without_a_template__has_restricted_pods(void **state)
{
	struct rendered_job m =
	    render_first_pod(HEAD "spec: {tasks: {ps: {replicas: 1}, worker: {replicas: 1}}}\n");

	expect(m.pod, "metadata.name", "\"j-ps-0\"");
	expect(m.pod, "metadata.ownerReferences.0.uid", "\"u1\"");
	expect(m.pod, "metadata.ownerReferences.0.controller", "true");
	expect(m.pod, "metadata.labels",
	       "{\"muster.dev/job\":\"j\",\"app.kubernetes.io/name\":"
	       "\"muster\",\"app.kubernetes.io/instance\":\"j\","
	       "\"app.kubernetes.io/managed-by\":\"muster-operator\","
	       "\"muster.dev/task\":\"ps\",\"muster.dev/index\":\"0\",\"muster.dev/epoch\":\"1\","
	       "\"muster.dev/kernels\":\"cpu-generic\"}");
	expect(m.pod, "spec.hostname", "\"j-ps-0\"");
	expect(m.pod, "spec.subdomain", "\"j\"");
	expect(m.pod, "spec.restartPolicy", "\"Never\"");
	expect(m.pod, "spec.automountServiceAccountToken", "false");
	expect(m.pod, "spec.securityContext.runAsNonRoot", "true");
	expect(m.pod, "spec.securityContext.seccompProfile", "{\"type\":\"RuntimeDefault\"}");
	expect(m.pod, "spec.containers.0.securityContext",
	       "{\"allowPrivilegeEscalation\":false,\"readOnlyRootFilesystem\":true,"
	       "\"capabilities\":{\"drop\":[\"ALL\"]}}");
	expect(m.pod, "spec.containers.0.image", "\"localhost/muster-task:dev\"");
	expect(m.pod, "spec.containers.0.readinessProbe.httpGet.path", "\"/readyz\"");
	expect(m.pod, "spec.containers.0.readinessProbe.timeoutSeconds", "5");
	expect(m.pod, "spec.containers.0.readinessProbe.failureThreshold", "1");
	expect(m.pod, "spec.containers.0.livenessProbe", "nothing");
	expect(m.pod, "spec.volumes", "[{\"name\":\"muster-tmp\",\"emptyDir\":{}}]");
	assert_non_null(env_of(m.pod, "TF_CONFIG"));
	assert_string_equal(env_of(m.pod, "NVIDIA_VISIBLE_DEVICES"), "void");
	rendered_job_free(&m);
}

/* The API server reports the mistakes and rejects the pod. */
static void template__with_mistakes__is_rendered_unchanged(void **state)
{
	struct rendered_job m =
	    render_first_pod(HEAD "spec: {tasks: {worker: {template: {container: [x], metadata: "
				  "{lables: {a: b}, annotations: [q]}, spec: {nodeSelectors: {c: "
				  "d}, volumes: {e: f}, containers: [{env: {A: b}}]}}}}}\n");

	expect(m.pod, "container", "[\"x\"]");
	expect(m.pod, "metadata.lables", "{\"a\":\"b\"}");
	expect(m.pod, "metadata.annotations", "[\"q\"]");
	expect(m.pod, "metadata.name", "\"j-worker-0\"");
	expect(m.pod, "spec.nodeSelectors", "{\"c\":\"d\"}");
	expect(m.pod, "spec.volumes.e", "\"f\"");
	expect(m.pod, "spec.containers.0.env.A", "\"b\"");
	rendered_job_free(&m);
}

static void template__is_the_base_of_the_pod(void **state)
{
	struct rendered_job m = render_first_pod(
	    HEAD
	    "spec:\n"
	    "  tasks:\n"
	    "    worker:\n"
	    "      replicas: 1\n"
	    "      kernels: cuda-sm90\n"
	    "      resources: {limits: {memory: 2Gi}, requests: {cpu: 1}}\n"
	    "      template:\n"
	    "        metadata: {labels: {team: a, muster.dev/job: evil}, annotations: {n: x}}\n"
	    "        spec:\n"
	    "          restartPolicy: Always\n"
	    "          nodeSelector: {disk: ssd}\n"
	    "          securityContext: {runAsUser: 7}\n"
	    "          tolerations: [{key: mine, operator: Exists}]\n"
	    "          volumes: [{name: data, emptyDir: {}}]\n"
	    "          containers:\n"
	    "          - name: main\n"
	    "            image: my:1\n"
	    "            env: [{name: TF_CONFIG, value: own}, {name: A, value: b}]\n"
	    "            resources: {limits: {memory: 1Gi}}\n"
	    "            volumeMounts: [{name: data, mountPath: /tmp}]\n"
	    "          - {name: sidecar, image: s:1}\n");

	expect(m.pod, "metadata.labels.team", "\"a\"");
	expect(m.pod, "metadata.labels.muster~1", "nothing");
	assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(
				find(m.pod, "metadata.labels"), "muster.dev/job")),
			    "j");
	expect(m.pod, "metadata.annotations.n", "\"x\"");
	expect(m.pod, "spec.restartPolicy", "\"Never\"");
	expect(m.pod, "spec.securityContext.runAsUser", "7");
	expect(m.pod, "spec.securityContext.runAsNonRoot", "true");
	expect(m.pod, "spec.containers.0.name", "\"main\"");
	expect(m.pod, "spec.containers.0.image", "\"my:1\"");
	expect(m.pod, "spec.containers.1.name", "\"sidecar\"");
	assert_string_equal(env_of(m.pod, "TF_CONFIG"), "own");
	assert_string_equal(env_of(m.pod, "A"), "b");
	expect(m.pod, "spec.containers.0.resources.limits.memory", "\"1Gi\"");
	expect(m.pod, "spec.containers.0.resources.requests.cpu", "1");
	assert_string_equal(
	    cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(
		find(m.pod, "spec.containers.0.resources.limits"), "nvidia.com/gpu")),
	    "1");
	expect(m.pod, "spec.nodeSelector.disk", "\"ssd\"");
	assert_int_equal(cJSON_GetArraySize(find(m.pod, "spec.tolerations")), 2);
	expect(m.pod, "spec.containers.0.volumeMounts",
	       "[{\"name\":\"data\",\"mountPath\":\"/tmp\"}]");
	rendered_job_free(&m);
}

static void command__is_run_as_written(void **state)
{
	struct rendered_job m =
	    render_first_pod(HEAD "spec:\n"
				  "  program: {command: [python3, t.py, $(HOME)], args: [-x]}\n"
				  "  tasks: {ps: {replicas: 1, image: tf:1}}\n"
				  "  checkpoint: {volumeClaim: ckpt}\n");

	expect(m.pod, "spec.containers.0.command", "[\"python3\",\"t.py\",\"$(HOME)\",\"-x\"]");
	expect(m.pod, "spec.containers.0.readinessProbe.tcpSocket.port", "2222");
	expect(m.pod, "spec.volumes.0.persistentVolumeClaim.claimName", "\"ckpt\"");
	expect(m.pod, "spec.containers.0.volumeMounts.0.mountPath", "\"" JOB_VOLUME_PATH "\"");
	assert_string_equal(env_of(m.pod, "MUSTER_MODE"), "async");
	assert_null(env_of(m.pod, "MUSTER_BACKUP_WORKERS"));
	rendered_job_free(&m);
}

static void command__of_a_synchronous_job__gets_the_sync_settings(void **state)
{
	struct rendered_job m =
	    render_first_pod(HEAD "spec:\n"
				  "  program: {command: [x]}\n"
				  "  mode: sync\n"
				  "  sync: {replicasToAggregate: 3, backupWorkers: 1}\n"
				  "  tasks: {ps: {}}\n");

	assert_string_equal(env_of(m.pod, "MUSTER_MODE"), "sync");
	assert_string_equal(env_of(m.pod, "MUSTER_REPLICAS_TO_AGGREGATE"), "3");
	assert_string_equal(env_of(m.pod, "MUSTER_BACKUP_WORKERS"), "1");
	rendered_job_free(&m);
}

static void claim__that_is_mounted_at_tmp__is_the_only_volume_there(void **state)
{
	struct rendered_job m =
	    render_first_pod(HEAD "spec:\n"
				  "  tasks: {ps: {template: {spec: {volumes: [{name: checkpoints, "
				  "emptyDir: {}}]}}}}\n"
				  "  checkpoint: {volumeClaim: ckpt, path: /tmp}\n");

	expect(m.pod, "spec.volumes.1.persistentVolumeClaim.claimName", "\"ckpt\"");
	expect(m.pod, "spec.containers.0.volumeMounts",
	       "[{\"name\":\"muster-checkpoints\",\"mountPath\":\"/tmp\"}]");
	rendered_job_free(&m);
	m = render_first_pod(
	    HEAD "spec: {tasks: {ps: {}}, checkpoint: {volumeClaim: ckpt, path: /tmp/}}\n");
	expect(m.pod, "spec.containers.0.volumeMounts",
	       "[{\"name\":\"muster-checkpoints\",\"mountPath\":\"/tmp/\"}]");
	rendered_job_free(&m);
}

static void pod__that_uses_the_cpu__requests_no_gpu(void **state)
{
	struct rendered_job m =
	    render_first_pod(HEAD "spec: {tasks: {ps: {kernels: cpu, resources: {limits: "
				  "{nvidia.com/gpu: 1, memory: 1Gi}}}}}\n");

	expect(m.pod, "spec.containers.0.resources.limits", "{\"memory\":\"1Gi\"}");
	rendered_job_free(&m);
	m = render_first_pod(HEAD
			     "spec: {tasks: {ps: {kernels: cpu, template: {spec: {containers: ["
			     "{resources: {limits: {nvidia.com/gpu: 1, memory: 1Gi}}}]}}}}}\n");
	expect(m.pod, "spec.containers.0.resources.limits", "{\"memory\":\"1Gi\"}");
	rendered_job_free(&m);
}

/* An evaluator is not a member of the cluster and serves no port. */
static void evaluator__of_a_command__has_no_readiness_probe(void **state)
{
	struct rendered_job m = render_first_pod(HEAD "spec:\n"
						      "  program: {command: [python3, t.py]}\n"
						      "  tasks: {evaluator: {image: tf:1}}\n");

	expect(m.pod, "metadata.name", "\"j-evaluator-0\"");
	expect(m.pod, "spec.containers.0.readinessProbe", "nothing");
	rendered_job_free(&m);
}

static void service__is_headless_and_publishes_unready_addresses(void **state)
{
	struct rendered_job m = render_first_pod(HEAD "spec: {tasks: {ps: {replicas: 1}}}\n");
	cJSON *service = render_service(m.spec);

	expect(service, "spec.clusterIP", "\"None\"");
	expect(service, "spec.publishNotReadyAddresses", "true");
	expect(service, "spec.ports",
	       "[{\"name\":\"grpc\",\"port\":2222},"
	       "{\"name\":\"stream\",\"port\":2223},"
	       "{\"name\":\"http\",\"port\":8079}]");
	cJSON_Delete(service);
	rendered_job_free(&m);
}

static void templates__with_unexpected_types__never_crash(void **state)
{
	static const char *const templates[] = {
	    "{}",
	    "{spec: {}}",
	    "{spec: {containers: []}}",
	    "{spec: {containers: [{env: 3, ports: no, resources: [], volumeMounts: {}}]}}",
	    "{metadata: 7, spec: {volumes: 1, tolerations: x, nodeSelector: []}}",
	    "{spec: {securityContext: 1}}",
	    "{metadata: {labels: [a], annotations: 3}}",
	    "{spec: {containers: [{env: [1, null, {name: 3}], securityContext: no}]}}",
	};

	for (unsigned i = 0; i < MU_COUNT(templates); i++) {
		MU_AUTO_FREE char *text =
		    mu_xasprintf(HEAD "spec: {tasks: {ps: {template: %s}}}\n", templates[i]);
		struct rendered_job m = render_first_pod(text);
		expect(m.pod, "metadata.name", "\"j-ps-0\"");
		expect(m.pod, "spec.containers.0.image", "\"localhost/muster-task:dev\"");
		rendered_job_free(&m);
	}
}

#define GANG(gang)                                                                                 \
	"apiVersion: muster.dev/v1\nkind: DistributedTrainingJob\nmetadata: {name: j}\nspec:\n"    \
	"  tasks: {ps: {replicas: 2}, worker: {replicas: 3}}\n  run: {" gang "}\n"

static unsigned count_actions(const struct job_plan *plan, enum action_kind kind)
{
	unsigned n = 0;

	for (unsigned i = 0; i < plan->n_actions; i++)
		n += plan->actions[i].kind == kind;
	return n;
}

static void gang__of_volcano__gets_a_group_and_all_pods_at_once(void **state)
{
	struct rendered_job m =
	    render_first_pod(GANG("gang: volcano, queue: q, priorityClass: high"));
	cJSON *group = render_group(m.spec, 5);

	assert_int_equal(count_actions(m.plan, ACTION_PUT_GROUP), 1);
	assert_int_equal(m.plan->actions[0].kind, ACTION_PUT_GROUP);
	assert_int_equal(m.plan->actions[0].index, 5);
	assert_int_equal(count_actions(m.plan, ACTION_CREATE_POD), 5);
	expect(m.pod, "spec.schedulerName", "\"volcano\"");
	expect(m.pod, "spec.priorityClassName", "\"high\"");
	assert_string_equal(
	    cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(
		find(m.pod, "metadata.annotations"), "scheduling.k8s.io/group-name")),
	    "j");
	expect(group, "apiVersion", "\"scheduling.volcano.sh/v1beta1\"");
	expect(group, "spec", "{\"minMember\":5,\"queue\":\"q\",\"priorityClassName\":\"high\"}");
	expect(group, "metadata.ownerReferences.0.kind", "\"DistributedTrainingJob\"");
	cJSON_Delete(group);
	rendered_job_free(&m);
}

static void gang__of_kueue__is_labels_and_a_total_count(void **state)
{
	struct rendered_job m = render_first_pod(GANG("gang: kueue, queue: q"));
	const cJSON *labels = find(m.pod, "metadata.labels");

	assert_int_equal(count_actions(m.plan, ACTION_PUT_GROUP), 0);
	assert_int_equal(count_actions(m.plan, ACTION_CREATE_POD), 5);
	assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(
				labels, "kueue.x-k8s.io/queue-name")),
			    "q");
	assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(
				labels, "kueue.x-k8s.io/pod-group-name")),
			    "j");
	assert_string_equal(
	    cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(
		find(m.pod, "metadata.annotations"), "kueue.x-k8s.io/pod-group-total-count")),
	    "5");
	rendered_job_free(&m);
}

static void gang__without_a_queue_where_one_is_needed__is_rejected(void **state)
{
	struct job_spec *spec;
	struct mu_err err = {0};

	assert_fails(job_spec_parse(&spec, mu_span_of(GANG("gang: kueue")), "t", &err), &err,
		     MU_INVALID_ARGUMENT, "needs a queue");
	assert_fails(job_spec_parse(&spec, mu_span_of(GANG("queue: q")), "t", &err), &err,
		     MU_INVALID_ARGUMENT, "set run.gang");
}

static void secret__is_mounted_for_the_tasks_group__and_named_in_the_environment(void **state)
{
	struct rendered_job m =
	    render_first_pod(HEAD "spec: {tasks: {ps: {}, worker: {}}, security: {mtls: true}}\n");
	struct observed_job observed = {.service = true};
	MU_AUTO(job_plan_free)
	struct job_plan *first =
	    job_plan_new(m.spec, &(struct plan_options){.image = "i"}, &observed, 1);
	cJSON *secret = render_secret(m.spec, "j-tls-1");

	assert_int_equal(first->n_actions, 1); /* no pod before the Secret */
	assert_int_equal(first->actions[0].kind, ACTION_MAKE_SECRET);
	expect(m.pod, "spec.volumes.1",
	       "{\"name\":\"muster-tls\",\"secret\":{\"secretName\":\"j-tls-1\",\"defaultMode\":"
	       "288}}");
	expect(m.pod, "spec.containers.0.volumeMounts.1",
	       "{\"name\":\"muster-tls\",\"mountPath\":\"/var/run/muster/tls\",\"readOnly\":true}");
	expect(m.pod, "spec.securityContext.fsGroup", "65532");
	assert_string_equal(env_of(m.pod, "MUSTER_TLS"), "/var/run/muster/tls");
	expect(secret, "type", "\"kubernetes.io/tls\"");
	expect(secret, "metadata.ownerReferences.0.uid", "\"u1\"");
	cJSON_Delete(secret);
	rendered_job_free(&m);
}

static void network_policy__allows_the_job_its_clients_and_the_operator(void **state)
{
	struct rendered_job m =
	    render_first_pod("apiVersion: muster.dev/v1\nkind: DistributedTrainingJob\nmetadata: "
			     "{name: j}\nspec:\n  tasks: {worker: {}}\n  security: "
			     "{networkPolicy: true}\n");
	cJSON *policy = render_policy(m.spec, "ops", "a,b");

	assert_int_equal(count_actions(m.plan, ACTION_CREATE_POLICY), 1);
	expect(policy, "apiVersion", "\"networking.k8s.io/v1\"");
	expect(policy, "spec.policyTypes", "[\"Ingress\"]");
	expect(policy, "spec.podSelector", "{\"matchLabels\":{\"muster.dev/job\":\"j\"}}");
	expect(policy, "spec.ingress.0",
	       "{\"from\":[{\"podSelector\":{\"matchLabels\":{\"muster.dev/job\":\"j\"}}}]}");
	expect(policy, "spec.ingress.2",
	       "{\"from\":[{\"podSelector\":{\"matchLabels\":{\"muster.dev/role\":\"operator\"}},"
	       "\"namespaceSelector\":{\"matchLabels\":{\"kubernetes.io/metadata.name\":\"ops\"}}},"
	       "{\"namespaceSelector\":{\"matchLabels\":{\"kubernetes.io/metadata.name\":\"a\"}}},"
	       "{\"namespaceSelector\":{\"matchLabels\":{\"kubernetes.io/metadata.name\":\"b\"}}}],"
	       "\"ports\":[{\"protocol\":\"TCP\",\"port\":8079}]}");
	assert_int_equal(cJSON_GetArraySize(find(policy, "spec.ingress")), 3);
	cJSON_Delete(policy);
	rendered_job_free(&m);
}

static void tensorboard__serves_the_event_files_of_the_volume(void **state)
{
	struct job_spec *spec;
	struct observed_pod ps = {.task = "ps", .uid = "u", .phase = POD_RUNNING, .ready = true};
	struct observed_job observed = {.service = true, .pods = &ps, .n_pods = 1};
	struct plan_options options = {.image = "task:1", .image_tensorboard = "tf:1"};
	const struct plan_pod *tensorboard = NULL;
	struct mu_err err = {0};

	assert_ok(
	    job_spec_parse(&spec,
			   mu_span_of("apiVersion: muster.dev/v1\nkind: DistributedTrainingJob\n"
				      "metadata: {name: j}\nspec:\n  tasks: {ps: {}, worker: {}}\n"
				      "  checkpoint: {volumeClaim: c, path: /ckpt}\n"
				      "  run: {gang: kueue, queue: q}\n"
				      "  tensorboard: {enabled: true}\n"),
			   "t", &err),
	    &err);
	struct job_plan *plan = job_plan_new(spec, &options, &observed, 1e9);
	for (unsigned i = 0; i < plan->n_actions; i++)
		if (plan->actions[i].pod && plan->actions[i].pod->role == ROLE_TENSORBOARD)
			tensorboard = plan->actions[i].pod;
	assert_non_null(tensorboard);
	cJSON *pod = render_pod(spec, tensorboard),
	      *service = render_tensorboard_service(spec, tensorboard);
	expect(pod, "spec.containers.0.command",
	       "[\"tensorboard\",\"--logdir=/ckpt\",\"--bind_all\",\"--port=6006\"]");
	expect(pod, "spec.containers.0.image", "\"tf:1\"");
	expect(pod, "metadata.annotations",
	       "nothing"); /* TensorBoard is not a member of the gang */
	expect(pod, "spec.shareProcessNamespace", "true");
	expect(pod, "spec.containers.0.env", "[]");
	expect(pod, "spec.volumes.0.persistentVolumeClaim.claimName", "\"c\"");
	expect(service, "metadata.name", "\"j-tensorboard\"");
	expect(service, "spec.ports", "[{\"name\":\"http\",\"port\":80,\"targetPort\":6006}]");
	cJSON_Delete(pod);
	cJSON_Delete(service);
	job_plan_free(plan);
	job_spec_free(spec);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(job__without_a_template__has_restricted_pods),
	    cmocka_unit_test(template__is_the_base_of_the_pod),
	    cmocka_unit_test(template__with_mistakes__is_rendered_unchanged),
	    cmocka_unit_test(command__is_run_as_written),
	    cmocka_unit_test(command__of_a_synchronous_job__gets_the_sync_settings),
	    cmocka_unit_test(claim__that_is_mounted_at_tmp__is_the_only_volume_there),
	    cmocka_unit_test(pod__that_uses_the_cpu__requests_no_gpu),
	    cmocka_unit_test(evaluator__of_a_command__has_no_readiness_probe),
	    cmocka_unit_test(service__is_headless_and_publishes_unready_addresses),
	    cmocka_unit_test(templates__with_unexpected_types__never_crash),
	    cmocka_unit_test(gang__of_volcano__gets_a_group_and_all_pods_at_once),
	    cmocka_unit_test(gang__of_kueue__is_labels_and_a_total_count),
	    cmocka_unit_test(gang__without_a_queue_where_one_is_needed__is_rejected),
	    cmocka_unit_test(secret__is_mounted_for_the_tasks_group__and_named_in_the_environment),
	    cmocka_unit_test(network_policy__allows_the_job_its_clients_and_the_operator),
	    cmocka_unit_test(tensorboard__serves_the_event_files_of_the_volume),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
