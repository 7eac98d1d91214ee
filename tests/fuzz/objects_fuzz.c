/* SPDX-License-Identifier: Apache-2.0 */
/* Parses each line of the input as an object that an untrusted user may create.  The store receives
 * it as a job, a pod, a service, a pod group and a node.  Then each job is read and planned. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/kube/kube_stream.h"
#include "operator/controller/store.h"
#include "operator/plan/job_plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct keys {
	char *list[64];
	unsigned n;
};
static struct keys keys;

static void on_change(void *arg, const char *key, enum object_kind kind)
{
	if (keys.n < MU_COUNT(keys.list))
		keys.list[keys.n++] = mu_xstrdup(key);
}

static int receive_line(void *store, const char *text, size_t len, struct mu_err *err)
{
	for (int i = 0; i < KINDS; i++) {
		struct store_watch watch = {store, i, NULL};
		cJSON *o = kube_json((struct mu_span){text, len});
		enum kube_change change = KUBE_ADDED;
		const cJSON *object = o;

		if (!o)
			continue;
		if (kube_event_read(o, &change, &object, err) < 0)
			object = o;
		(change == KUBE_DELETED ? store_object_gone : store_object_seen)(&watch, object);
		cJSON_Delete(o);
	}
	return 0;
}

static void plan_job(struct store *c, const char *key)
{
	static const struct plan_options options = {.image = "i"};
	struct snapshot s;

	if (snapshot_take(c, key, 1e9, &s) && s.job->spec)
		job_plan_free(job_plan_new(s.job->spec, &options, &s.observed, 1e9));
	snapshot_fini(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct store c;
	struct kube_lines lines = {.line = receive_line, .arg = &c};

	store_init(&c, on_change, NULL);
	kube_lines_feed(&lines, (const char *)data, size, NULL);
	kube_lines_feed(&lines, "\n", 1, NULL);
	mu_buf_fini(&lines.rest);
	for (unsigned i = 0; i < keys.n; i++) {
		plan_job(&c, keys.list[i]);
		free(keys.list[i]);
	}
	keys.n = 0;
	store_fini(&c);
	return 0;
}
