/* SPDX-License-Identifier: Apache-2.0 */
/* From a planned pod to the pod object.
 *
 * The user's template is the base; what the job needs to work (name, labels, owner, command,
 * addresses) is set over it, and everything else is only filled in where the template is silent.
 * What is filled in satisfies the "restricted" Pod Security Standard: no root, no privileges, no
 * capabilities, the runtime's seccomp profile, no service account token, a read-only root with an
 * empty /tmp.
 */
#include "operator/controller/render.h"

#include <stdio.h>

#include "lib/io/json.h"
#include "operator/api/labels.h"
#include "operator/api/object_json.h"

enum { TASK_USER = 65532 };

static cJSON *child(cJSON *object, const char *key, cJSON *(*add)(cJSON *, const char *))
{
	cJSON *c = cJSON_GetObjectItemCaseSensitive(object, key);

	if (c && !cJSON_IsNull(c))
		return c;
	cJSON_DeleteItemFromObjectCaseSensitive(object, key);
	return add(object, key);
}

cJSON *object_in(cJSON *object, const char *key)
{
	return child(object, key, cJSON_AddObjectToObject);
}

cJSON *array_in(cJSON *object, const char *key)
{
	return child(object, key, cJSON_AddArrayToObject);
}

cJSON *append_object(cJSON *array)
{
	cJSON *object = cJSON_CreateObject();

	cJSON_AddItemToArray(array, object);
	return object;
}

void set_text(cJSON *object, const char *key, const char *value)
{
	cJSON_DeleteItemFromObjectCaseSensitive(object, key);
	cJSON_AddStringToObject(object, key, value);
}

/* Adds the value, which it takes, unless the template has one. */
static void fill(cJSON *object, const char *key, cJSON *value)
{
	if (at(object, key) || !cJSON_AddItemToObject(object, key, value))
		cJSON_Delete(value);
}

/* True when the list has an item whose `key` is `value`. */
static bool list_has(const cJSON *list, const char *key, const char *value)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, list)
	{
		const char *s = cJSON_GetStringValue(at(item, key));
		if (s && strcmp(s, value) == 0)
			return true;
	}
	return false;
}

static void set_owner(cJSON *metadata, const struct job_spec *spec)
{
	cJSON *ref = append_object(array_in(metadata, "ownerReferences"));

	set_text(ref, "apiVersion", JOB_API_VERSION);
	set_text(ref, "kind", JOB_KIND);
	set_text(ref, "name", spec->name);
	set_text(ref, "uid", spec->uid);
	fill(ref, "controller", cJSON_CreateTrue());
	fill(ref, "blockOwnerDeletion", cJSON_CreateFalse());
}

static void set_labels(cJSON *labels, const struct job_spec *spec)
{
	set_text(labels, LABEL_JOB, spec->name);
	set_text(labels, "app.kubernetes.io/name", "muster");
	set_text(labels, "app.kubernetes.io/instance", spec->name);
	set_text(labels, "app.kubernetes.io/managed-by", "muster-operator");
}

static void add_port(cJSON *ports, const char *name, int port, const char *number_key)
{
	cJSON *p = append_object(ports);

	cJSON_AddStringToObject(p, "name", name);
	cJSON_AddNumberToObject(p, number_key, port);
}

/* Kubernetes expands $(NAME) in these; what looks like it is meant literally here. */
static cJSON *literal(const char *value)
{
	MU_AUTO_BUF b = {0};

	for (const char *s = value; *s; s++) {
		mu_buf_putc(&b, *s);
		if (s[0] == '$' && s[1] == '(')
			mu_buf_putc(&b, '$');
	}
	return cJSON_CreateString(b.data ? b.data : "");
}

