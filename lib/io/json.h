/* SPDX-License-Identifier: Apache-2.0 */
/* JSON text to a document and back. */
#ifndef MU_IO_JSON_H
#define MU_IO_JSON_H

#include "lib/io/doc.h"

/* `source` names the text in errors.  Trailing text, duplicate keys, NUL characters (also as
 * \u0000), too deep and too large are INVALID_ARGUMENT.  Nodes have no line: for a file that a
 * user wrote, mu_yaml_parse reads JSON too.
 *
 * cJSON reads numbers as doubles: whole numbers from 2^53 on are FLOAT.  Looser than the standard,
 * it accepts 01, 1. and -.5, and line breaks inside of strings. */
int mu_json_parse(struct mu_doc **out, struct mu_span text, const char *source, struct mu_err *err);

void mu_json_write(struct mu_buf *out, const struct mu_doc_node *n); /* one line */
void mu_json_quote(struct mu_buf *out, struct mu_span text);         /* "…", escaped */
void mu_json_put_int(struct mu_buf *out, int64_t n);
void mu_json_put_float(struct mu_buf *out, double v); /* reads back the same */

#endif
