/* SPDX-License-Identifier: Apache-2.0 */
/* both_forms KUBECONFIG: what a real API server says in protobuf is what it says in JSON.
 *
 * Each kind that comes in both is watched in both, from a version that is too old, while its
 * objects go through a life: so there are errors, lists, news and ends.  Both watches must have
 * seen the same, member for member of the tables that the operator reads with. */
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "lib/base/log.h"
#include "lib/kube/kube_stream.h"
#include "operator/control/cache.h"

enum { KINDS = 4, FORMS = 2, SEEN_MAX = 64, ROWS_MAX = 8, PATIENCE_MS = 30000 };

#define NS    "/namespaces/forms"
#define PODS  "/api/v1" NS "/pods"
#define NODES "/api/v1/nodes"
#define NET   "/apis/networking.k8s.io/v1" NS "/networkpolicies"

static const struct {
	const char *path;
	const struct kube_fields *fields;
} kinds[KINDS] = {{PODS, cache_pod_fields},
		  {NODES, cache_node_fields},
		  {"/api/v1" NS "/services", cache_owned_fields},
		  {NET, cache_owned_fields}};

struct step {
	const char *method, *path, *body;
};
static const struct step before[] = {
    {"POST", "/api/v1/namespaces", "{\"metadata\":{\"name\":\"forms\"}}"},
    {"POST", PODS,
     "{\"metadata\":{\"name\":\"listed\",\"labels\":{\"a\":\"b\",\"empty\":\"\"}},\"spec\":{"
     "\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}"},
    {"POST", NODES,
     "{\"metadata\":{\"name\":\"forms-1\",\"labels\":{\"nvidia.com/gpu.count\":\"8\"}}}"},
};
static const struct step life[] = {
    {"POST", PODS,
     "{\"metadata\":{\"name\":\"p\",\"labels\":{\"muster.dev/job\":\"j\",\"muster.dev/task\":"
     "\"worker\",\"muster.dev/index\":\"3\",\"muster.dev/epoch\":\"2\"},\"ownerReferences\":[{"
     "\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"name\":\"no\",\"uid\":\"u-1\"},{"
     "\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"name\":\"o\",\"uid\":\"u-2\","
     "\"controller\":true}]},\"spec\":{\"nodeName\":\"forms-1\",\"containers\":[{\"name\":\"c\","
     "\"image\":\"i\",\"resources\":{\"limits\":{\"cpu\":\"1\"}}}]}}"},
    {"PATCH", PODS "/p/status",
     "{\"status\":{\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"False\",\"reason\":"
     "\"Unschedulable\",\"message\":\"0/1: \\u00fc \\u20ac \\ud83d\\ude00 \\\"quoted\\\"\"}]}}"},
    {"PATCH", PODS "/p/status",
     "{\"status\":{\"phase\":\"Running\",\"podIP\":\"10.0.0.7\",\"podIPs\":[{\"ip\":\"10.0.0.7\"}],"
     "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}],\"containerStatuses\":[{\"name\":"
     "\"c\",\"ready\":true,\"restartCount\":0,\"image\":\"i\",\"imageID\":\"i\",\"state\":{"
     "\"waiting\":{\"reason\":\"ImagePullBackOff\",\"message\":\"no such\"}}}]}}"},
    {"DELETE", PODS "/p", "{\"gracePeriodSeconds\":30}"},
    {"PATCH", PODS "/p/status",
     "{\"status\":{\"phase\":\"Failed\",\"reason\":\"Evicted\",\"message\":\"low on memory\","
     "\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\"},{\"type\":\"DisruptionTarget\","
     "\"status\":\"True\",\"reason\":\"EvictionByEvictionAPI\"}],\"containerStatuses\":[{\"name\":"
     "\"c\",\"ready\":false,\"restartCount\":0,\"image\":\"i\",\"imageID\":\"i\",\"state\":{"
     "\"terminated\":{\"exitCode\":137,\"signal\":9,\"reason\":\"OOMKilled\",\"message\":"
     "\"{\\\"step\\\":3}\",\"finishedAt\":\"2026-01-02T03:04:05Z\"}}}]}}"},
    {"DELETE", PODS "/p", "{\"gracePeriodSeconds\":0}"},
    {"DELETE", PODS "/listed", "{\"gracePeriodSeconds\":0}"},
    {"PATCH", NODES "/forms-1/status",
     "{\"status\":{\"allocatable\":{\"cpu\":\"4\",\"memory\":\"1Gi\",\"nvidia.com/gpu\":\"8\"},"
     "\"conditions\":[{\"type\":\"Ready\",\"status\":\"Unknown\",\"reason\":\"NodeStatusUnknown\","
     "\"message\":\"m\"}]}}"},
    {"PATCH", NODES "/forms-1", "{\"spec\":{\"unschedulable\":true}}"},
    {"DELETE", NODES "/forms-1", "{}"},
    {"POST", "/api/v1" NS "/services",
     "{\"metadata\":{\"name\":\"s\",\"labels\":{\"muster.dev/job\":\"j\"}},\"spec\":{\"clusterIP\":"
     "\"None\",\"selector\":{\"a\":\"b\"}}}"},
    {"PATCH", "/api/v1" NS "/services/s", "{\"metadata\":{\"labels\":{\"x\":\"y\"}}}"},
    {"DELETE", "/api/v1" NS "/services/s", "{}"},
    {"POST", NET,
     "{\"metadata\":{\"name\":\"n\",\"labels\":{\"muster.dev/job\":\"j\"}},\"spec\":{"
     "\"podSelector\":{},\"ingress\":[]}}"},
    {"DELETE", NET "/n", "{}"},
};

