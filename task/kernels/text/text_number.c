/* SPDX-License-Identifier: Apache-2.0 */
#include "task/kernels/text/text_number.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

bool text_number(struct mu_span text, enum mu_dtype type, void *data, int64_t at)
{
	const char *from = text.data, *till = text.data + text.len;
	char small[64], *start = small, *stop, *end;
	MU_AUTO_FREE char *large = NULL;
	long long i = 0;
	double d = 0;
	float f = 0;

	while (from < till && isspace((unsigned char)*from))
		from++;
	if (from == till)
		return false;
	/* Copies the text to end it with NUL, because digits may follow it in memory. */
	size_t n = (size_t)(till - from);
	if (n >= sizeof small && !(start = large = malloc(n + 1)))
		return false;
	memcpy(start, from, n);
	start[n] = '\0';
	stop = start;
	end = start + n;
	errno = 0;
	if (type == MU_FLOAT)
		f = strtof(start, &stop);
	else if (type == MU_DOUBLE)
		d = strtod(start, &stop);
	else
		i = strtoll(start, &stop, 10);
	bool whole = type == MU_INT32 || type == MU_INT64;
	if (stop == start || (whole && errno == ERANGE) ||
	    (type == MU_INT32 && (i < INT32_MIN || i > INT32_MAX)))
		return false;
	while (stop < end && isspace((unsigned char)*stop))
		stop++;
	if (stop != end)
		return false;
	if (type == MU_FLOAT)
		((float *)data)[at] = f;
	else if (type == MU_DOUBLE)
		((double *)data)[at] = d;
	else if (type == MU_INT32)
		((int32_t *)data)[at] = (int32_t)i;
	else if (type == MU_INT64)
		((int64_t *)data)[at] = i;
	else
		return false;
	return true;
}
