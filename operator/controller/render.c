/* SPDX-License-Identifier: Apache-2.0 */
/* Converts a planned pod to the pod object.
 *
 * The user's template is the base. Name, labels, owner, command and addresses are set over it;
 * everything else is filled in only where the template has no value. The filled-in values satisfy
 * the "restricted" Pod Security Standard: no root, no privileges, no capabilities, the runtime's
 * seccomp profile, no service account token, a read-only root with an empty /tmp. */
#include "operator/controller/render.h"

#include "lib/io/json.h"
#include "operator/api/kinds.h"
#include "operator/api/object_json.h"

enum { TASK_USER = 65532 };
#define NAMESPACE_NAME "kubernetes.io/metadata.name"

static void append(cJSON *list, cJSON *item)
{
	cJSON_AddItemToArray(list, item);
}

/* Takes base, whose members stay unless the job sets them. */
static cJSON *start_object(const char *version, const char *kind, const char *name,
			   const struct job_spec *spec, cJSON *base)
{
	cJSON *object = base ? base : cJSON_CreateObject();

	mu_json_set(object,
		    mu_json_pack("{'apiVersion': %s, 'kind': %s, 'metadata': {"
				 " 'name': %s, 'namespace': %s, 'labels': {"
				 "  '" LABEL_JOB "': %s, 'app.kubernetes.io/name': 'muster',"
				 "  'app.kubernetes.io/instance': %s,"
				 "  'app.kubernetes.io/managed-by': 'muster-operator'}}}",
				 version, kind, name, spec->namespace, spec->name, spec->name));
	append(
	    mu_json_array_in(mu_json_object_in(object, "metadata"), "ownerReferences"),
	    mu_json_pack("{'apiVersion': '" JOB_API_VERSION "', 'kind': '" JOB_KIND "',"
			 " 'name': %s, 'uid': %s, 'controller': true, 'blockOwnerDeletion': false}",
			 spec->name, spec->uid));
	return object;
}

/* Kubernetes expands $(NAME) and $$ in these values; here such text is literal. */
static cJSON *escape_literal(const char *value)
{
	MU_AUTO_BUF b = {0};

	for (const char *s = value; *s; s++) {
		mu_buf_putc(&b, *s);
		if (*s == '$')
			mu_buf_putc(&b, '$');
	}
	return cJSON_CreateString(b.data ? b.data : "");
}

static void set_command(cJSON *container, const struct plan_pod *pod)
{
	cJSON *command = cJSON_CreateArray(), *env = mu_json_array_in(container, "env");

	for (const char *const *a = pod->argv; a && *a; a++)
		cJSON_AddItemToArray(command, pod->role == ROLE_COMMAND ? cJSON_CreateString(*a)
									: escape_literal(*a));
	if (cJSON_GetArraySize(command)) {
		cJSON_DeleteItemFromObjectCaseSensitive(container, "command");
		cJSON_DeleteItemFromObjectCaseSensitive(container, "args");
		cJSON_AddItemToObject(container, "command", command);
	} else {
		cJSON_Delete(command);
	}
	for (unsigned i = 0; i < pod->n_env; i++) {
		cJSON *e;

		if (item_with(env, "name", pod->env[i].name))
			continue;
		e = mu_json_pack("{'name': %s}", pod->env[i].name);
		cJSON_AddItemToObject(e, "value", escape_literal(pod->env[i].value));
		append(env, e);
	}
}

/* The readiness probe is frequent, so that clients learn soon that a server is up. Its timeout is
 * long: a task that is slow on a machine with ten times its work still answers. A task that hangs
 * becomes unready after 5 to 7 s and is reported within 10. Its next answer clears the report.
 * There is no liveness probe, because a slow task must not be restarted. */
#define PROBE_TIMING "'periodSeconds': 2, 'timeoutSeconds': 5, 'failureThreshold': 1"

/* A server answers /readyz. For a user's program only the port for its peers is known. A program
 * outside the cluster (an evaluator) has no port. */
static cJSON *probe_of(const struct plan_pod *pod)
{
	if (pod->role == ROLE_COMMAND)
		return mu_json_pack("{" PROBE_TIMING ", 'tcpSocket': {'port': %d}}", pod->port);
	return mu_json_pack("{" PROBE_TIMING ", 'httpGet': {'path': %s, 'port': %d}}",
			    pod->role == ROLE_TENSORBOARD ? "/" : "/readyz", pod->http_port);
}

