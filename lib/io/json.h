/* SPDX-License-Identifier: Apache-2.0 */
/* Converts JSON text to a cJSON tree or a document, and back. */
#ifndef MU_LIB_IO_JSON_H
#define MU_LIB_IO_JSON_H

#include "lib/io/doc.h"

struct cJSON;

/* `source` names the text in errors.  Invalid JSON, trailing text and NUL characters (also as
 * \u0000) are INVALID_ARGUMENT with the line.  cJSON accepts more than the standard: 01, 1. and
 * -.5, and control characters as spaces and in strings. */
int mu_json_tree(struct cJSON **out, struct mu_span text, const char *source, struct mu_err *err);

/* Counts separators.  The number of values is at most one larger, which bounds the memory that
 * cJSON allocates. */
size_t mu_json_separators(struct mu_span text);

/* Creates a document with a copy of the tree.  Fails on duplicate keys, too deep trees and more
 * than max_values values.  cJSON parses numbers as doubles, so integers from 2^53 on are FLOAT. */
int mu_json_doc(struct mu_doc **out, const struct cJSON *json, const char *source,
		unsigned max_values, struct mu_err *err);

/* Parses text of limited size to a document.  Nodes have no line numbers; for files written by
 * users call mu_yaml_parse, which reads JSON too. */
int mu_json_parse(struct mu_doc **out, struct mu_span text, const char *source, struct mu_err *err);

/* The tree borrows its strings from the document. */
struct cJSON *mu_json_from_doc(const struct mu_doc_node *n);
void mu_json_print(struct mu_buf *out, const struct cJSON *json);    /* one line, appended */
void mu_json_write(struct mu_buf *out, const struct mu_doc_node *n); /* one line */
void mu_json_quote(struct mu_buf *out, struct mu_span text);         /* "…", escaped */
/* Replaces each byte that is not part of a UTF-8 character by '?'. */
void mu_utf8_replace_invalid(char *text);

#endif
