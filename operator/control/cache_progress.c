/* SPDX-License-Identifier: Apache-2.0 */
/* How far jobs are: what tasks say, on being asked or as their last words; and the metrics page. */
#include <math.h>
#include <stdio.h>

#include "operator/control/cache.h"

enum { SILENCE_FIRST_S = 5, SILENCE_MAX_S = 60 };

static const char *const numbers[] = {"step", "targetStep", "stepsPerSecond", "examplesPerSecond",
				      "loss", "accuracy"};
static const char *const texts[] = {"lastCheckpoint", "eta"};
enum { TEXT_MAX = 200 };

static const cJSON *at(const cJSON *object, const char *key)
{
	return cJSON_GetObjectItemCaseSensitive(object, key);
}

char *progress_read(const cJSON *said)
{
	const cJSON *step = at(said, "step"), *target = at(said, "targetStep");
	cJSON *kept;
	char *text, percent[16];

	if (!cJSON_IsNumber(step) || !isfinite(step->valuedouble) || step->valuedouble < 0)
		return NULL;
	kept = cJSON_CreateObject();
	for (unsigned i = 0; i < MU_COUNT(numbers); i++) {
		const cJSON *n = at(said, numbers[i]);
		if (cJSON_IsNumber(n) && isfinite(n->valuedouble))
			cJSON_AddNumberToObject(kept, numbers[i], n->valuedouble);
	}
	for (unsigned i = 0; i < MU_COUNT(texts); i++) {
		const char *s = cJSON_GetStringValue(at(said, texts[i]));
		if (s && strlen(s) < TEXT_MAX)
			cJSON_AddStringToObject(kept, texts[i], s);
	}
	if (cJSON_IsNumber(target) && target->valuedouble > 0) {
		double part = step->valuedouble / target->valuedouble;
		snprintf(percent, sizeof(percent), "%d%%", part > 1 ? 100 : (int)(part * 100));
		cJSON_AddStringToObject(kept, "percent", percent);
	}
	text = cJSON_PrintUnformatted(kept);
	cJSON_Delete(kept);
	return text;
}

static bool can_be_asked(const struct cached_pod *p)
{
	return p->phase == POD_RUNNING && !p->deleting && p->ip;
}

static bool has_said(const struct cached_pod *p)
{
	return p->said != NULL;
}

/* The pod that decides the job: chief 0, or worker 0. */
static struct cached_pod *chief_of(const struct cached_job *job,
				   bool (*fits)(const struct cached_pod *p))
{
	struct cached_pod *worker = NULL;

	for (struct cached_pod *p = job->pods; p; p = p->next) {
		if (p->index != 0 || strcmp(p->owner, job->uid) != 0 || !fits(p))
			continue;
		if (strcmp(p->task, "chief") == 0)
			return p;
		if (strcmp(p->task, "worker") == 0)
			worker = p;
	}
	return worker;
}

struct cache_chief *cache_chiefs(struct cache *c, double now, unsigned *n)
{
	struct cache_chief *out;

	*n = 0;
	pthread_mutex_lock(&c->lock);
	out = MU_NEW_ARRAY(struct cache_chief, c->jobs.count + 1);
	mu_map_each (&c->jobs, s) {
		const struct cached_job *job = s->value;
		const struct cached_pod *p = job->text ? chief_of(job, can_be_asked) : NULL;
		/* a clock that was set back must not silence anybody */
		if (!p || (now < p->ask_after && p->ask_after - now <= SILENCE_MAX_S))
			continue;
		out[*n].key = mu_xstrdup(job->key);
		out[*n].ip = mu_xstrdup(p->ip);
		out[(*n)++].pod_uid = mu_xstrdup(p->uid);
	}
	pthread_mutex_unlock(&c->lock);
	return out;
}

void cache_chief_silent(struct cache *c, const struct cache_chief *chief, double now)
{
	struct cached_job *job;

	pthread_mutex_lock(&c->lock);
	job = mu_map_get(&c->jobs, chief->key);
	for (struct cached_pod *p = job ? job->pods : NULL; p; p = p->next) {
		double wait;

		if (strcmp(p->uid, chief->pod_uid) != 0)
			continue;
		wait = ldexp(SILENCE_FIRST_S, p->silent < 8 ? (int)p->silent : 8);
		p->silent++;
		p->ask_after = now + fmin(wait, SILENCE_MAX_S);
	}
	pthread_mutex_unlock(&c->lock);
}

void cache_last_words(struct cached_job *job, double now)
{
	const struct cached_pod *p = chief_of(job, has_said);

	if (!p || (job->progress && strcmp(job->progress, p->said) == 0))
		return;
	free(job->progress);
	job->progress = mu_xstrdup(p->said);
	job->progress_at = now;
}

void cache_chiefs_free(struct cache_chief *chiefs, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		free(chiefs[i].key);
		free(chiefs[i].ip);
		free(chiefs[i].pod_uid);
	}
	free(chiefs);
}

bool cache_set_progress(struct cache *c, const struct cache_chief *chief, const char *json,
			const char *kernels, double now)
{
	struct cached_job *job;
	bool differs = false;

	pthread_mutex_lock(&c->lock);
	job = mu_map_get(&c->jobs, chief->key);
	if (job && json && (!job->progress || strcmp(job->progress, json) != 0)) {
		free(job->progress);
		job->progress = mu_xstrdup(json);
		job->progress_at = now;
		differs = true;
	}
	for (struct cached_pod *p = job ? job->pods : NULL; p; p = p->next) {
		if (strcmp(p->uid, chief->pod_uid) != 0)
			continue;
		p->silent = 0;
		p->ask_after = 0;
		if (!kernels || strncmp(p->kernels, kernels, sizeof(p->kernels) - 1) == 0)
			continue;
		snprintf(p->kernels, sizeof(p->kernels), "%s", kernels);
		differs = true;
	}
	pthread_mutex_unlock(&c->lock);
	return differs;
}

unsigned cache_count(struct cache *c)
{
	unsigned n;

	pthread_mutex_lock(&c->lock);
	n = (unsigned)c->jobs.count;
	pthread_mutex_unlock(&c->lock);
	return n;
}

void cache_metrics(struct cache *c, struct mu_buf *out)
{
	unsigned counts[JOB_FAILED + 1] = {0}, pods = 0;

	pthread_mutex_lock(&c->lock);
	mu_map_each (&c->jobs, s) {
		const struct cached_job *job = s->value;
		if (job->text)
			counts[job->phase]++;
		for (const struct cached_pod *p = job->pods; p; p = p->next)
			pods++;
	}
	pthread_mutex_unlock(&c->lock);
	mu_buf_puts(out, "# TYPE muster_jobs gauge\n");
	for (int i = 0; i <= JOB_FAILED; i++)
		mu_buf_printf(out, "muster_jobs{phase=\"%s\"} %u\n",
			      job_phase_names[i][0] ? job_phase_names[i] : "New", counts[i]);
	mu_buf_printf(out, "# TYPE muster_pods gauge\nmuster_pods %u\n", pods);
}
