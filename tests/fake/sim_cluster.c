/* SPDX-License-Identifier: Apache-2.0 */
/* The objects, their history and the API calls; and the invariants: one live pod for each index, no
 * change of foreign objects, ended jobs stay ended. */
#include "lib/base/rfc3339.h"
#include "tests/fake/sim.h"

uint64_t sim_random(struct sim *s)
{
	uint64_t z = (s->random += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

bool sim_chance(struct sim *s, int per_mille)
{
	return s->faulty && (int)(sim_random(s) % 1000) < per_mille;
}

double sim_between(struct sim *s, double from, double to)
{
	return from + (to - from) * (double)(sim_random(s) % 10000) / 10000;
}

void sim_violation(struct sim *s, const char *fmt, ...)
{
	va_list ap;

	if (s->violation[0])
		return;
	va_start(ap, fmt);
	vsnprintf(s->violation, sizeof(s->violation), fmt, ap);
	va_end(ap);
}

const cJSON *sim_at(const cJSON *o, const char *dotted)
{
	char key[64];

	while (o && *dotted) {
		size_t n = strcspn(dotted, ".");
		snprintf(key, sizeof(key), "%.*s", (int)n, dotted);
		o = cJSON_GetObjectItemCaseSensitive(o, key);
		dotted += n + (dotted[n] == '.');
	}
	return o;
}

const char *sim_text(const cJSON *o, const char *dotted)
{
	const char *text = cJSON_GetStringValue(sim_at(o, dotted));
	return text ? text : "";
}

struct sim_object *sim_find(struct sim *s, const char *path)
{
	for (int i = 0; i < s->n_objects; i++)
		if (strcmp(s->objects[i].path, path) == 0)
			return &s->objects[i];
	return NULL;
}

static enum sim_kind kind_of(const char *path)
{
	return strstr(path, "/distributedtrainingjobs/") ? SIM_JOB
	       : strstr(path, "/pods/")                  ? SIM_POD
	       : strstr(path, "/services/")              ? SIM_SERVICE
	       : strstr(path, "/nodes/")                 ? SIM_NODE
							 : SIM_OTHER;
}

static void set_text(cJSON *o, const char *key, const char *value)
{
	cJSON_DeleteItemFromObjectCaseSensitive(o, key);
	cJSON_AddStringToObject(o, key, value);
}

static cJSON *metadata_of(cJSON *o)
{
	return cJSON_GetObjectItemCaseSensitive(o, "metadata");
}

static void record(struct sim *s, const struct sim_object *o, bool deleted)
{
	if (s->n_events == SIM_EVENTS) {
		sim_violation(s, "no end of changes");
		return;
	}
	s->events[s->n_events++] =
	    (struct sim_event){o->kind, deleted, cJSON_Duplicate(o->json, true)};
}

int sim_version(const struct sim *s)
{
	return s->n_events + 999;
}

static void next_version(struct sim *s, cJSON *json)
{
	char version[16];

	snprintf(version, sizeof(version), "%d", sim_version(s) + 1);
	set_text(metadata_of(json), "resourceVersion", version);
}

void sim_changed(struct sim *s, struct sim_object *o)
{
	next_version(s, o->json);
	record(s, o, false);
	if (s->trace)
		fprintf(stderr, "%8.2f   %s %s%s\n", s->now - SIM_EPOCH, o->path,
			sim_text(o->json, "status.phase"),
			sim_at(o->json, "metadata.deletionTimestamp") ? " (deleting)" : "");
}

struct sim_object *sim_add(struct sim *s, const char *path, cJSON *json)
{
	struct sim_object *o = &s->objects[s->n_objects];
	char text[40];

	if (s->n_objects == SIM_OBJECTS) {
		sim_violation(s, "no end of objects");
		cJSON_Delete(json);
		return NULL;
	}
	*o = (struct sim_object){.kind = kind_of(path), .json = json, .due = INFINITY};
	snprintf(o->path, sizeof(o->path), "%s", path);
	snprintf(text, sizeof(text), "uid-%d", ++s->next_uid);
	set_text(metadata_of(json), "uid", text);
	mu_rfc3339_write(text, s->now);
	set_text(metadata_of(json), "creationTimestamp", text);
	if (o->kind == SIM_POD) {
		o->due = s->now + sim_between(s, 0.1, 2);
		cJSON_AddStringToObject(cJSON_AddObjectToObject(json, "status"), "phase",
					"Pending");
	}
	s->n_objects++;
	sim_changed(s, o);
	return o;
}

static const char *owner_of(const cJSON *o)
{
	return sim_text(cJSON_GetArrayItem(sim_at(o, "metadata.ownerReferences"), 0), "uid");
}

void sim_remove(struct sim *s, struct sim_object *o)
{
	MU_AUTO_FREE char *uid = mu_xstrdup(sim_text(o->json, "metadata.uid"));
	bool job = o->kind == SIM_JOB;

	if (s->trace)
		fprintf(stderr, "%8.2f   %s is gone\n", s->now - SIM_EPOCH, o->path);
	next_version(s, o->json);
	record(s, o, true);
	cJSON_Delete(o->json);
	*o = s->objects[--s->n_objects];
	for (int i = 0; job && i < s->n_objects; i++)
		if (strcmp(owner_of(s->objects[i].json), uid) == 0)
			s->objects[i].orphan = s->now + sim_between(s, 0, 20);
}

void sim_collect(struct sim *s, struct sim_object *o)
{
	o->orphan = 0;
	if (o->kind != SIM_POD) {
		sim_remove(s, o);
		return;
	}
	sim_serve(s, "DELETE", o->path, NULL, NULL, NULL);
	if (isinf(o->due)) /* its node is lost: the node controller deletes it */
		o->due = s->now + 30;
}

/* ---- invariants ---- */

static bool is_live(const cJSON *pod)
{
	const char *phase = sim_text(pod, "status.phase");
	return strcmp(phase, "Succeeded") != 0 && strcmp(phase, "Failed") != 0;
}

static bool same_index(const cJSON *a, const cJSON *b)
{
	const cJSON *la = sim_at(a, "metadata.labels"), *lb = sim_at(b, "metadata.labels");

	for (int i = 0; i < 2; i++) {
		const char *key = i ? LABEL_TASK : LABEL_INDEX;
		const char *x = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(la, key));
		const char *y = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(lb, key));
		if (!x || !y || strcmp(x, y) != 0)
			return false;
	}
	return strcmp(owner_of(a), owner_of(b)) == 0;
}

