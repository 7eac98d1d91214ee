/* SPDX-License-Identifier: Apache-2.0 */
/* A document as JSON text. */
#include "lib/io/json.h"

#include <math.h>
#include <stdio.h>

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