/* What a watch has seen. */
struct record {
	pthread_mutex_t lock;
	cJSON *seen[SEEN_MAX];
	bool gone[SEEN_MAX];
	int n;
	struct kube_fields fields[ROWS_MAX];
	struct kube_reflector reflector;
	pthread_t thread;
};
static struct record records[KINDS][FORMS];
static int failed;

static void fail_with(const char *what, const char *why)
{
	fprintf(stderr, "both_forms: %s: %s\n", what, why);
	failed++;
}

static void put(struct record *r, const cJSON *object, bool gone)
{
	pthread_mutex_lock(&r->lock);
	if (r->n < SEEN_MAX) {
		r->gone[r->n] = gone;
		r->seen[r->n++] = cJSON_Duplicate(object, true);
	}
	pthread_mutex_unlock(&r->lock);
}

static void seen(void *record, const cJSON *object)
{
	put(record, object, false);
}

static void gone(void *record, const cJSON *object)
{
	put(record, object, true);
}

static void nothing(void *record)
{
}

static int ended(struct record *r)
{
	int n = 0;

	pthread_mutex_lock(&r->lock);
	for (int i = 0; i < r->n; i++)
		n += r->gone[i];
	pthread_mutex_unlock(&r->lock);
	return n;
}

/* Of what JSON says, what protobuf says of it: times as numbers, and no empty texts. */
static void as_read(cJSON *object, const struct kube_fields *fields)
{
	for (; fields->name; fields++) {
		cJSON *value = cJSON_GetObjectItemCaseSensitive(object, fields->name), *item;

		if (fields->form == KUBE_TIME && cJSON_IsString(value)) {
			double t = time_from_rfc3339(value->valuestring);
			cJSON_ReplaceItemInObjectCaseSensitive(object, fields->name,
							       cJSON_CreateNumber(t));
		} else if (fields->form == KUBE_TEXT && cJSON_IsString(value) &&
			   !*value->valuestring) {
			cJSON_DeleteItemFromObjectCaseSensitive(object, fields->name);
		} else if (fields->form == KUBE_OBJECT && value) {
			as_read(value, fields->below);
		} else if (fields->form == KUBE_LIST) {
			cJSON_ArrayForEach(item, value) as_read(item, fields->below);
		}
	}
}

/* A member that protobuf has although it says nothing: false, and no object. */
static void without_nothing(cJSON *object)
{
	for (cJSON *item = object ? object->child : NULL, *next; item; item = next) {
		next = item->next;
		without_nothing(item);
		if (cJSON_IsFalse(item) || (cJSON_IsObject(item) && !item->child))
			cJSON_Delete(cJSON_DetachItemViaPointer(object, item));
	}
}

static void compare_records(const char *what, const cJSON *a, const cJSON *b)
{
	struct cached_pod *p = pod_record_new(a), *q = pod_record_new(b);

	if (!p != !q || (p && (!pod_record_same(p, q) || p->epoch != q->epoch ||
			       p->deletion_asked != q->deletion_asked)))
		fail_with(what, "another record of a pod");
	if (p)
		pod_record_free(p);
	if (q)
		pod_record_free(q);
}

static void compare(const char *what, const struct kube_fields *fields, cJSON *json,
		    cJSON *protobuf)
{
	compare_records(what, json, protobuf);
	as_read(json, fields);
	without_nothing(json);
	without_nothing(protobuf);
	if (!cJSON_Compare(json, protobuf, true)) {
		MU_AUTO_FREE char *a = cJSON_PrintUnformatted(json);
		MU_AUTO_FREE char *b = cJSON_PrintUnformatted(protobuf);
		fail_with(what, "JSON and protobuf differ");
		fprintf(stderr, "%s\n%s\n", a, b);
	}
}

