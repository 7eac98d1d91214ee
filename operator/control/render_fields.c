/* SPDX-License-Identifier: Apache-2.0 */
/* What of pods and services can be sent as protobuf: all that render.c makes, and what templates
 * mostly have beside.  A pod with something else is sent as JSON, so nothing here has to be
 * complete; but the numbers have to be those of k8s.io/api. */
#include "operator/control/render.h"

static const struct kube_fields named[] = {{"name", NULL, 1, KUBE_TEXT}, {0}};
static const struct kube_fields owner[] = {{"kind", NULL, 1, KUBE_TEXT},
					   {"name", NULL, 3, KUBE_TEXT},
					   {"uid", NULL, 4, KUBE_TEXT},
					   {"apiVersion", NULL, 5, KUBE_TEXT},
					   {"controller", NULL, 6, KUBE_TRUTH},
					   {"blockOwnerDeletion", NULL, 7, KUBE_TRUTH},
					   {0}};
static const struct kube_fields metadata[] = {{"name", NULL, 1, KUBE_TEXT},
					      {"namespace", NULL, 3, KUBE_TEXT},
					      {"labels", NULL, 11, KUBE_TEXTS},
					      {"annotations", NULL, 12, KUBE_TEXTS},
					      {"ownerReferences", owner, 13, KUBE_LIST},
					      {"finalizers", NULL, 14, KUBE_WORDS},
					      {0}};

/* ---- containers ---- */
static const struct kube_fields field_ref[] = {
    {"apiVersion", NULL, 1, KUBE_TEXT}, {"fieldPath", NULL, 2, KUBE_TEXT}, {0}};
/* of a ConfigMap or a Secret; its name is an object's that JSON does not know */
static const struct kube_fields key_ref[] = {{"localObjectReference", named, 1, KUBE_WITHIN},
					     {"key", NULL, 2, KUBE_TEXT},
					     {"optional", NULL, 3, KUBE_TRUTH},
					     {0}};
static const struct kube_fields value_from[] = {{"fieldRef", field_ref, 1, KUBE_OBJECT},
						{"configMapKeyRef", key_ref, 3, KUBE_OBJECT},
						{"secretKeyRef", key_ref, 4, KUBE_OBJECT},
						{0}};
static const struct kube_fields env[] = {{"name", NULL, 1, KUBE_TEXT},
					 {"value", NULL, 2, KUBE_TEXT},
					 {"valueFrom", value_from, 3, KUBE_OBJECT},
					 {0}};
static const struct kube_fields container_port[] = {{"name", NULL, 1, KUBE_TEXT},
						    {"hostPort", NULL, 2, KUBE_NUMBER},
						    {"containerPort", NULL, 3, KUBE_NUMBER},
						    {"protocol", NULL, 4, KUBE_TEXT},
						    {0}};
static const struct kube_fields resources[] = {
    {"limits", NULL, 1, KUBE_AMOUNTS}, {"requests", NULL, 2, KUBE_AMOUNTS}, {0}};
static const struct kube_fields mount[] = {{"name", NULL, 1, KUBE_TEXT},
					   {"readOnly", NULL, 2, KUBE_TRUTH},
					   {"mountPath", NULL, 3, KUBE_TEXT},
					   {"subPath", NULL, 4, KUBE_TEXT},
					   {0}};
static const struct kube_fields http_get[] = {{"path", NULL, 1, KUBE_TEXT},
					      {"port", NULL, 2, KUBE_PORT},
					      {"scheme", NULL, 4, KUBE_TEXT},
					      {0}};
static const struct kube_fields tcp_socket[] = {{"port", NULL, 1, KUBE_PORT}, {0}};
static const struct kube_fields exec_command[] = {{"command", NULL, 1, KUBE_WORDS}, {0}};
static const struct kube_fields handler[] = {{"exec", exec_command, 1, KUBE_OBJECT},
					     {"httpGet", http_get, 2, KUBE_OBJECT},
					     {"tcpSocket", tcp_socket, 3, KUBE_OBJECT},
					     {0}};