static void set_command(cJSON *container, const struct plan_pod *pod)
{
	cJSON *command = cJSON_CreateArray(), *env = array_in(container, "env");

	for (const char *const *a = pod->argv; a && *a; a++)
		cJSON_AddItemToArray(command, pod->role == ROLE_COMMAND ? cJSON_CreateString(*a)
									: literal(*a));
	if (cJSON_GetArraySize(command)) {
		cJSON_DeleteItemFromObjectCaseSensitive(container, "command");
		cJSON_DeleteItemFromObjectCaseSensitive(container, "args");
		cJSON_AddItemToObject(container, "command", command);
	} else {
		cJSON_Delete(command);
	}
	for (unsigned i = 0; i < pod->n_env; i++) {
		cJSON *e;
		if (list_has(env, "name", pod->env[i].name))
			continue;
		e = append_object(env);
		cJSON_AddStringToObject(e, "name", pod->env[i].name);
		cJSON_AddItemToObject(e, "value", literal(pod->env[i].value));
	}
}

/* Asked often, so that who waits for a server hears of it soon, with time to answer: a task that is
 * slow on a machine with ten times its work to do still answers, one that hangs is no longer ready
 * after 5 to 7 s, and said to hang within 10.  That is taken back by its next answer, and nothing
 * is restarted for being slow: there is no liveness probe. */
enum { PROBE_PERIOD = 2, PROBE_TIMEOUT = 5, PROBE_FAILURES = 1 };

/* A server answers /readyz; of a user's own program we only know the port that peers will call. */
static void set_probe(cJSON *container, const struct plan_pod *pod)
{
	cJSON *probe, *how;

	if (at(container, "readinessProbe"))
		return;
	probe = cJSON_AddObjectToObject(container, "readinessProbe");
	if (pod->role == ROLE_COMMAND) {
		how = cJSON_AddObjectToObject(probe, "tcpSocket");
		cJSON_AddNumberToObject(how, "port", pod->port);
	} else {
		how = cJSON_AddObjectToObject(probe, "httpGet");
		cJSON_AddStringToObject(how, "path",
					pod->role == ROLE_TENSORBOARD ? "/" : "/readyz");
		cJSON_AddNumberToObject(how, "port", pod->http_port);
	}
	cJSON_AddNumberToObject(probe, "periodSeconds", PROBE_PERIOD);
	cJSON_AddNumberToObject(probe, "timeoutSeconds", PROBE_TIMEOUT);
	cJSON_AddNumberToObject(probe, "failureThreshold", PROBE_FAILURES);
}

static void set_resources(cJSON *container, const struct plan_pod *pod)
{
	cJSON *resources = object_in(container, "resources");
	const struct mu_doc_node *given = pod->spec ? pod->spec->resources : NULL;
	static const char *const halves[] = {"requests", "limits"};

	for (unsigned i = 0; i < MU_COUNT(halves); i++) {
		mu_doc_each(mu_doc_key(given, halves[i]), n)
		{
			cJSON *half = object_in(resources, halves[i]);

			if (!at(half, n->key))
				cJSON_AddItemToObject(half, n->key, mu_json_from_doc(n));
		}
	}
	if (pod->kernels.gpu)
		fill(object_in(resources, "limits"), RESOLVER_GPU, cJSON_CreateString("1"));
}

static void add_volume(cJSON *spec, cJSON *container, const char *name, const char *path,
		       const char *claim)
{
	cJSON *volumes = array_in(spec, "volumes");
	cJSON *mounts = array_in(container, "volumeMounts");
	cJSON *v, *source;

	if (list_has(mounts, "mountPath", path))
		return; /* the template brings its own */
	if (!list_has(volumes, "name", name)) {
		v = append_object(volumes);
		cJSON_AddStringToObject(v, "name", name);
		source = cJSON_AddObjectToObject(v, claim ? "persistentVolumeClaim" : "emptyDir");
		if (claim)
			cJSON_AddStringToObject(source, "claimName", claim);
	}
	v = append_object(mounts);
	cJSON_AddStringToObject(v, "name", name);
	cJSON_AddStringToObject(v, "mountPath", path);
}

/* For the group that fsGroup names, which is the task's, and nobody else. */
static void add_secret(cJSON *spec, cJSON *container, const char *secret)
{
	enum { FOR_OWNER_AND_GROUP = 0440 };
	cJSON *v = append_object(array_in(spec, "volumes")), *source;
	cJSON *mount = append_object(array_in(container, "volumeMounts"));

	cJSON_AddStringToObject(v, "name", "muster-tls");
	source = cJSON_AddObjectToObject(v, "secret");
	cJSON_AddStringToObject(source, "secretName", secret);
	cJSON_AddNumberToObject(source, "defaultMode", FOR_OWNER_AND_GROUP);
	cJSON_AddStringToObject(mount, "name", "muster-tls");
	cJSON_AddStringToObject(mount, "mountPath", JOB_TLS_PATH);
	cJSON_AddBoolToObject(mount, "readOnly", true);
}

