/* SPDX-License-Identifier: Apache-2.0 */
/* cJSON parses the text, and its tree is converted to a document.  Strings are NUL-terminated, but
 * cJSON accepts a NUL in a string, and parses the invalid escape "\uwxyz" as NUL.  So this file
 * rejects both before cJSON parses the text.  The text is not copied, because a large allocation
 * for each watch event makes glibc merge the small blocks that cJSON has just freed. */
#include "lib/io/json.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>

/* ---- parser ---- */

static int json_fail_at(const char *source, const char *text, const char *at, struct mu_err *err,
			const char *problem)
{
	unsigned line = 1;

	for (; text < at; text++)
		line += *text == '\n';
	return mu_fail(err, MU_INVALID_ARGUMENT, "%s:%u: %s", source, line, problem);
}

/* Returns the first invalid escape, or NULL. */
static const char *bad_escape(const char *text, const char *end)
{
	for (; (text = memchr(text, '\\', (size_t)(end - text))) && end - text > 1; text += 2) {
		char hex[5] = "";

		if (text[1] != 'u')
			continue;
		memcpy(hex, text + 2, end - text < 6 ? (size_t)(end - text) - 2 : 4);
		if (strspn(hex, "0123456789abcdefABCDEF") < 4 || strcmp(hex, "0000") == 0)
			return text;
	}
	return NULL;
}

int mu_json_tree(cJSON **out, struct mu_span span, const char *source, struct mu_err *err)
{
	const char *text = span.data, *end = text + span.len, *at;
	cJSON *json;

	/* cJSON 1.7.15 reads one byte past the end of a text that ends with a comma. */
	if (!span.len || end[-1] == ',')
		return json_fail_at(source, text, end, err, "not valid JSON");
	if ((at = memchr(text, 0, span.len)))
		return json_fail_at(source, text, at, err, "a NUL byte in JSON text");
	if ((at = bad_escape(text, end)))
		return json_fail_at(
		    source, text, at, err,
		    "not valid JSON: \\u needs four hexadecimal digits other than 0000");
	json = cJSON_ParseWithLengthOpts(text, span.len, &at, false);
	if (!json)
		return json_fail_at(source, text, at, err, "not valid JSON");
	while (at < end && strchr(" \t\r\n", *at))
		at++;
	if (at < end) {
		cJSON_Delete(json);
		return json_fail_at(source, text, at, err, "text after the JSON value");
	}
	*out = json;
	return 0;
}

/* Integers from 2^53 on are not exact as doubles, so they become FLOAT. */
static struct mu_doc_node *add_number(struct mu_doc *d, struct mu_doc_node *parent, const char *key,
				      double v)
{
	return v == floor(v) && fabs(v) < 9007199254740992.0
		   ? mu_doc_add_int(d, parent, key, (int64_t)v)
		   : mu_doc_add_float(d, parent, key, v);
}

size_t mu_json_separators(struct mu_span text)
{
	size_t n = 0;

	for (size_t i = 0; i < text.len; i++)
		n += text.data[i] == ',' || text.data[i] == '[' || text.data[i] == '{';
	return n;
}

static int json_add_value(struct mu_doc *d, struct mu_doc_node *parent, const cJSON *value,
			  unsigned depth, unsigned max_values, struct mu_err *err)
{
	const char *key = value->string;
	struct mu_doc_node *n, *duplicate;
	const cJSON *child;
	int rc;

	if (d->n_nodes == max_values)
		return mu_fail(err, MU_INVALID_ARGUMENT, "%s: more than %u values", d->source,
			       max_values);
	if (cJSON_IsString(value)) {
		mu_doc_add_str(d, parent, key, value->valuestring);
	} else if (cJSON_IsNumber(value)) {
		add_number(d, parent, key, value->valuedouble);
	} else if (cJSON_IsBool(value)) {
		mu_doc_add_bool(d, parent, key, cJSON_IsTrue(value));
	} else if (cJSON_IsNull(value)) {
		mu_doc_add(d, parent, key, MU_DOC_NULL);
	} else if (depth == MU_DOC_MAX_DEPTH) {
		return mu_fail(err, MU_INVALID_ARGUMENT, "%s: nested deeper than %d levels",
			       d->source, MU_DOC_MAX_DEPTH);
	} else {
		n = mu_doc_add(d, parent, key, cJSON_IsArray(value) ? MU_DOC_LIST : MU_DOC_MAP);
		cJSON_ArrayForEach(child, value)
		{
			rc = json_add_value(d, n, child, depth + 1, max_values, err);
			if (rc)
				return rc;
		}
		duplicate = n->kind == MU_DOC_MAP ? mu_doc_duplicate(n) : NULL;
		if (duplicate)
			return mu_doc_invalid(duplicate, err, "is given twice");
	}
	return 0;
}

