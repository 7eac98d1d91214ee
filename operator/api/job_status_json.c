/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes and encodes a status.  Members of a wrong type, written by others, are skipped. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>

#include "lib/io/fields.h"
#include "lib/io/json.h"
#include "lib/io/json_build.h"
#include "operator/api/job_status.h"
#include "operator/api/object_json.h"

static const struct field cluster_fields[] = {
    {"epoch", FIELD_INT, AT(job_status, epoch)},
    {"epochSeen", FIELD_INT, AT(job_status, epoch_seen), .optional = true},
    {"members", FIELD_CHARS, AT(job_status, members)},
    {NULL}};
static const struct field security_fields[] = {
    {"secret", FIELD_COPY, AT(security_status, secret)},
    {"issuedAt", FIELD_TIME, AT(security_status, issued_at)},
    {"expires", FIELD_TIME, AT(security_status, expires)},
    {"caAddedAt", FIELD_TIME, AT(security_status, ca_added_at)},
    {NULL}};
static const struct field status_fields[] = {
    {"phase", FIELD_ENUM, AT(job_status, phase), .names = job_phase_names},
    {"observedGeneration", FIELD_INT64, AT(job_status, observed_generation)},
    {"startTime", FIELD_TIME, AT(job_status, start_time)},
    {"completionTime", FIELD_TIME, AT(job_status, completion_time)},
    {"restarts", FIELD_INT, AT(job_status, restarts)},
    {"selector", FIELD_CHARS, AT(job_status, selector)},
    {"cluster", FIELD_SECTION, .section = cluster_fields},
    {"security", FIELD_SECTION, AT(job_status, security), .section = security_fields},
    {NULL}};
static const struct field condition_fields[] = {
    {"reason", FIELD_CHARS, AT(condition, reason)},
    {"message", FIELD_CHARS, AT(condition, message)},
    {"lastTransitionTime", FIELD_TIME, AT(condition, since)},
    {NULL}};
static const struct field task_fields[] = {
    {"desired", FIELD_INT, AT(task_status, desired)},
    {"ready", FIELD_INT, AT(task_status, ready)},
    {"active", FIELD_INT, AT(task_status, active)},
    {"succeeded", FIELD_INT, AT(task_status, succeeded)},
    {"failed", FIELD_INT, AT(task_status, failed)},
    {"joinedWorkers", FIELD_INT, AT(task_status, joined), .optional = true},
    {"kernels", FIELD_CHARS, AT(task_status, kernels), .optional = true},
    {NULL}};
static const struct field index_fields[] = {
    {"task", FIELD_CHARS, AT(index_status, task)},
    {"index", FIELD_INT, AT(index_status, index)},
    {"done", FIELD_BOOL, AT(index_status, done)},
    {"failures", FIELD_INT, AT(index_status, failures), .optional = true},
    {"attempts", FIELD_INT, AT(index_status, attempts)},
    {"exitCode", FIELD_INT, AT(index_status, exit_code)},
    {"reason", FIELD_CHARS, AT(index_status, reason), .optional = true},
    {"node", FIELD_CHARS, AT(index_status, node), .optional = true},
    {"uid", FIELD_CHARS, AT(index_status, uid)},
    {"podCreated", FIELD_TIME, AT(index_status, created)},
    {"retryAt", FIELD_DOUBLE, AT(index_status, retry_at), .optional = true},
    {"uncounted", FIELD_BOOL, AT(index_status, uncounted)},
    {"noGpu", FIELD_BOOL, AT(index_status, no_gpu)},
    {"pendingDepartureSize", FIELD_INT, AT(index_status, pending_departure_size), .optional = true},
    {"departureAttempts", FIELD_INT, AT(index_status, departure_attempts), .optional = true},
    {NULL}};
static const struct field progress_fields[] = {
    {"step", FIELD_INT64, AT(progress_report, step)},
    {"targetStep", FIELD_INT64, AT(progress_report, target), .optional = true},
    {"stepsPerSecond", FIELD_DOUBLE, AT(progress_report, steps_per_second)},
    {"examplesPerSecond", FIELD_DOUBLE, AT(progress_report, examples_per_second)},
    {"loss", FIELD_DOUBLE, AT(progress_report, loss)},
    {"accuracy", FIELD_DOUBLE, AT(progress_report, accuracy)},
    {"lastCheckpoint", FIELD_CHARS, AT(progress_report, last_checkpoint), .optional = true},
    {"eta", FIELD_CHARS, AT(progress_report, eta), .optional = true},
    {"reason", FIELD_ENUM, AT(progress_report, reason), .names = end_reason_names},
    {NULL}};

/* ---- conditions and tasks ---- */

