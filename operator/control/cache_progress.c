/* SPDX-License-Identifier: Apache-2.0 */
/* The cache's small doors for the progress poller and the metrics page. */
#include <math.h>
#include <stdio.h>

#include "operator/control/cache.h"

enum { SILENCE_FIRST_S = 5, SILENCE_MAX_S = 60 };

/* The pod that decides the job: chief 0, or worker 0. */
static const struct cached_pod *chief_of(const struct cached_job *job)
{
	const struct cached_pod *worker = NULL;

	for (const struct cached_pod *p = job->pods; p; p = p->next) {
		if (p->index != 0 || p->phase != POD_RUNNING || p->deleting || !p->ip ||
		    strcmp(p->owner, job->uid) != 0)
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
		const struct cached_pod *p = job->text ? chief_of(job) : NULL;
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
