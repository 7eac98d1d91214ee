/* SPDX-License-Identifier: Apache-2.0 */
/* Reads values of untrusted objects. A missing value, or one of another type, is replaced by a
 * default. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/cluster/cluster.h"
#include "lib/base/rfc3339.h"
#include "operator/api/object_json.h"

const cJSON *field_at(const cJSON *object, const char *path)
{
	char key[64];

	while (object && *path) {
		size_t n = strcspn(path, ".");
		snprintf(key, sizeof(key), "%.*s", (int)n, path);
		object = cJSON_GetObjectItemCaseSensitive(object, key);
		path += path[n] ? n + 1 : n;
	}
	return object;
}

const char *field_text(const cJSON *object, const char *path, const char *default_value)
{
	const char *text = cJSON_GetStringValue(field_at(object, path));

	return text ? text : default_value;
}

double field_number(const cJSON *object, const char *path, double default_value)
{
	const cJSON *n = field_at(object, path);

	return cJSON_IsNumber(n) && isfinite(n->valuedouble) ? n->valuedouble : default_value;
}

/* Returns the value without its fraction, or `otherwise` if its magnitude is 1e15 or more. */
static int64_t whole_number(const cJSON *object, const char *path, int64_t default_value)
{
	double n = field_number(object, path, (double)default_value);

	return n > -1e15 && n < 1e15 ? (int64_t)n : default_value;
}

void field_progress(const cJSON *job, struct job_progress *out)
{
	const cJSON *p = field_at(job, "status.progress");

	*out = (struct job_progress){
	    .step = whole_number(p, "step", -1),
	    .target = whole_number(p, "targetStep", 0),
	    .loss = field_number(p, "loss", NAN),
	    .steps_per_second = field_number(p, "stepsPerSecond", NAN),
	    .examples_per_second = field_number(p, "examplesPerSecond", NAN),
	};
}

const char *field_age(const cJSON *object, const char *path, double now, char out[16])
{
	double at = mu_rfc3339_read(field_text(object, path, ""));
	long s, max_age_s = 100000L * 86400;

	snprintf(out, 16, "?");
	if (at <= 0)
		return out;
	s = (long)(now - at);
	s = s < 0 ? 0 : s > max_age_s ? max_age_s : s;
	if (s < 120)
		snprintf(out, 16, "%lds", s);
	else if (s < 7200)
		snprintf(out, 16, "%ldm", s / 60);
	else if (s < 2 * 86400)
		snprintf(out, 16, "%ldh%ldm", s / 3600, s % 3600 / 60);
	else
		snprintf(out, 16, "%ldd", s / 86400);
	return out;
}

const char *pod_waiting_reason(const cJSON *pod, const char **message)
{
	const cJSON *c;

	cJSON_ArrayForEach(c, field_at(pod, "status.containerStatuses"))
	{
		const char *reason = field_text(c, "state.waiting.reason", NULL);
		if (!reason)
			continue;
		*message = field_text(c, "state.waiting.message", "");
		return reason;
	}
	c = item_with(field_at(pod, "status.conditions"), "type", "PodScheduled");
	if (strcmp(field_text(c, "status", ""), "False") == 0) {
		*message = field_text(c, "message", "");
		return field_text(c, "reason", "Unscheduled");
	}
	*message = "";
	return strcmp(field_text(pod, "status.phase", ""), "Pending") == 0 ? "Pending" : NULL;
}