/* True if `ranges`, such as "0-3,7", contains the index. */
static bool is_in_ranges(const char *ranges, int index)
{
	for (const char *at = ranges; *at; at += *at == ',') {
		char *end;
		long from = strtol(at, &end, 10),
		     to = *end == '-' ? strtol(end + 1, &end, 10) : from;

		if (end == at || index < from)
			return false;
		if (index <= to)
			return true;
		at = end;
	}
	return false;
}

/* The record of an ended index in the status, or NULL. *is_listed: the index is in
 * completedIndexes. */
static const cJSON *record_of(const cJSON *job, const char *task, int index, bool *is_listed)
{
	const cJSON *ranges = cJSON_GetObjectItemCaseSensitive(
			sim_at(job, "status.completedIndexes"), task),
		    *e;

	*is_listed = cJSON_IsString(ranges) && is_in_ranges(ranges->valuestring, index);
	cJSON_ArrayForEach(e, sim_at(job, "status.indexStatuses"))
	{
		if (strcmp(sim_text(e, "task"), task) == 0 && sim_at(e, "index")->valueint == index)
			return e;
	}
	return NULL;
}

static bool is_done(const cJSON *job, const char *task, int index)
{
	bool is_listed;
	const cJSON *e = record_of(job, task, index, &is_listed);

	return is_listed || cJSON_IsTrue(sim_at(e, "done"));
}

/* True if the replica history has this mark for the pod's index. */
static bool is_marked(const cJSON *job, const cJSON *pod, const char *mark)
{
	const cJSON *labels = sim_at(pod, "metadata.labels");
	const char *task =
	    cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(labels, LABEL_TASK));
	const char *index =
	    cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(labels, LABEL_INDEX));
	bool is_listed;
	const cJSON *e = record_of(job, task, atoi(index), &is_listed);

	return (is_listed && strcmp(mark, "done") == 0) || cJSON_IsTrue(sim_at(e, mark));
}

/* A scheduler places a pod with the group that the pod names, no matter who owns the group. */
static void check_group(struct sim *s, const cJSON *job, const cJSON *pod)
{
	const char *gang = sim_text(job, "spec.run.gang");

	if (strcmp(gang, "volcano") != 0 && strcmp(gang, "scheduler-plugins") != 0)
		return;
	for (int i = 0; i < s->n_objects; i++)
		if (strstr(s->objects[i].path, "/podgroups/") &&
		    strcmp(owner_of(s->objects[i].json), owner_of(pod)) == 0)
			return;
	if (!s->lost_owned)
		sim_violation(s, "%s was made without its group", sim_text(pod, "metadata.name"));
}

