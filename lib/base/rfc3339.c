/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/rfc3339.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static const double end_of_9999 = 253402300800.0; /* 10000-01-01 */

bool mu_rfc3339_write(char out[MU_RFC3339], double seconds)
{
	struct tm tm;

	out[0] = '\0';
	if (!(seconds >= 0 && seconds < end_of_9999))
		return false;
	time_t whole = (time_t)seconds;
	return gmtime_r(&whole, &tm) && strftime(out, MU_RFC3339, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

void mu_rfc3339_write_micro(char out[MU_RFC3339], double seconds)
{
	size_t n;

	if (!mu_rfc3339_write(out, seconds))
		mu_rfc3339_write(out, seconds = 0);
	n = strlen(out) - 1; /* without the Z */
	snprintf(out + n, MU_RFC3339 - n, ".%06dZ",
		 (int)((seconds - (double)(time_t)seconds) * 1e6));
}

double mu_rfc3339_read(const char *text)
{
	static const char pattern[] = "0000-00-00T00:00:00";
	double fraction = 0, digit_value = 0.1;
	struct tm tm = {0};

	if (!text || strnlen(text, sizeof(pattern)) < sizeof(pattern) - 1)
		return 0;
	for (unsigned i = 0; i < sizeof(pattern) - 1; i++)
		if (pattern[i] == '0' ? text[i] < '0' || text[i] > '9' : text[i] != pattern[i])
			return 0;
	text = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
	if (!text || tm.tm_sec > 60) /* 60: a leap second */
		return 0;
	if (*text == '.')
		for (text++; *text >= '0' && *text <= '9'; text++, digit_value /= 10)
			fraction += (*text - '0') * digit_value;
	return fraction + (double)timegm(&tm);
}
