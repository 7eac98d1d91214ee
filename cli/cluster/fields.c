/* SPDX-License-Identifier: Apache-2.0 */
/* Values of objects that others have written: what is missing or of another kind has a default. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/cluster/cluster.h"
#include "lib/base/rfc3339.h"

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

const char *field_text(const cJSON *object, const char *path, const char *otherwise)
{
	const char *text = cJSON_GetStringValue(field_at(object, path));

	return text ? text : otherwise;
}

double field_number(const cJSON *object, const char *path, double otherwise)
{
	const cJSON *n = field_at(object, path);

	return cJSON_IsNumber(n) && isfinite(n->valuedouble) ? n->valuedouble : otherwise;
}

const char *field_age(const cJSON *object, const char *path, double now, char out[16])
{
	double at = mu_rfc3339_read(field_text(object, path, ""));
	long s, most = 100000L * 86400;

	snprintf(out, 16, "?");
	if (at <= 0)
		return out;
	s = (long)(now - at);
	s = s < 0 ? 0 : s > most ? most : s;
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

void put_safe(struct mu_buf *out, const char *text)
{
	for (; *text; text++)
		mu_buf_putc(out, (unsigned char)*text < ' ' || *text == 127 ? ' ' : *text);
}
