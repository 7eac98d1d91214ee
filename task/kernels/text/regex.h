/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions as RE2 has them (leftmost-first, UTF-8), matched by PCRE2.
 *
 * A pattern is checked and translated first: what RE2 does not know (back-references, look-around,
 * possessive repetition, verbs) is INVALID_ARGUMENT, and what means something else in PCRE2 (\v,
 * \s, names, octal) is rewritten.  PCRE2 backtracks where RE2 does not: a match takes a bounded
 * number of steps, then ends with RESOURCE_EXHAUSTED. */
#ifndef MU_TASK_KERNELS_TEXT_REGEX_H
#define MU_TASK_KERNELS_TEXT_REGEX_H

#include "lib/base/buf.h"

enum { REGEX_GROUPS = 10 }; /* \0 to \9 */

struct regex;
/* whole: it matches all of a text or nothing. */
int regex_new(struct regex **out, const char *pattern, bool whole, struct mu_err *err);
void regex_free(struct regex *re);
MU_AUTO_DEFINE(regex_free, struct regex)
unsigned regex_n_groups(const struct regex *re); /* without the whole match */
/* The first match at or behind `from`, which is 0 for the first call with a text: 1 and groups[i] =
 * {begin, end} (SIZE_MAX: did not take part), 0 when there is none, or an error. */
int regex_match(struct regex *re, struct mu_span text, size_t from, size_t groups[REGEX_GROUPS][2],
		struct mu_err *err);

#endif
