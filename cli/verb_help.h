/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of the manual pages of the verbs, in addition to the table of verbs. */
#ifndef MU_CLI_VERB_HELP_H
#define MU_CLI_VERB_HELP_H

struct verb_option {
	const char *verb, *option, *description;
};
extern const struct verb_option verb_options[]; /* ends with a row of NULL */

struct verb_text {
	const char *verb, *text, *status, *example; /* status, example: NULL */
};
extern const struct verb_text verb_texts[]; /* ends with a row of NULL */

#endif