static void set_security(cJSON *spec, cJSON *container)
{
	cJSON *pod = object_in(spec, "securityContext");
	cJSON *own = object_in(container, "securityContext"), *caps;

	fill(pod, "runAsNonRoot", cJSON_CreateTrue());
	fill(pod, "runAsUser", cJSON_CreateNumber(TASK_USER));
	fill(pod, "runAsGroup", cJSON_CreateNumber(TASK_USER));
	fill(pod, "fsGroup", cJSON_CreateNumber(TASK_USER));
	if (!at(pod, "seccompProfile"))
		set_text(cJSON_AddObjectToObject(pod, "seccompProfile"), "type", "RuntimeDefault");
	fill(own, "allowPrivilegeEscalation", cJSON_CreateFalse());
	fill(own, "readOnlyRootFilesystem", cJSON_CreateTrue());
	if (!at(own, "capabilities")) {
		caps = cJSON_AddArrayToObject(cJSON_AddObjectToObject(own, "capabilities"), "drop");
		cJSON_AddItemToArray(caps, cJSON_CreateString("ALL"));
	}
}

static void set_placement(cJSON *spec, const struct plan_pod *pod)
{
	const struct kernel_choice *k = &pod->kernels;
	cJSON *t;

	for (unsigned i = 0; i < k->n_selector; i++)
		fill(object_in(spec, "nodeSelector"), k->selector[i].key,
		     cJSON_CreateString(k->selector[i].value));
	if (!k->gpu || list_has(array_in(spec, "tolerations"), "key", RESOLVER_GPU))
		return;
	t = append_object(array_in(spec, "tolerations"));
	cJSON_AddStringToObject(t, "key", RESOLVER_GPU);
	cJSON_AddStringToObject(t, "operator", "Exists");
	cJSON_AddStringToObject(t, "effect", "NoSchedule");
}

/* The template's first container, or a new one. */
static cJSON *main_container(cJSON *spec)
{
	cJSON *containers = array_in(spec, "containers");
	cJSON *first = cJSON_GetArrayItem(containers, 0);

	if (!cJSON_IsObject(first))
		first = append_object(containers);
	fill(first, "name", cJSON_CreateString("muster"));
	return first;
}

/* Takes base, whose members stay unless the job sets them. */
static cJSON *start_object(const char *kind, const char *name, const struct job_spec *spec,
			   cJSON *base)
{
	cJSON *object = base ? base : cJSON_CreateObject();
	cJSON *metadata = object_in(object, "metadata");

	set_text(object, "apiVersion", "v1");
	set_text(object, "kind", kind);
	set_text(metadata, "name", name);
	set_text(metadata, "namespace", spec->namespace);
	set_labels(object_in(metadata, "labels"), spec);
	set_owner(metadata, spec);
	return object;
}