static void decode_condition(struct job_status *s, const cJSON *json)
{
	int i = condition_type_of(text_or_empty(json, "type"));

	if (i < 0)
		return;
	s->conditions[i].set = true;
	s->conditions[i].status = strcmp(text_or_empty(json, "status"), "True") == 0;
	fields_decode(json, condition_fields, &s->conditions[i]);
}

static void encode_conditions(cJSON *list, const struct job_status *s)
{
	for (int i = 0; i < JOB_CONDITIONS; i++) {
		const struct condition *c = &s->conditions[i];
		cJSON *json;

		if (!c->set)
			continue;
		json = cJSON_CreateObject();
		cJSON_AddStringToObject(json, "type", condition_kinds[i].name);
		cJSON_AddStringToObject(json, "status", c->status ? "True" : "False");
		fields_encode(json, condition_fields, c);
		cJSON_AddNumberToObject(json, "observedGeneration", (double)s->observed_generation);
		cJSON_AddItemToArray(list, json);
	}
}

static void decode_task(struct job_status *s, const cJSON *json)
{
	struct task_status *t = &s->tasks[s->n_tasks];

	if (s->n_tasks == JOB_MAX_TASKS || !json->string)
		return;
	s->n_tasks++;
	snprintf(t->name, sizeof(t->name), "%s", json->string);
	fields_decode(json, task_fields, t);
}

/* ---- index statuses ---- */

static void decode_index(struct job_status *s, const cJSON *json)
{
	struct index_status e = {.exit_code = -1};

	fields_decode(json, index_fields, &e);
	if (*e.task)
		*index_status_get_or_add(s, e.task, e.index) = e;
}

/* True for an index that has ended once, with 0: its range contains all of it. */
static bool is_plain(const struct index_status *e)
{
	return e->done && e->attempts == 1 && e->exit_code == 0 && !e->failures && !e->uncounted &&
	       !e->no_gpu && !e->pending_departure_size && !e->departure_attempts &&
	       e->index >= 0 && e->index < JOB_MAX_REPLICAS;
}

static void encode_index_statuses(cJSON *list, const struct job_status *s)
{
	for (unsigned i = 0; i < s->n_indexes; i++) {
		if (!is_plain(&s->indexes[i])) {
			cJSON *json = cJSON_CreateObject();

			fields_encode(json, index_fields, &s->indexes[i]);
			cJSON_AddItemToArray(list, json);
		}
	}
}

/* Ranges are in ascending order; decoding stops at any other text. */
static void decode_ranges(struct job_status *s, const char *task, const char *at)
{
	for (long from, to, last = -1; isdigit((unsigned char)*at); last = to) {
		char *end;

		from = to = strtol(at, &end, 10);
		if (*end == '-')
			to = strtol(end + 1, &end, 10);
		if (from <= last || to < from || to >= JOB_MAX_REPLICAS)
			return;
		for (int i = (int)from; i <= to; i++) {
			struct index_status *e = index_status_get_or_add(s, task, i);

			e->done = true;
			e->attempts = 1;
			e->exit_code = 0;
			snprintf(e->reason, sizeof(e->reason), "Completed");
		}
		if (*end != ',')
			return;
		at = end + 1;
	}
}

static void decode_completed(struct job_status *s, const cJSON *map)
{
	const cJSON *item;
	unsigned tasks = 0;

	cJSON_ArrayForEach(item, map)
	{
		if (!cJSON_IsString(item) || !item->string || !*item->string ||
		    strlen(item->string) > JOB_MAX_NAME || tasks++ == JOB_MAX_TASKS)
			return;
		decode_ranges(s, item->string, item->valuestring);
	}
}

static bool same_task(const struct index_status *a, const struct index_status *b)
{
	return strcmp(a->task, b->task) == 0;
}

/* {"worker":"0-3,7"}.  One entry for each of a thousand workers would be 200 KB in each write. */
static void encode_completed(cJSON *map, const struct job_status *s)
{
	const struct index_status *e = s->indexes, *end = e + s->n_indexes, *last;
	MU_AUTO_BUF ranges = {0};

	for (; e < end; e = last + 1) {
		last = e;
		if (is_plain(e)) {
			while (last + 1 < end && is_plain(last + 1) && same_task(e, last + 1) &&
			       last[1].index == last->index + 1)
				last++;
			mu_buf_printf(&ranges, "%s%d", ranges.len ? "," : "", e->index);
		}
		if (last > e)
			mu_buf_printf(&ranges, "-%d", last->index);
		if (ranges.len && (last + 1 == end || !same_task(e, last + 1))) {
			cJSON_AddStringToObject(map, e->task, ranges.data);
			mu_buf_clear(&ranges);
		}
	}
}

/* ---- progress ---- */

