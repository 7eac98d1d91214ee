/* SPDX-License-Identifier: Apache-2.0 */
/* Years begin in March here, so that a leap day is the last day of its year.  400 years always have
 * the same number of days. */
#include "lib/base/rfc3339.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum {
	DAY_S = 86400,
	ERA_YEARS = 400,
	ERA_DAYS = 146097,
	EPOCH_DAYS = 719468, /* from 0000-03-01 to 1970-01-01 */
};
static const double end_of_9999 = 253402300800.0; /* 10000-01-01 */

static int64_t days_of(int year, int month, int day)
{
	int y = month <= 2 ? year - 1 : year, of_era = y % ERA_YEARS;
	int of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;

	return (int64_t)(y / ERA_YEARS) * ERA_DAYS + of_era * 365 + of_era / 4 - of_era / 100 +
	       of_year - EPOCH_DAYS;
}

static void put_digits(char *to, int digits, int number)
{
	for (; digits; number /= 10)
		to[--digits] = (char)('0' + number % 10);
}

bool mu_rfc3339_write(char out[MU_RFC3339], double seconds)
{
	int64_t whole, days;
	int left, era, of_era, year, of_year, month;

	out[0] = '\0';
	if (!(seconds >= 0 && seconds < end_of_9999))
		return false;
	whole = (int64_t)seconds;
	days = whole / DAY_S + EPOCH_DAYS;
	left = (int)(whole % DAY_S);
	era = (int)(days / ERA_DAYS);
	of_era = (int)(days % ERA_DAYS);
	year = (of_era - of_era / 1460 + of_era / 36524 - of_era / (ERA_DAYS - 1)) / 365;
	of_year = of_era - (365 * year + year / 4 - year / 100);
	month = (5 * of_year + 2) / 153;
	year += era * ERA_YEARS + (month >= 10);
	memcpy(out, "0000-00-00T00:00:00Z", sizeof("0000-00-00T00:00:00Z"));
	put_digits(out, 4, year);
	put_digits(out + 5, 2, month < 10 ? month + 3 : month - 9);
	put_digits(out + 8, 2, of_year - (153 * month + 2) / 5 + 1);
	put_digits(out + 11, 2, left / 3600);
	put_digits(out + 14, 2, left / 60 % 60);
	put_digits(out + 17, 2, left % 60);
	return true;
}

void mu_rfc3339_write_clock(char out[MU_RFC3339], double seconds)
{
	if (!mu_rfc3339_write(out, seconds))
		mu_rfc3339_write(out, 0);
}

void mu_rfc3339_write_micro(char out[MU_RFC3339], double seconds)
{
	size_t n;

	if (!mu_rfc3339_write(out, seconds))
		mu_rfc3339_write(out, seconds = 0);
	n = strlen(out) - 1; /* without the Z */
	snprintf(out + n, MU_RFC3339 - n, ".%06dZ",
		 (int)((seconds - (double)(int64_t)seconds) * 1e6));
}

static int take_digits(const char *from, int digits)
{
	int number = 0;

	for (; digits; digits--)
		number = number * 10 + (*from++ - '0');
	return number;
}

double mu_rfc3339_read(const char *text)
{
	static const char form[] = "0000-00-00T00:00:00";
	int year, month, day, hour, minute, second;
	double fraction = 0, place = 0.1;

	if (!text || strnlen(text, sizeof(form)) < sizeof(form) - 1)
		return 0;
	for (unsigned i = 0; i < sizeof(form) - 1; i++)
		if (form[i] == '0' ? text[i] < '0' || text[i] > '9' : text[i] != form[i])
			return 0;
	year = take_digits(text, 4);
	month = take_digits(text + 5, 2);
	day = take_digits(text + 8, 2);
	hour = take_digits(text + 11, 2);
	minute = take_digits(text + 14, 2);
	second = take_digits(text + 17, 2);
	if (month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 || minute > 59 ||
	    second > 60) /* a leap second */
		return 0;
	text += sizeof(form) - 1;
	if (*text == '.')
		for (text++; *text >= '0' && *text <= '9'; text++, place /= 10)
			fraction += (*text - '0') * place;
	return fraction +
	       (double)(days_of(year, month, day) * DAY_S + hour * 3600 + minute * 60 + second);
}