cJSON *render_pod(const struct job_spec *spec, const struct plan_pod *pod)
{
	const struct mu_doc_node *template = pod->spec ? pod->spec->template : NULL;
	cJSON *object =
	    start_object("Pod", pod->name, spec, template ? mu_json_from_doc(template) : NULL);
	cJSON *labels = object_in(object_in(object, "metadata"), "labels");
	cJSON *s = object_in(object, "spec"), *main, *ports;
	char index[16], epoch[16];

	snprintf(index, sizeof(index), "%d", pod->index);
	set_text(labels, LABEL_TASK, pod->task);
	set_text(labels, LABEL_INDEX, index);
	snprintf(epoch, sizeof(epoch), "%d", pod->epoch);
	if (pod->epoch)
		set_text(labels, LABEL_EPOCH, epoch);
	if (pod->is_departure_pod)
		set_text(labels, LABEL_LEAVES, "true");
	if (pod->kernels.gpu)
		set_text(labels, LABEL_GPU, "true");
	if (pod->kernels.variant[0] && !pod->is_departure_pod)
		set_text(labels, LABEL_KERNELS, pod->kernels.variant);
	set_text(s, "hostname", pod->name);
	set_text(s, "subdomain", spec->name);
	set_text(s, "restartPolicy", "Never");
	fill(s, "automountServiceAccountToken", cJSON_CreateFalse());
	fill(s, "enableServiceLinks", cJSON_CreateFalse());
	fill(s, "terminationGracePeriodSeconds", cJSON_CreateNumber(30));
	/* as process 1 a program that does not ask for SIGTERM would not get it */
	if (pod->role == ROLE_COMMAND || pod->role == ROLE_TENSORBOARD)
		fill(s, "shareProcessNamespace", cJSON_CreateTrue());
	main = main_container(s);
	if (pod->image)
		set_text(main, "image", pod->image);
	set_command(main, pod);
	/* so that the status can say why a task has failed */
	fill(main, "terminationMessagePolicy", cJSON_CreateString("FallbackToLogsOnError"));
	ports = array_in(main, "ports");
	if (pod->role != ROLE_TENSORBOARD && !list_has(ports, "name", "grpc"))
		add_port(ports, "grpc", pod->port, "containerPort");
	if (pod->role != ROLE_TENSORBOARD && !list_has(ports, "name", "stream"))
		add_port(ports, "stream", JOB_STREAM_PORT, "containerPort");
	if (pod->role != ROLE_COMMAND && !list_has(ports, "name", "http"))
		add_port(ports, "http", pod->http_port, "containerPort");
	set_probe(main, pod);
	set_resources(main, pod);
	set_placement(s, pod);
	add_volume(s, main, "tmp", "/tmp", NULL);
	if (pod->volume_claim && pod->mount_path)
		add_volume(s, main, "checkpoints", pod->mount_path, pod->volume_claim);
	if (pod->secret)
		add_secret(s, main, pod->secret);
	set_security(s, main);
	render_member(object, spec, pod->members);
	return object;
}

cJSON *render_secret(const struct job_spec *spec, const char *name)
{
	MU_AUTO_FREE char *some = mu_xasprintf("%s-tls", spec->name);
	cJSON *object = start_object("Secret", name ? name : some, spec, NULL);

	set_text(object, "type", "kubernetes.io/tls");
	return object;
}

cJSON *render_object(const char *version, const char *kind, const struct job_spec *spec)
{
	cJSON *object = start_object(kind, spec->name, spec, NULL);

	set_text(object, "apiVersion", version);
	return object;
}

cJSON *render_service(const struct job_spec *spec, int port, int http_port)
{
	cJSON *object = start_object("Service", spec->name, spec, NULL);
	cJSON *s = cJSON_AddObjectToObject(object, "spec"), *ports;

	cJSON_AddStringToObject(s, "clusterIP", "None");
	cJSON_AddBoolToObject(s, "publishNotReadyAddresses", true);
	cJSON_AddStringToObject(cJSON_AddObjectToObject(s, "selector"), LABEL_JOB, spec->name);
	ports = cJSON_AddArrayToObject(s, "ports");
	add_port(ports, "grpc", port, "port");
	add_port(ports, "stream", JOB_STREAM_PORT, "port");
	add_port(ports, "http", http_port, "port");
	return object;
}

cJSON *render_board_service(const struct job_spec *spec, const struct plan_pod *pod)
{
	MU_AUTO_FREE char *name = mu_xasprintf("%s-" JOB_BOARD, spec->name);
	cJSON *object = start_object("Service", name, spec, NULL);
	cJSON *s = cJSON_AddObjectToObject(object, "spec"), *selector, *port;

	selector = cJSON_AddObjectToObject(s, "selector");
	cJSON_AddStringToObject(selector, LABEL_JOB, spec->name);
	cJSON_AddStringToObject(selector, LABEL_TASK, pod->task);
	port = append_object(cJSON_AddArrayToObject(s, "ports"));
	cJSON_AddStringToObject(port, "name", "http");
	cJSON_AddNumberToObject(port, "port", 80);
	cJSON_AddNumberToObject(port, "targetPort", pod->http_port);
	return object;
}
