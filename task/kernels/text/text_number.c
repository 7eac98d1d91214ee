/* SPDX-License-Identifier: Apache-2.0 */
#include "task/kernels/text/text_number.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { FLOAT_MAX_BYTES = 31 }; /* as in TensorFlow, spaces included */

/* Parses a number with strtod.  As in TensorFlow, hexadecimal fractions and exponents, `infinity`
 * and `nan(…)` are invalid. */
static bool read_float(struct mu_span s, enum mu_dtype type, double *double_out, float *float_out)
{
	char text[FLOAT_MAX_BYTES + 1] = {0}, *stop = text;
	size_t n = 0;

	memcpy(text, s.data, s.len);
	n += text[0] == '+' || text[0] == '-';
	if (strpbrk(text, text[n] == '0' && tolower(text[n + 1]) == 'x' ? ".pP" : "(yY"))
		return false;
	if (type == MU_FLOAT)
		*float_out = strtof(text, &stop);
	else
		*double_out = strtod(text, &stop);
	return s.len && stop == text + s.len;
}

static bool read_int(struct mu_span s, int64_t *out)
{
	bool negative = s.len && s.data[0] == '-';

	*out = 0;
	for (size_t i = negative; i < s.len; i++) {
		int digit = s.data[i] - '0';
		if (digit < 0 || digit > 9 || __builtin_mul_overflow(*out, 10, out) ||
		    __builtin_add_overflow(*out, negative ? -digit : digit, out))
			return false;
	}
	return s.len > negative;
}

bool text_number(struct mu_span text, enum mu_dtype type, void *data, int64_t at)
{
	struct mu_span s = text;
	double d = 0;
	float f = 0;
	int64_t i = 0;

	while (s.len && isspace((unsigned char)s.data[s.len - 1]))
		s.len--;
	for (; s.len && isspace((unsigned char)*s.data); s.data++)
		s.len--;
	if (type == MU_INT32 || type == MU_INT64) {
		if (!read_int(s, &i) || (type == MU_INT32 && (i < INT32_MIN || i > INT32_MAX)))
			return false;
	} else if (!text.len || text.len > FLOAT_MAX_BYTES ||
		   (s.len && !read_float(s, type, &d, &f))) { /* a blank is 0 */
		return false;
	}
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