void progress_report_decode(struct progress_report *out, const cJSON *report)
{
	struct progress_report p = {.step = -1,
				    .steps_per_second = NAN,
				    .examples_per_second = NAN,
				    .loss = NAN,
				    .accuracy = NAN};

	fields_decode(report, progress_fields, &p);
	p.set = p.step >= 0;
	p.target = p.target > 0 ? p.target : 0;
	*out = p.set ? p : (struct progress_report){0};
}

void progress_report_parse(struct progress_report *out, const char *text)
{
	cJSON *json = NULL;

	if (text)
		mu_json_tree(&json, mu_span_of(text), "progress", NULL);
	progress_report_decode(out, json);
	cJSON_Delete(json);
}

static cJSON *encode_progress(const struct progress_report *p)
{
	double done = p->target > 0 ? (double)p->step / (double)p->target : 0;
	cJSON *json = cJSON_CreateObject();
	char percent[16];

	fields_encode(json, progress_fields, p);
	snprintf(percent, sizeof(percent), "%d%%", done > 1 ? 100 : (int)(done * 100));
	if (p->target > 0)
		cJSON_AddStringToObject(json, "percent", percent);
	return json;
}

bool progress_report_same(const struct progress_report *a, const struct progress_report *b)
{
	cJSON *x = encode_progress(a), *y = encode_progress(b);
	bool same = a->set == b->set && cJSON_Compare(x, y, true);

	cJSON_Delete(x);
	cJSON_Delete(y);
	return same;
}

/* ---- the whole status ---- */

/* "3/3", the kernels in use and the problem, for the columns of kubectl get. */
static void encode_summary(cJSON *json, const struct job_status *s)
{
	const struct condition *trouble = job_status_trouble(s);
	MU_AUTO_BUF kernels = {0};
	int ready = 0, desired = 0;
	char text[32];

	for (unsigned i = 0; i < s->n_tasks; i++) {
		const struct task_status *t = &s->tasks[i];
		bool is_listed = !t->kernels[0];

		if (strcmp(t->name, JOB_TENSORBOARD) == 0)
			continue;
		ready += t->ready;
		desired += t->desired;
		for (unsigned j = 0; j < i; j++)
			is_listed = is_listed || strcmp(s->tasks[j].kernels, t->kernels) == 0;
		if (!is_listed)
			mu_buf_printf(&kernels, "%s%s", kernels.len ? "," : "", t->kernels);
	}
	snprintf(text, sizeof(text), "%d/%d", ready, desired);
	cJSON_AddStringToObject(json, "ready", text);
	if (kernels.len)
		cJSON_AddStringToObject(json, "kernels", kernels.data);
	if (trouble && *trouble->message)
		cJSON_AddStringToObject(json, "message", trouble->message);
}

void job_status_decode(struct job_status *out, const cJSON *status)
{
	const cJSON *item, *tasks = at(status, "tasks");
	struct job_status s = {0};

	fields_decode(status, status_fields, &s);
	cJSON_ArrayForEach(item, at(status, "conditions"))
	{
		decode_condition(&s, item);
	}
	cJSON_ArrayForEach(item, tasks)
	{
		decode_task(&s, item);
	}
	decode_completed(&s, at(status, "completedIndexes"));
	cJSON_ArrayForEach(item, at(status, "indexStatuses"))
	{
		decode_index(&s, item);
	}
	progress_report_decode(&s.progress, at(status, "progress"));
	*out = s;
}

cJSON *job_status_encode(const struct job_status *s)
{
	cJSON *json = cJSON_CreateObject(), *tasks;

	fields_encode(json, status_fields, s);
	encode_conditions(cJSON_AddArrayToObject(json, "conditions"), s);
	tasks = cJSON_AddObjectToObject(json, "tasks");
	for (unsigned i = 0; i < s->n_tasks; i++)
		fields_encode(cJSON_AddObjectToObject(tasks, s->tasks[i].name), task_fields,
			      &s->tasks[i]);
	encode_index_statuses(cJSON_AddArrayToObject(json, "indexStatuses"), s);
	encode_completed(cJSON_AddObjectToObject(json, "completedIndexes"), s);
	if (s->progress.set)
		cJSON_AddItemToObject(json, "progress", encode_progress(&s->progress));
	encode_summary(cJSON_AddObjectToObject(json, "summary"), s);
	return json;
}

cJSON *job_status_patch(const struct job_status *from, const struct job_status *to)
{
	cJSON *old = job_status_encode(from), *new = job_status_encode(to);
	cJSON *patch = mu_json_merge_patch(old, new);

	cJSON_Delete(old);
	if (patch && from->phase == JOB_NEW) { /* write all fields, also counts of 0 */
		cJSON_Delete(patch);
		return new;
	}
	cJSON_Delete(new);
	return patch;
}