static void set_resources(cJSON *container, const struct plan_pod *pod)
{
	cJSON *resources = mu_json_object_in(container, "resources");
	const struct mu_doc_node *task_resources = pod->spec ? pod->spec->resources : NULL;
	static const char *const sections[] = {"requests", "limits"};

	for (unsigned i = 0; i < MU_COUNT(sections); i++) {
		mu_doc_each(mu_doc_key(task_resources, sections[i]), n)
		{
			cJSON *section = mu_json_object_in(resources, sections[i]);

			if (!at(section, n->key))
				cJSON_AddItemToObject(section, n->key, mu_json_from_doc(n));
		}
		if (!pod->kernels.gpu) /* it must not hold a GPU */
			cJSON_DeleteItemFromObjectCaseSensitive(
			    cJSON_GetObjectItemCaseSensitive(resources, sections[i]), GPU_RESOURCE);
	}
	if (pod->kernels.gpu)
		mu_json_fill(mu_json_object_in(resources, "limits"),
			     mu_json_pack("{'" GPU_RESOURCE "': '1'}"));
}

/* A path with or without '/' at its end. */
static bool is_same_path(const char *a, const char *b)
{
	size_t n = strlen(b) - (*b && b[strlen(b) - 1] == '/');

	return strncmp(a, b, n) == 0 && strspn(a + n, "/") == strlen(a + n);
}

static void add_volume(cJSON *spec, cJSON *container, const char *name, const char *path,
		       const char *claim)
{
	cJSON *volumes = mu_json_array_in(spec, "volumes");
	cJSON *mounts = mu_json_array_in(container, "volumeMounts");

	for (const cJSON *mount = mounts->child; mount; mount = mount->next)
		if (is_same_path(text_or_empty(mount, "mountPath"), path))
			return; /* the template has a mount at this path */
	if (!item_with(volumes, "name", name))
		append(
		    volumes,
		    claim ? mu_json_pack("{'name': %s, 'persistentVolumeClaim': {'claimName': %s}}",
					 name, claim)
			  : mu_json_pack("{'name': %s, 'emptyDir': {}}", name));
	append(mounts, mu_json_pack("{'name': %s, 'mountPath': %s}", name, path));
}

/* Readable for the group of fsGroup only, which is the task's. */
static void add_secret(cJSON *spec, cJSON *container, const char *secret)
{
	enum { FOR_OWNER_AND_GROUP = 0440 };

	append(
	    mu_json_array_in(spec, "volumes"),
	    mu_json_pack("{'name': 'muster-tls', 'secret': {'secretName': %s, 'defaultMode': %d}}",
			 secret, FOR_OWNER_AND_GROUP));
	append(mu_json_array_in(container, "volumeMounts"),
	       mu_json_pack("{'name': 'muster-tls', 'mountPath': '" JOB_TLS_PATH
			    "', 'readOnly': true}"));
}

static void set_security(cJSON *spec, cJSON *container)
{
	mu_json_fill(
	    mu_json_object_in(spec, "securityContext"),
	    mu_json_pack("{'runAsNonRoot': true, 'runAsUser': %d, 'runAsGroup': %d, 'fsGroup': %d,"
			 " 'seccompProfile': {'type': 'RuntimeDefault'}}",
			 TASK_USER, TASK_USER, TASK_USER));
	mu_json_fill(
	    mu_json_object_in(container, "securityContext"),
	    mu_json_pack("{'allowPrivilegeEscalation': false, 'readOnlyRootFilesystem': true,"
			 " 'capabilities': {'drop': ['ALL']}}"));
}

static void set_placement(cJSON *spec, const struct plan_pod *pod)
{
	const struct kernel_choice *k = &pod->kernels;

	for (unsigned i = 0; i < k->n_selector; i++)
		mu_json_fill(mu_json_object_in(spec, "nodeSelector"),
			     mu_json_pack("{%s: %s}", k->selector[i].key, k->selector[i].value));
	if (k->gpu && !item_with(mu_json_array_in(spec, "tolerations"), "key", GPU_RESOURCE))
		append(mu_json_array_in(spec, "tolerations"),
		       mu_json_pack("{'key': '" GPU_RESOURCE "', 'operator': 'Exists',"
				    " 'effect': 'NoSchedule'}"));
}

/* Names a port of the container, or of a service. */
static void add_port(cJSON *ports, const char *name, int port, const char *key)
{
	if (!item_with(ports, "name", name))
		append(ports, mu_json_pack("{'name': %s, %s: %d}", name, key, port));
}

/* The template's first container, or a new one. */
static cJSON *main_container(cJSON *spec)
{
	cJSON *containers = mu_json_array_in(spec, "containers");
	cJSON *first = cJSON_GetArrayItem(containers, 0);

	if (!cJSON_IsObject(first)) {
		first = cJSON_CreateObject();
		append(containers, first);
	}
	mu_json_fill(first, mu_json_pack("{'name': 'muster'}"));
	return first;
}