static const struct kube_fields probe[] = {{"handler", handler, 1, KUBE_WITHIN},
					   {"initialDelaySeconds", NULL, 2, KUBE_NUMBER},
					   {"timeoutSeconds", NULL, 3, KUBE_NUMBER},
					   {"periodSeconds", NULL, 4, KUBE_NUMBER},
					   {"successThreshold", NULL, 5, KUBE_NUMBER},
					   {"failureThreshold", NULL, 6, KUBE_NUMBER},
					   {0}};
static const struct kube_fields capabilities[] = {
    {"add", NULL, 1, KUBE_WORDS}, {"drop", NULL, 2, KUBE_WORDS}, {0}};
static const struct kube_fields seccomp[] = {
    {"type", NULL, 1, KUBE_TEXT}, {"localhostProfile", NULL, 2, KUBE_TEXT}, {0}};
static const struct kube_fields container_security[] = {
    {"capabilities", capabilities, 1, KUBE_OBJECT},
    {"privileged", NULL, 2, KUBE_TRUTH},
    {"runAsUser", NULL, 4, KUBE_NUMBER},
    {"runAsNonRoot", NULL, 5, KUBE_TRUTH},
    {"readOnlyRootFilesystem", NULL, 6, KUBE_TRUTH},
    {"allowPrivilegeEscalation", NULL, 7, KUBE_TRUTH},
    {"runAsGroup", NULL, 8, KUBE_NUMBER},
    {"seccompProfile", seccomp, 11, KUBE_OBJECT},
    {0}};
static const struct kube_fields container[] = {
    {"name", NULL, 1, KUBE_TEXT},
    {"image", NULL, 2, KUBE_TEXT},
    {"command", NULL, 3, KUBE_WORDS},
    {"args", NULL, 4, KUBE_WORDS},
    {"workingDir", NULL, 5, KUBE_TEXT},
    {"ports", container_port, 6, KUBE_LIST},
    {"env", env, 7, KUBE_LIST},
    {"resources", resources, 8, KUBE_OBJECT},
    {"volumeMounts", mount, 9, KUBE_LIST},
    {"livenessProbe", probe, 10, KUBE_OBJECT},
    {"readinessProbe", probe, 11, KUBE_OBJECT},
    {"imagePullPolicy", NULL, 14, KUBE_TEXT},
    {"securityContext", container_security, 15, KUBE_OBJECT},
    {"terminationMessagePolicy", NULL, 20, KUBE_TEXT},
    {"startupProbe", probe, 22, KUBE_OBJECT},
    {"restartPolicy", NULL, 24, KUBE_TEXT},
    {0}};

/* ---- volumes ---- */
static const struct kube_fields host_path[] = {
    {"path", NULL, 1, KUBE_TEXT}, {"type", NULL, 2, KUBE_TEXT}, {0}};
static const struct kube_fields empty_dir[] = {
    {"medium", NULL, 1, KUBE_TEXT}, {"sizeLimit", NULL, 2, KUBE_AMOUNT}, {0}};
static const struct kube_fields secret[] = {{"secretName", NULL, 1, KUBE_TEXT},
					    {"defaultMode", NULL, 3, KUBE_NUMBER},
					    {"optional", NULL, 4, KUBE_TRUTH},
					    {0}};
static const struct kube_fields claim[] = {
    {"claimName", NULL, 1, KUBE_TEXT}, {"readOnly", NULL, 2, KUBE_TRUTH}, {0}};
static const struct kube_fields config_map[] = {{"localObjectReference", named, 1, KUBE_WITHIN},
						{"defaultMode", NULL, 3, KUBE_NUMBER},
						{"optional", NULL, 4, KUBE_TRUTH},
						{0}};
static const struct kube_fields source[] = {
    {"hostPath", host_path, 1, KUBE_OBJECT},    {"emptyDir", empty_dir, 2, KUBE_OBJECT},
    {"secret", secret, 6, KUBE_OBJECT},         {"persistentVolumeClaim", claim, 10, KUBE_OBJECT},
    {"configMap", config_map, 19, KUBE_OBJECT}, {0}};