int mu_json_doc(struct mu_doc **out, const cJSON *json, const char *source, unsigned max_values,
		struct mu_err *err)
{
	struct mu_doc *d = mu_doc_new(source);
	int rc = json_add_value(d, NULL, json, 0, max_values, err);

	if (rc)
		mu_doc_free(d);
	else
		*out = d;
	return rc;
}

int mu_json_parse(struct mu_doc **out, struct mu_span text, const char *source, struct mu_err *err)
{
	cJSON *json = NULL;
	int rc;

	if (text.len > MU_DOC_MAX_BYTES)
		return mu_fail(err, MU_INVALID_ARGUMENT, "%s: larger than %d bytes", source,
			       MU_DOC_MAX_BYTES);
	if (mu_json_separators(text) > MU_DOC_MAX_NODES)
		return mu_fail(err, MU_INVALID_ARGUMENT, "%s: more than %d commas and brackets",
			       source, MU_DOC_MAX_NODES);
	rc = mu_json_tree(&json, text, source, err);
	if (!rc)
		rc = mu_json_doc(out, json, source, MU_DOC_MAX_NODES, err);
	cJSON_Delete(json);
	return rc;
}

/* ---- writer ---- */

/* Returns the length of the UTF-8 character at p, a NUL-terminated string; 0: it is invalid. */
static size_t utf8_length(const unsigned char *p)
{
	size_t n = *p < 0x80   ? 1
		   : *p < 0xc2 ? 0
		   : *p < 0xe0 ? 2
		   : *p < 0xf0 ? 3
		   : *p < 0xf5 ? 4
			       : 0;

	for (size_t i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	bool overlong = (*p == 0xe0 && p[1] < 0xa0) || (*p == 0xf0 && p[1] < 0x90);
	bool surrogate = *p == 0xed && p[1] >= 0xa0, too_large = *p == 0xf4 && p[1] >= 0x90;
	return overlong || surrogate || too_large ? 0 : n;
}

void mu_utf8_replace_invalid(char *text)
{
	for (size_t n; *text; text += n ? n : 1) {
		n = utf8_length((const unsigned char *)text);
		if (!n)
			*text = '?';
	}
}

void mu_json_print(struct mu_buf *out, const cJSON *json)
{
	char *text = cJSON_PrintUnformatted(json);

	mu_buf_puts(out, text ? text : "null");
	cJSON_free(text);
}

void mu_json_quote(struct mu_buf *out, struct mu_span text)
{
	MU_AUTO_FREE char *copy = mu_xstrndup(text.data, text.len);

	mu_json_print(out, &(cJSON){.type = cJSON_String, .valuestring = copy});
}

/* Returns the shortest text that parses to the same number.  cJSON may write only 15 digits. */
static const char *number_text(char text[static 32], double v)
{
	if (!isfinite(v))
		return "null"; /* JSON cannot express it */
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, 32, "%.*g", digits, v);
		if (strtod(text, NULL) == v)
			break;
	}
	return text;
}

cJSON *mu_json_from_doc(const struct mu_doc_node *n)
{
	char text[32];
	cJSON *tree;

	switch (n->kind) {
	case MU_DOC_BOOL:
		return cJSON_CreateBool(n->b);
	case MU_DOC_INT: /* cJSON's numbers are doubles */
		snprintf(text, sizeof(text), "%lld", (long long)n->i);
		return cJSON_CreateRaw(text);
	case MU_DOC_FLOAT:
		return cJSON_CreateRaw(number_text(text, n->f));
	case MU_DOC_STRING:
		return cJSON_CreateStringReference(n->text);
	case MU_DOC_LIST:
		tree = cJSON_CreateArray();
		mu_doc_each(n, c) cJSON_AddItemToArray(tree, mu_json_from_doc(c));
		return tree;
	case MU_DOC_MAP:
		tree = cJSON_CreateObject();
		mu_doc_each(n, c) cJSON_AddItemToObjectCS(tree, c->key, mu_json_from_doc(c));
		return tree;
	case MU_DOC_NULL:
		break;
	}
	return cJSON_CreateNull();
}

void mu_json_write(struct mu_buf *out, const struct mu_doc_node *n)
{
	cJSON *tree = mu_json_from_doc(n);

	mu_json_print(out, tree);
	cJSON_Delete(tree);
}