/* Adds the pod to its gang. TensorBoard is not a member:
 *
 *	volcano             PodGroup + annotation scheduling.k8s.io/group-name
 *	scheduler-plugins   PodGroup + label scheduling.x-k8s.io/pod-group
 *	kueue               no object: labels and a count on the pods */
static void join_gang(cJSON *pod, const struct job_spec *spec, int members)
{
	cJSON *metadata = mu_json_object_in(pod, "metadata"), *s = mu_json_object_in(pod, "spec");
	const char *class = spec->priority_class;

	if (!members)
		return;
	switch (spec->gang) {
	case GANG_NONE:
		return;
	case GANG_VOLCANO:
		mu_json_set(metadata,
			    mu_json_pack("{'annotations': {'scheduling.k8s.io/group-name': %s}}",
					 spec->name));
		break;
	case GANG_SCHEDULER_PLUGINS:
		mu_json_set(
		    metadata,
		    mu_json_pack("{'labels': {'scheduling.x-k8s.io/pod-group': %s}}", spec->name));
		break;
	case GANG_KUEUE:
		mu_json_set(
		    metadata,
		    mu_json_pack("{'labels': {'kueue.x-k8s.io/queue-name': %s,"
				 " 'kueue.x-k8s.io/pod-group-name': %s},"
				 " 'annotations': {'kueue.x-k8s.io/pod-group-total-count': '%d'}}",
				 spec->queue, spec->name, members));
		if (class)
			mu_json_set(
			    metadata,
			    mu_json_pack("{'labels': {'kueue.x-k8s.io/priority-class': %s}}",
					 class));
		return;
	}
	mu_json_fill(s, mu_json_pack("{'schedulerName': %s}", gangs[spec->gang].scheduler));
	if (class)
		mu_json_fill(s, mu_json_pack("{'priorityClassName': %s}", class));
}

cJSON *render_pod(const struct job_spec *spec, const struct plan_pod *pod)
{
	const struct mu_doc_node *template = pod->spec ? pod->spec->template : NULL;
	cJSON *object = start_object("v1", "Pod", pod->name, spec,
				     template ? mu_json_from_doc(template) : NULL);
	cJSON *labels = mu_json_object_in(mu_json_object_in(object, "metadata"), "labels");
	cJSON *s = mu_json_object_in(object, "spec"), *main, *ports;

	mu_json_set(labels, mu_json_pack("{'" LABEL_TASK "': %s, '" LABEL_INDEX "': '%d'}",
					 pod->task, pod->index));
	if (pod->epoch)
		mu_json_set(labels, mu_json_pack("{'" LABEL_EPOCH "': '%d'}", pod->epoch));
	if (pod->is_departure_pod)
		mu_json_set_text(labels, LABEL_DEPARTURE, "true");
	if (pod->kernels.gpu)
		mu_json_set_text(labels, LABEL_GPU, "true");
	if (pod->kernels.variant[0] && !pod->is_departure_pod)
		mu_json_set_text(labels, LABEL_KERNELS, pod->kernels.variant);
	mu_json_set(s, mu_json_pack("{'hostname': %s, 'subdomain': %s, 'restartPolicy': 'Never'}",
				    pod->name, spec->name));
	mu_json_fill(s, mu_json_pack("{'automountServiceAccountToken': false,"
				     " 'enableServiceLinks': false,"
				     " 'terminationGracePeriodSeconds': 30}"));
	/* process 1 would not receive SIGTERM unless the program handles it */
	if (pod->role == ROLE_COMMAND || pod->role == ROLE_TENSORBOARD)
		mu_json_fill(s, mu_json_pack("{'shareProcessNamespace': true}"));
	main = main_container(s);
	if (pod->image)
		mu_json_set_text(main, "image", pod->image);
	set_command(main, pod);
	/* so that the status can say why a task has failed */
	mu_json_fill(main, mu_json_pack("{'terminationMessagePolicy': 'FallbackToLogsOnError'}"));
	ports = mu_json_array_in(main, "ports");
	if (pod->role != ROLE_TENSORBOARD) {
		add_port(ports, "grpc", pod->port, "containerPort");
		add_port(ports, "stream", JOB_STREAM_PORT, "containerPort");
	}
	if (pod->role != ROLE_COMMAND)
		add_port(ports, "http", pod->http_port, "containerPort");
	if (!at(main, "readinessProbe") && (pod->role != ROLE_COMMAND || pod->is_member))
		cJSON_AddItemToObject(main, "readinessProbe", probe_of(pod));
	set_resources(main, pod);
	set_placement(s, pod);
	/* the claim comes first: it may be mounted at /tmp */
	if (pod->volume_claim && pod->mount_path)
		add_volume(s, main, "muster-checkpoints", pod->mount_path, pod->volume_claim);
	add_volume(s, main, "muster-tmp", "/tmp", NULL);
	if (pod->secret)
		add_secret(s, main, pod->secret);
	set_security(s, main);
	join_gang(object, spec, pod->members);
	return object;
}

