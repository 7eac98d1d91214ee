/* SPDX-License-Identifier: Apache-2.0 */
/* cJSON parses; its tree becomes a document.  A document's strings end at a NUL as cJSON's do, but
 * cJSON accepts a NUL inside of one, and takes "\uwxyz" for one: both are refused before. */
#include "lib/io/json.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>

/* ---- reading ---- */

static int fail_at(const char *source, const char *text, const char *at, struct mu_err *err,
		   const char *problem)
{
	unsigned line = 1;

	for (; text < at; text++)
		line += *text == '\n';
	return mu_fail(err, MU_INVALID_ARGUMENT, "%s:%u: %s", source, line, problem);
}

/* The first escape that is not a character, or NULL. */
static const char *bad_escape(const char *text)
{
	for (; (text = strchr(text, '\\')); text += text[1] ? 2 : 1)
		if (text[1] == 'u' && (strspn(text + 2, "0123456789abcdefABCDEF") < 4 ||
				       strncmp(text + 2, "0000", 4) == 0))
			return text;
	return NULL;
}

int mu_json_tree(cJSON **out, struct mu_span span, const char *source, struct mu_err *err)
{
	/* cJSON 1.7.15 reads one byte past the end of a text that is cut off behind a comma */
	MU_AUTO_FREE char *text = mu_xstrndup(span.data, span.len);
	size_t len = strlen(text);
	const char *escape, *end;
	cJSON *json;

	if (len < span.len)
		return fail_at(source, text, text + len, err, "a NUL byte in JSON text");
	if ((escape = bad_escape(text)))
		return fail_at(source, text, escape, err,
			       "not valid JSON: \\u needs four hexadecimal digits other than 0000");
	json = cJSON_ParseWithOpts(text, &end, false);
	if (!json)
		return fail_at(source, text, end, err, "not valid JSON");
	end += strspn(end, " \t\r\n");
	if (*end) {
		cJSON_Delete(json);
		return fail_at(source, text, end, err, "text after the JSON value");
	}
	*out = json;
	return 0;
}

/* Beyond 2^53 a double may stand for another whole number, so it is no INT. */
static struct mu_doc_node *add_number(struct mu_doc *d, struct mu_doc_node *parent, const char *key,
				      double v)
{
	return v == floor(v) && fabs(v) < 9007199254740992.0
		   ? mu_doc_add_int(d, parent, key, (int64_t)v)
		   : mu_doc_add_float(d, parent, key, v);
}

static int add_value(struct mu_doc *d, struct mu_doc_node *parent, const cJSON *value,
		     unsigned depth, struct mu_err *err)
{
	const char *key = value->string;
	struct mu_doc_node *n, *twice;
	const cJSON *child;
	int rc;

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
			rc = add_value(d, n, child, depth + 1, err);
			if (rc)
				return rc;
		}
		twice = n->kind == MU_DOC_MAP ? mu_doc_duplicate(n) : NULL;
		if (twice)
			return mu_doc_fail(twice, err, MU_INVALID_ARGUMENT, "is given twice");
	}
	return 0;
}

int mu_json_doc(struct mu_doc **out, const cJSON *json, const char *source, struct mu_err *err)
{
	struct mu_doc *d = mu_doc_new(source);
	int rc = add_value(d, NULL, json, 0, err);

	if (rc)
		mu_doc_free(d);
	else
		*out = d;
	return rc;
}

/* No text has more values than this plus one, so what cJSON allocates is bounded before it starts.
 */
static size_t count_separators(struct mu_span text)
{
	size_t n = 0;

	for (size_t i = 0; i < text.len; i++)
		n += text.data[i] == ',' || text.data[i] == '[' || text.data[i] == '{';
	return n;
}

int mu_json_parse(struct mu_doc **out, struct mu_span text, const char *source, struct mu_err *err)
{
	cJSON *json = NULL;
	int rc;

	if (text.len > MU_DOC_MAX_BYTES)
		return mu_fail(err, MU_INVALID_ARGUMENT, "%s: larger than %d bytes", source,
			       MU_DOC_MAX_BYTES);
	if (count_separators(text) > MU_DOC_MAX_NODES)
		return mu_fail(err, MU_INVALID_ARGUMENT, "%s: more than %d commas and brackets",
			       source, MU_DOC_MAX_NODES);
	rc = mu_json_tree(&json, text, source, err);
	if (!rc)
		rc = mu_json_doc(out, json, source, err);
	cJSON_Delete(json);
	return rc;
}

/* ---- writing ---- */

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

void mu_json_put_int(struct mu_buf *out, int64_t n)
{
	write_digits(out, n < 0, n < 0 ? -(uint64_t)n : (uint64_t)n);
}

void mu_json_put_float(struct mu_buf *out, double v)
{
	write_number(out, v);
}

void mu_json_write(struct mu_buf *out, const struct mu_doc_node *n)
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
		mu_json_put_int(out, n->i);
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
		if (map) {
			mu_json_quote(out, mu_span_of(c->key));
			mu_buf_putc(out, ':');
		}
		mu_json_write(out, c);
	}
	mu_buf_putc(out, map ? '}' : ']');
}