static void do_steps(struct kube_client *c, const struct step *steps, unsigned n)
{
	struct mu_err err = {0};

	for (unsigned i = 0; i < n; i++) {
		bool patch = strcmp(steps[i].method, "PATCH") == 0;
		struct kube_request rq = {.method = steps[i].method,
					  .path = steps[i].path,
					  .content_type =
					      patch ? "application/merge-patch+json" : NULL,
					  .body = mu_span_of(steps[i].body)};

		if (kube_call(c, &rq, NULL, &err) < 0)
			fail_with(steps[i].path, err.msg);
	}
}

static void start(struct kube_client *c, int kind, int form)
{
	struct record *r = &records[kind][form];

	pthread_mutex_init(&r->lock, NULL);
	for (int i = 0; kinds[kind].fields[i].name; i++) {
		r->fields[i] = kinds[kind].fields[i];
		r->fields[i].number = form ? r->fields[i].number : 0;
	}
	r->reflector = (struct kube_reflector){.client = c,
					       .name = form ? "protobuf" : "JSON",
					       .path = mu_xstrdup(kinds[kind].path),
					       .fields = r->fields,
					       .begin = nothing,
					       .seen = seen,
					       .gone = gone,
					       .end = nothing,
					       .arg = r,
					       .version = mu_xstrdup("1")};
	pthread_create(&r->thread, NULL, kube_reflector_run, &r->reflector);
}

static void nap(void)
{
	nanosleep(&(struct timespec){0, 10 * 1000000L}, NULL);
}

/* All of each kind are gone, in both forms. */
static bool all_ended(void)
{
	static const int wanted[KINDS] = {2, 1, 1, 1};

	for (int k = 0; k < KINDS; k++)
		for (int f = 0; f < FORMS; f++)
			if (ended(&records[k][f]) < wanted[k])
				return false;
	return true;
}

static bool all_synced(void)
{
	for (int k = 0; k < KINDS; k++)
		for (int f = 0; f < FORMS; f++)
			if (!atomic_load(&records[k][f].reflector.synced))
				return false;
	return true;
}

static bool wait_for(bool (*what)(void))
{
	for (int ms = 0; ms < PATIENCE_MS; ms += 10) {
		if (what())
			return true;
		nap();
	}
	return false;
}

static void compare_all(int k)
{
	struct record *json = &records[k][0], *protobuf = &records[k][1];

	if (json->n != protobuf->n)
		fail_with(kinds[k].path, "not as many events");
	for (int i = 0; i < json->n && i < protobuf->n; i++) {
		if (json->gone[i] != protobuf->gone[i])
			fail_with(kinds[k].path, "another event");
		compare(kinds[k].path, kinds[k].fields, json->seen[i], protobuf->seen[i]);
	}
	printf("both_forms: %s: %d events\n", kinds[k].path, json->n);
}

/* What a call says that is refused. */
static void compare_refusals(struct kube_client *c)
{
	struct kube_request rq = {.method = "GET", .path = PODS "/none"};
	struct mu_err json = {0}, protobuf = {0};
	cJSON *out = NULL;

	kube_call(c, &rq, &out, &json);
	rq.fields = cache_pod_fields;
	if (kube_call(c, &rq, &out, &protobuf) != -MU_NOT_FOUND ||
	    strcmp(json.msg, protobuf.msg) != 0)
		fail_with(json.msg, protobuf.msg);
}

int main(int argc, char **argv)
{
	struct kube_config config = {0};
	struct kube_client *c;
	struct mu_err err = {0};

	if (argc != 2 || kube_config_load(&config, argv[1], NULL, &err) < 0 ||
	    kube_client_new(&c, &config, &err) < 0) {
		fprintf(stderr, "both_forms: %s\n", argc == 2 ? err.msg : "both_forms KUBECONFIG");
		return 1;
	}
	do_steps(c, before, MU_COUNT(before));
	for (int k = 0; k < KINDS; k++)
		for (int f = 0; f < FORMS; f++)
			start(c, k, f);
	if (!wait_for(all_synced))
		fail_with("lists", "they do not come");
	compare_refusals(c);
	do_steps(c, life, MU_COUNT(life));
	if (!wait_for(all_ended))
		fail_with("watches", "not all news has come");
	kube_client_stop(c);
	for (int k = 0; k < KINDS; k++)
		for (int f = 0; f < FORMS; f++)
			pthread_join(records[k][f].thread, NULL);
	for (int k = 0; k < KINDS; k++)
		compare_all(k);
	for (int k = 0; k < KINDS; k++)
		for (int f = 0; f < FORMS; f++) {
			for (int i = 0; i < records[k][f].n; i++)
				cJSON_Delete(records[k][f].seen[i]);
			free(records[k][f].reflector.path);
		}
	kube_client_free(c);
	return failed ? 1 : 0;
}