static void check_new_pod(struct sim *s, const cJSON *pod)
{
	const char *name = sim_text(pod, "metadata.name");

	for (int i = 0; i < s->n_objects; i++) {
		const struct sim_object *o = &s->objects[i];
		if (o->kind == SIM_POD && is_live(o->json) && same_index(o->json, pod))
			sim_violation(s, "two live pods for one index: %s and %s", o->path, name);
		if (o->kind != SIM_JOB || s->in_flight_call)
			continue;
		if (strcmp(sim_text(o->json, "metadata.uid"), owner_of(pod)) != 0)
			continue;
		if (is_marked(o->json, pod, "done"))
			sim_violation(s, "%s was created though its index is done", name);
		if (is_marked(o->json, pod, "noGpu") && sim_wants_gpu(pod))
			sim_violation(s, "%s waits for a GPU again", name);
		check_group(s, o->json, pod);
	}
}

static void check_status(struct sim *s, const cJSON *was, const cJSON *is)
{
	const char *old = sim_text(was, "status.phase"), *new = sim_text(is, "status.phase");
	bool has_ended = strcmp(old, "Succeeded") == 0 || strcmp(old, "Failed") == 0;
	const cJSON *t;

	/* a job that has not started may continue after its spec is corrected */
	if (has_ended && *sim_text(was, "status.startTime") && strcmp(old, new) != 0)
		sim_violation(s, "the job was %s and is %s", old, new);
	sim_check_epoch(s, was, is);
	cJSON_ArrayForEach(t, sim_at(was, "status.tasks"))
	{
		for (int index = 0; index < SIM_WORKERS_MAX; index++)
			if (is_done(was, t->string, index) && !is_done(is, t->string, index))
				sim_violation(s, "%s/%d was done and is not", t->string, index);
	}
}

static bool is_owned(const struct sim_object *o)
{
	return o->kind == SIM_JOB || strncmp(owner_of(o->json), "uid-", 4) == 0;
}

/* ---- calls ---- */

static void merge(cJSON *to, const cJSON *patch)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, patch)
	{
		cJSON *old = cJSON_GetObjectItemCaseSensitive(to, item->string);
		if (cJSON_IsObject(item) && cJSON_IsObject(old)) {
			merge(old, item);
			continue;
		}
		cJSON_DeleteItemFromObjectCaseSensitive(to, item->string);
		if (cJSON_IsObject(item))
			merge(cJSON_AddObjectToObject(to, item->string), item);
		else if (!cJSON_IsNull(item))
			cJSON_AddItemToObject(to, item->string, cJSON_Duplicate(item, true));
	}
}

static bool owner_lives(const struct sim *s, const cJSON *json)
{
	const char *uid = owner_of(json);

	for (int i = 0; i < s->n_objects; i++)
		if (strcmp(sim_text(s->objects[i].json, "metadata.uid"), uid) == 0)
			return true;
	return !*uid;
}

static bool exceeds_quota(const struct sim *s)
{
	int n = 0;

	for (int i = 0; i < s->n_objects; i++)
		n += s->objects[i].kind == SIM_POD && is_live(s->objects[i].json) &&
		     *owner_of(s->objects[i].json);
	return s->script.quota > 0 && n >= s->script.quota;
}

static int serve_post(struct sim *s, const char *path, const cJSON *body, cJSON **out,
		      struct mu_err *err)
{
	char named[256];
	struct sim_object *o;
	cJSON *object;

	snprintf(named, sizeof(named), "%.*s/%s", (int)strcspn(path, "?"), path,
		 sim_text(body, "metadata.name"));
	if (sim_find(s, named))
		return mu_fail(err, MU_ALREADY_EXISTS, "%s exists", named);
	if (strstr(path, "/events")) {
		s->kernels_events += strcmp(sim_text(body, "reason"), "KernelsMissing") == 0;
		return 0; /* events are informational */
	}
	if (strstr(path, "/pods") && exceeds_quota(s))
		return mu_fail(err, MU_PERMISSION_DENIED, "exceeded quota: q, limited: pods=%d",
			       s->script.quota);
	if (strstr(path, "/pods"))
		check_new_pod(s, body);
	object = cJSON_Duplicate(body, true);
	if (strstr(path, "/secrets"))
		sim_encode_secret(object);
	o = sim_add(s, named, object);
	if (!o)
		return 0;
	*out = cJSON_Duplicate(o->json, true);
	if (!owner_lives(s, o->json))
		o->orphan = s->now + sim_between(s, 0, 20);
	return 0;
}

