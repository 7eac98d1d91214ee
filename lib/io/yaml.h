/* SPDX-License-Identifier: Apache-2.0 */
/* Parses YAML with kubectl's rules for scalars: plain yes/no/on/off are booleans.
 *
 * Anchors, aliases and merge keys (<<) are expanded.  The expanded nodes count against the limits
 * of doc.h, so a small file cannot become a huge tree.  Tags other than the core tags are errors.
 *
 * mu_json_parse parses a text that begins with '{' and is JSON; libyaml adds the line numbers.
 */
#ifndef MU_LIB_IO_YAML_H
#define MU_LIB_IO_YAML_H

#include "lib/io/doc.h"

enum { MU_YAML_MAX_DOCS = 1000 };

/* Returns the documents of a stream that are not empty.  Free each, then the array. */
int mu_yaml_parse_all(struct mu_doc ***out, unsigned *n, struct mu_span text, const char *source,
		      struct mu_err *err);
/* Requires exactly one document. */
int mu_yaml_parse(struct mu_doc **out, struct mu_span text, const char *source, struct mu_err *err);

#endif