static const struct kube_fields volume[] = {
    {"name", NULL, 1, KUBE_TEXT}, {"volumeSource", source, 2, KUBE_WITHIN}, {0}};

/* ---- pods ---- */
static const struct kube_fields pod_security[] = {{"runAsUser", NULL, 2, KUBE_NUMBER},
						  {"runAsNonRoot", NULL, 3, KUBE_TRUTH},
						  {"fsGroup", NULL, 5, KUBE_NUMBER},
						  {"runAsGroup", NULL, 6, KUBE_NUMBER},
						  {"fsGroupChangePolicy", NULL, 9, KUBE_TEXT},
						  {"seccompProfile", seccomp, 10, KUBE_OBJECT},
						  {0}};
static const struct kube_fields toleration[] = {{"key", NULL, 1, KUBE_TEXT},
						{"operator", NULL, 2, KUBE_TEXT},
						{"value", NULL, 3, KUBE_TEXT},
						{"effect", NULL, 4, KUBE_TEXT},
						{"tolerationSeconds", NULL, 5, KUBE_NUMBER},
						{0}};
static const struct kube_fields pod_spec[] = {
    {"volumes", volume, 1, KUBE_LIST},
    {"containers", container, 2, KUBE_LIST},
    {"restartPolicy", NULL, 3, KUBE_TEXT},
    {"terminationGracePeriodSeconds", NULL, 4, KUBE_NUMBER},
    {"activeDeadlineSeconds", NULL, 5, KUBE_NUMBER},
    {"dnsPolicy", NULL, 6, KUBE_TEXT},
    {"nodeSelector", NULL, 7, KUBE_TEXTS},
    {"serviceAccountName", NULL, 8, KUBE_TEXT},
    {"nodeName", NULL, 10, KUBE_TEXT},
    {"hostNetwork", NULL, 11, KUBE_TRUTH},
    {"securityContext", pod_security, 14, KUBE_OBJECT},
    {"imagePullSecrets", named, 15, KUBE_LIST},
    {"hostname", NULL, 16, KUBE_TEXT},
    {"subdomain", NULL, 17, KUBE_TEXT},
    {"schedulerName", NULL, 19, KUBE_TEXT},
    {"initContainers", container, 20, KUBE_LIST},
    {"automountServiceAccountToken", NULL, 21, KUBE_TRUTH},
    {"tolerations", toleration, 22, KUBE_LIST},
    {"priorityClassName", NULL, 24, KUBE_TEXT},
    {"shareProcessNamespace", NULL, 27, KUBE_TRUTH},
    {"runtimeClassName", NULL, 29, KUBE_TEXT},
    {"enableServiceLinks", NULL, 30, KUBE_TRUTH},
    {0}};
static const struct kube_fields pod[] = {
    {"metadata", metadata, 1, KUBE_OBJECT}, {"spec", pod_spec, 2, KUBE_OBJECT}, {0}};

/* ---- services ---- */
static const struct kube_fields service_port[] = {{"name", NULL, 1, KUBE_TEXT},
						  {"port", NULL, 3, KUBE_NUMBER},
						  {"targetPort", NULL, 4, KUBE_PORT},
						  {0}};
static const struct kube_fields service_spec[] = {
    {"ports", service_port, 1, KUBE_LIST},
    {"selector", NULL, 2, KUBE_TEXTS},
    {"clusterIP", NULL, 3, KUBE_TEXT},
    {"publishNotReadyAddresses", NULL, 13, KUBE_TRUTH},
    {0}};
static const struct kube_fields service[] = {
    {"metadata", metadata, 1, KUBE_OBJECT}, {"spec", service_spec, 2, KUBE_OBJECT}, {0}};

const struct kube_fields *render_fields(const char *resource)
{
	static const struct {
		const char *resource;
		const struct kube_fields *fields;
	} all[] = {{"pods", pod}, {"services", service}};

	for (unsigned i = 0; i < MU_COUNT(all); i++)
		if (strcmp(resource, all[i].resource) == 0)
			return all[i].fields;
	return NULL;
}