static int serve_delete(struct sim *s, struct sim_object *o, const cJSON *body, struct mu_err *err)
{
	const char *uid = sim_text(body, "preconditions.uid");
	cJSON *metadata = metadata_of(o->json);
	char when[32];

	if (*uid && strcmp(uid, sim_text(o->json, "metadata.uid")) != 0)
		return mu_fail(err, MU_ABORTED, "another uid");
	if (!is_owned(o))
		sim_violation(s, "%s was deleted, which is not ours", o->path);
	if (o->kind != SIM_POD || (cJSON_IsNumber(sim_at(body, "gracePeriodSeconds")) &&
				   sim_at(body, "gracePeriodSeconds")->valueint == 0)) {
		sim_remove(s, o);
		return 0;
	}
	if (sim_at(o->json, "metadata.deletionTimestamp"))
		return 0;
	mu_rfc3339_write(when, s->now + 30);
	set_text(metadata, "deletionTimestamp", when);
	cJSON_AddNumberToObject(metadata, "deletionGracePeriodSeconds", 30);
	o->due = s->now + sim_between(s, 0.1, 3);
	sim_changed(s, o);
	return 0;
}

/* The final deletion of a pod by its kubelet. */
void sim_confirm(struct sim *s, struct sim_object *o)
{
	cJSON *metadata = metadata_of(o->json);
	char when[32];

	mu_rfc3339_write(when, s->now);
	set_text(metadata, "deletionTimestamp", when);
	cJSON_SetNumberValue(cJSON_GetObjectItem(metadata, "deletionGracePeriodSeconds"), 0);
	sim_changed(s, o);
	sim_remove(s, o);
}

/* An empty patch changes nothing. */
static bool is_read_only(const char *method, const cJSON *body)
{
	return strcmp(method, "PATCH") == 0 && !body->child;
}

static int serve_patch(struct sim *s, struct sim_object *o, const cJSON *body, cJSON **out,
		       struct mu_err *err)
{
	const char *uid = sim_text(body, "metadata.uid");
	const char *version = sim_text(body, "metadata.resourceVersion");
	cJSON *was;

	if (*uid && strcmp(uid, sim_text(o->json, "metadata.uid")) != 0)
		return mu_fail(err, MU_ABORTED, "another uid");
	if (*version && strcmp(version, sim_text(o->json, "metadata.resourceVersion")) != 0)
		return mu_fail(err, MU_ABORTED, "the object has been modified");
	if (!is_owned(o))
		sim_violation(s, "%s was patched, which is not ours", o->path);
	was = cJSON_Duplicate(o->json, true);
	merge(o->json, body);
	check_status(s, was, o->json);
	if (strstr(o->path, "/secrets/"))
		sim_encode_secret(o->json);
	if (strstr(o->path, "/secrets/"))
		sim_check_secret(s, was, o->json);
	cJSON_Delete(was);
	if (!is_read_only("PATCH", body))
		sim_changed(s, o);
	*out = cJSON_Duplicate(o->json, true);
	return 0;
}

int sim_serve(struct sim *s, const char *method, const char *path, const cJSON *body, cJSON **out,
	      struct mu_err *err)
{
	MU_AUTO_FREE char *named = mu_xstrdup(path);
	size_t n = strlen(named);
	struct sim_object *o;
	cJSON *answer = NULL;
	int rc;

	if (n > 7 && strcmp(named + n - 7, "/status") == 0)
		named[n - 7] = 0;
	s->calls++;
	s->writes += strcmp(method, "GET") != 0 && !is_read_only(method, body);
	if (s->trace)
		fprintf(stderr, "%8.2f %s %s\n", s->now - SIM_EPOCH, method, path);
	if (strcmp(method, "POST") == 0) {
		rc = serve_post(s, path, body, &answer, err);
	} else if (strstr(path, "/events/")) {
		rc = 0;
	} else if (!(o = sim_find(s, named))) {
		rc = mu_fail(err, MU_NOT_FOUND, "%s: not found", named);
	} else if (strcmp(method, "GET") == 0) {
		answer = cJSON_Duplicate(o->json, true);
		rc = 0;
	} else if (strcmp(method, "DELETE") == 0) {
		rc = serve_delete(s, o, body, err);
	} else {
		rc = serve_patch(s, o, body, &answer, err);
	}
	if (out && rc == 0)
		*out = answer;
	else
		cJSON_Delete(answer);
	return rc;
}
