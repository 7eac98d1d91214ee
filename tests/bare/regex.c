/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions in programs that are built without PCRE2: see stubs.c. */
#include "task/kernels/text/regex.h"

int regex_new(struct regex **out, const char *pattern, bool whole, struct mu_err *err)
{
	return mu_fail(err, MU_UNIMPLEMENTED, "this program is built without PCRE2");
}

void regex_free(struct regex *re)
{
}

unsigned regex_n_groups(const struct regex *re)
{
	return 0;
}

int regex_match(struct regex *re, struct mu_span text, size_t from, size_t groups[REGEX_GROUPS][2],
		struct mu_err *err)
{
	return 0;
}
