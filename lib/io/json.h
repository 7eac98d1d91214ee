/* SPDX-License-Identifier: Apache-2.0 */
/* JSON text to a document and back. */
#ifndef MU_IO_JSON_H
#define MU_IO_JSON_H

#include "lib/io/doc.h"

/* `source` names the text in errors.  Trailing text, duplicate keys, too deep and too large are
 * INVALID_ARGUMENT with the line. */
int mu_json_parse(struct mu_doc **out, struct mu_span text, const char *source, struct mu_err *err);

void mu_json_write(struct mu_buf *out, const struct mu_doc_node *n); /* one line */
void mu_json_quote(struct mu_buf *out, struct mu_span text);         /* "…", escaped */
void mu_json_put_int(struct mu_buf *out, int64_t n);
void mu_json_put_float(struct mu_buf *out, double v); /* reads back the same */

#endif
