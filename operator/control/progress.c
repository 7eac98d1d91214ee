/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the chief of each running job how far it is: GET /status on its HTTP port.
 *
 * One thread, one request at a time, a second each at most; with many jobs a round simply takes
 * longer.  A chief that does not answer, since its program has no such page, is asked less and less
 * often.  One that ends may leave its last word in its container's message (pod_record.c).
 */
#include <stdio.h>

#include "operator/control/control.h"

static const cJSON *at(const cJSON *object, const char *key)
{
	return cJSON_GetObjectItemCaseSensitive(object, key);
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
	text = progress_read(cJSON_IsObject(progress) ? progress : said);
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
