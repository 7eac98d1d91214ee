/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the chief of each running job how far it is: GET /status on its HTTP port.
 *
 * One thread, one request at a time, a second each at most; with many jobs a round simply takes
 * longer.  What comes back is a stranger's JSON: only known keys of the right kind are kept.  A
 * chief that does not answer, since its program has no such page, is asked less and less often.
 */
#include <math.h>
#include <stdio.h>

#include "operator/control/control.h"

static const char *const numbers[] = {"step", "targetStep", "stepsPerSecond", "examplesPerSecond",
				      "loss", "accuracy"};
static const char *const texts[] = {"lastCheckpoint", "eta"};
enum { TEXT_MAX = 200 };

static const cJSON *at(const cJSON *object, const char *key)
{
	return cJSON_GetObjectItemCaseSensitive(object, key);
}

/* The known part of what a task says, as text; NULL when it says no step. */
static char *read_progress(const cJSON *said)
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

static void ask(struct control *c, const struct cache_chief *chief)
{
	MU_AUTO_BUF body = {0};
	char url[128];
	cJSON *said;
	const cJSON *progress;
	char *text;

	snprintf(url, sizeof(url),
		 strchr(chief->ip, ':') ? "http://[%.64s]:%d/status" : "http://%.64s:%d/status",
		 chief->ip, JOB_DEFAULT_HTTP_PORT);
	if (kube_fetch(c->kube, url, &body, NULL) < 0 || !body.len) {
		cache_chief_silent(&c->cache, chief, c->io.now(c->io.user));
		return;
	}
	said = cJSON_ParseWithLength(body.data, body.len);
	progress = at(said, "progress");
	text = read_progress(cJSON_IsObject(progress) ? progress : said);
	if (cache_set_progress(&c->cache, chief, text, cJSON_GetStringValue(at(said, "kernels")),
			       c->io.now(c->io.user)))
		workqueue_add(&c->queue, chief->key);
	free(text);
	cJSON_Delete(said);
}

void *progress_run(void *control)
{
	struct control *c = control;

	while (!kube_client_stopped(c->kube)) {
		if (leader_may_write(c)) {
			unsigned n;
			struct cache_chief *chiefs =
			    cache_chiefs(&c->cache, c->io.now(c->io.user), &n);
			for (unsigned i = 0; i < n && !kube_client_stopped(c->kube); i++)
				ask(c, &chiefs[i]);
			cache_chiefs_free(chiefs, n);
		}
		kube_client_sleep(c->kube, c->options.progress_seconds);
	}
	return NULL;
}
