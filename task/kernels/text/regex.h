/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions with the syntax and semantics of RE2 (leftmost-first, UTF-8), matched by
 * PCRE2.
 *
 * regex_new checks and translates a pattern.  Syntax that RE2 does not have (back-references,
 * look-around, possessive repetition, verbs) is INVALID_ARGUMENT.  Syntax with another meaning in
 * PCRE2 (\v, \s, names, octal) is rewritten.  PCRE2 backtracks, RE2 does not: a match that exceeds
 * the limit of steps ends with RESOURCE_EXHAUSTED. */
#ifndef MU_TASK_KERNELS_TEXT_REGEX_H
#define MU_TASK_KERNELS_TEXT_REGEX_H

#include "lib/base/buf.h"

enum { REGEX_GROUPS = 10 }; /* \0 to \9 */

struct regex;
/* full_match: only the whole text matches. */
int regex_new(struct regex **out, const char *pattern, bool full_match, struct mu_err *err);
void regex_free(struct regex *re);
MU_AUTO_DEFINE(regex_free, struct regex)
unsigned regex_n_groups(const struct regex *re); /* without the whole match */
/* Finds the first match at or after `from`, which is 0 in the first call for a text.  Returns 1 and
 * groups[i] = {begin, end} (SIZE_MAX: the group did not match), 0 without a match, or an error. */
int regex_match(struct regex *re, struct mu_span text, size_t from, size_t groups[REGEX_GROUPS][2],
		struct mu_err *err);

#endif
