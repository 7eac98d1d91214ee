/* SPDX-License-Identifier: Apache-2.0 */
/* cJSON reads the text; a scan before it bounds depth and number of values, so that what cJSON
 * allocates is bounded too, and finds the line of an error. */
#include "lib/io/json.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>

static unsigned line_of(struct mu_span text, const char *at)
{
	unsigned line = 1;

	for (const char *p = text.data; p < at; p++)
		line += *p == '\n';
	return line;
}

static int scan(struct mu_span text, const char *source, struct mu_err *err)
{
	unsigned depth = 0, values = 1;
	bool in_string = false;

	for (size_t i = 0; i < text.len; i++) {
		char c = text.data[i];
		if (c == '\0')
			return mu_fail(err, MU_INVALID_ARGUMENT, "%s:%u: a NUL byte in JSON text",
				       source, line_of(text, text.data + i));
		if (in_string) {
			i += c == '\\';
			in_string = c != '"';
			continue;
		}
		in_string = c == '"';
		depth += c == '[' || c == '{';
		depth -= depth && (c == ']' || c == '}');
		values += c == ',' || c == '[' || c == '{';
		if (depth > MU_DOC_MAX_DEPTH)
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "%s:%u: nested deeper than %d levels", source,
				       line_of(text, text.data + i), MU_DOC_MAX_DEPTH);
		if (values > MU_DOC_MAX_NODES)
			return mu_fail(err, MU_INVALID_ARGUMENT, "%s: more than %d values", source,
				       MU_DOC_MAX_NODES);
	}
	return 0;
}

static int add(struct mu_doc *d, struct mu_doc_node *parent, const cJSON *from, struct mu_err *err)
{
	const char *key = parent && parent->kind == MU_DOC_MAP ? from->string : NULL;
	double v = from->valuedouble;
	struct mu_doc_node *n;

	switch (from->type & 0xff) {
	case cJSON_True:
	case cJSON_False:
		mu_doc_add_bool(d, parent, key, (from->type & 0xff) == cJSON_True);
		return 0;
	case cJSON_Number:
		if (v == floor(v) && fabs(v) <= 9007199254740992.0) /* 2^53 */
			mu_doc_add_int(d, parent, key, (int64_t)v);
		else
			mu_doc_add_float(d, parent, key, v);
		return 0;
	case cJSON_String:
		mu_doc_add_str(d, parent, key, from->valuestring);
		return 0;
	case cJSON_Array:
	case cJSON_Object:
		n = mu_doc_add(d, parent, key,
			       (from->type & 0xff) == cJSON_Array ? MU_DOC_LIST : MU_DOC_MAP);
		for (const cJSON *c = from->child; c; c = c->next) {
			int rc = add(d, n, c, err);
			if (rc)
				return rc;
		}
		if (n->kind == MU_DOC_MAP && (n = mu_doc_duplicate(n)))
			return mu_doc_fail(n, err, MU_INVALID_ARGUMENT, "is given twice");
		return 0;
	}
	mu_doc_add(d, parent, key, MU_DOC_NULL);
	return 0;
}

int mu_json_parse(struct mu_doc **out, struct mu_span text, const char *source, struct mu_err *err)
{
	const char *end = NULL, *stop = text.data + text.len;
	MU_AUTO(mu_doc_free) struct mu_doc *d = NULL;

	if (text.len > MU_DOC_MAX_BYTES)
		return mu_fail(err, MU_INVALID_ARGUMENT, "%s: larger than %d bytes", source,
			       MU_DOC_MAX_BYTES);
	int rc = scan(text, source, err);
	if (rc)
		return rc;
	cJSON *root = text.len ? cJSON_ParseWithLengthOpts(text.data, text.len, &end, 0) : NULL;
	if (!root)
		return mu_fail(err, MU_INVALID_ARGUMENT, "%s:%u: not valid JSON", source,
			       end ? line_of(text, end) : 1);
	while (end < stop && strchr(" \t\r\n", *end))
		end++;
	d = mu_doc_new(source);
	rc = end < stop ? mu_fail(err, MU_INVALID_ARGUMENT, "%s:%u: text after the JSON value",
				  source, line_of(text, end))
			: add(d, NULL, root, err);
	cJSON_Delete(root);
	if (rc)
		return rc;
	*out = mu_steal(&d);
	return 0;
}