cJSON *render_secret(const struct job_spec *spec, const char *name)
{
	cJSON *object = start_object("v1", "Secret", name, spec, NULL);

	mu_json_set_text(object, "type", "kubernetes.io/tls");
	return object;
}

cJSON *render_service(const struct job_spec *spec)
{
	cJSON *object = start_object("v1", "Service", spec->name, spec, NULL), *ports;

	mu_json_set(object,
		    mu_json_pack("{'spec': {'clusterIP': 'None', 'publishNotReadyAddresses': true,"
				 " 'selector': {'" LABEL_JOB "': %s}}}",
				 spec->name));
	ports = mu_json_array_in(mu_json_object_in(object, "spec"), "ports");
	add_port(ports, "grpc", JOB_DEFAULT_PORT, "port");
	add_port(ports, "stream", JOB_STREAM_PORT, "port");
	add_port(ports, "http", JOB_DEFAULT_HTTP_PORT, "port");
	return object;
}

cJSON *render_tensorboard_service(const struct job_spec *spec, const struct plan_pod *pod)
{
	MU_AUTO_FREE char *name = mu_xasprintf("%s-" JOB_TENSORBOARD, spec->name);
	cJSON *object = start_object("v1", "Service", name, spec, NULL);

	mu_json_set(object, mu_json_pack(
				"{'spec': {'selector': {'" LABEL_JOB "': %s, '" LABEL_TASK "': %s},"
				" 'ports': [{'name': 'http', 'port': 80, 'targetPort': %d}]}}",
				spec->name, pod->task, pod->http_port));
	return object;
}

cJSON *render_policy(const struct job_spec *spec, const char *operator_ns, const char *status_from)
{
	cJSON *object =
	    start_object("networking.k8s.io/v1", "NetworkPolicy", spec->name, spec, NULL);
	cJSON *status = mu_json_pack(
	    "{'from': [{'podSelector': {'matchLabels': {'muster.dev/role': 'operator'}},"
	    "           'namespaceSelector': {'matchLabels': {'" NAMESPACE_NAME "': %s}}}],"
	    " 'ports': [{'protocol': 'TCP', 'port': %d}]}",
	    operator_ns, JOB_DEFAULT_HTTP_PORT);

	while (status_from && *status_from) {
		size_t n = strcspn(status_from, ", ");
		MU_AUTO_FREE char *ns = mu_xasprintf("%.*s", (int)n, status_from);

		if (n)
			append(mu_json_array_in(status, "from"),
			       mu_json_pack("{'namespaceSelector': {'matchLabels': {"
					    "'" NAMESPACE_NAME "': %s}}}",
					    ns));
		status_from += n + (status_from[n] != 0);
	}
	mu_json_set(
	    object,
	    mu_json_pack("{'spec': {'podSelector': {'matchLabels': {'" LABEL_JOB "': %s}},"
			 " 'policyTypes': ['Ingress'], 'ingress': ["
			 "  {'from': [{'podSelector': {'matchLabels': {'" LABEL_JOB "': %s}}}]},"
			 "  {'from': [{'podSelector': {'matchLabels': {'muster.dev/client': %s}}}],"
			 "   'ports': [{'protocol': 'TCP', 'port': %d}]}]}}",
			 spec->name, spec->name, spec->name, JOB_DEFAULT_PORT));
	append(mu_json_array_in(mu_json_object_in(object, "spec"), "ingress"), status);
	return object;
}

cJSON *render_group(const struct job_spec *spec, int members)
{
	cJSON *object = start_object(kinds[gangs[spec->gang].group].group + strlen("/apis/"),
				     "PodGroup", spec->name, spec, NULL);
	cJSON *s = mu_json_object_in(object, "spec");

	mu_json_set(s, mu_json_pack("{'minMember': %d}", members));
	if (spec->gang == GANG_VOLCANO && spec->queue)
		mu_json_set_text(s, "queue", spec->queue);
	if (spec->gang == GANG_VOLCANO && spec->priority_class)
		mu_json_set_text(s, "priorityClassName", spec->priority_class);
	return object;
}