static void put_escape(struct mu_buf *out, unsigned char c)
{
	if (c == '"' || c == '\\')
		mu_buf_printf(out, "\\%c", c);
	else if (c == '\n')
		mu_buf_puts(out, "\\n");
	else if (c == '\t')
		mu_buf_puts(out, "\\t");
	else
		mu_buf_printf(out, "\\u%04x", c);
}

void mu_json_quote(struct mu_buf *out, struct mu_span text)
{
	size_t from = 0;

	mu_buf_putc(out, '"');
	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.data[i];

		if (c >= 0x20 && c != '"' && c != '\\' && c != 0x7f)
			continue;
		mu_buf_put(out, text.data + from, i - from);
		put_escape(out, c);
		from = i + 1;
	}
	if (from < text.len)
		mu_buf_put(out, text.data + from, text.len - from);
	mu_buf_putc(out, '"');
}

static void write_digits(struct mu_buf *out, bool negative, uint64_t n)
{
	char text[24];
	size_t at = sizeof(text);

	do
		text[--at] = (char)('0' + n % 10);
	while (n /= 10);
	if (negative)
		text[--at] = '-';
	mu_buf_put(out, text + at, sizeof(text) - at);
}

/* Most numbers are counts. */
static bool write_count(struct mu_buf *out, double v)
{
	if (!(v >= 0 && v < 1e15) || signbit(v) || v != (double)(uint64_t)v)
		return false;
	write_digits(out, false, (uint64_t)v);
	return true;
}

static void write_number(struct mu_buf *out, double v)
{
	char text[32];

	if (write_count(out, v))
		return;
	if (!isfinite(v)) {
		mu_buf_puts(out, "null"); /* JSON has no other word for it */
		return;
	}
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof text, "%.*g", digits, v);
		if (strtod(text, NULL) == v)
			break;
	}
	mu_buf_puts(out, text);
}

static void newline(struct mu_buf *out, bool pretty, unsigned depth)
{
	if (pretty)
		mu_buf_printf(out, "\n%*s", (int)depth * 2, "");
}

static void write_node(struct mu_buf *out, const struct mu_doc_node *n, bool pretty, unsigned depth)
{
	bool map = n->kind == MU_DOC_MAP;

	switch (n->kind) {
	case MU_DOC_NULL:
		mu_buf_puts(out, "null");
		return;
	case MU_DOC_BOOL:
		mu_buf_puts(out, n->b ? "true" : "false");
		return;
	case MU_DOC_INT:
		write_digits(out, n->i < 0, n->i < 0 ? -(uint64_t)n->i : (uint64_t)n->i);
		return;
	case MU_DOC_FLOAT:
		write_number(out, n->f);
		return;
	case MU_DOC_STRING:
		mu_json_quote(out, (struct mu_span){n->text, n->len});
		return;
	case MU_DOC_LIST:
	case MU_DOC_MAP:
		break;
	}
	mu_buf_putc(out, map ? '{' : '[');
	mu_doc_each(n, c)
	{
		if (c != n->first)
			mu_buf_putc(out, ',');
		newline(out, pretty, depth + 1);
		if (map) {
			mu_json_quote(out, mu_span_of(c->key));
			mu_buf_puts(out, pretty ? ": " : ":");
		}
		write_node(out, c, pretty, depth + 1);
	}
	if (n->first)
		newline(out, pretty, depth);
	mu_buf_putc(out, map ? '}' : ']');
}

void mu_json_write(struct mu_buf *out, const struct mu_doc_node *n)
{
	write_node(out, n, false, 0);
}

void mu_json_write_pretty(struct mu_buf *out, const struct mu_doc_node *n)
{
	write_node(out, n, true, 0);
	mu_buf_putc(out, '\n');
}
