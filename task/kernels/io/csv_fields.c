/* SPDX-License-Identifier: Apache-2.0 */
#include "task/kernels/io/csv_fields.h"

#include <stdio.h>
#include <string.h>

#include "task/kernels/engine/elems.h"
#include "task/kernels/text/text_number.h"

static struct mu_buf *add_field(struct csv_fields *f)
{
	if (f->n == f->cap) {
		unsigned cap = f->cap ? 2 * f->cap : 16;
		f->list = mu_xrealloc(f->list, cap * sizeof *f->list);
		memset(f->list + f->cap, 0, (cap - f->cap) * sizeof *f->list);
		f->cap = cap;
	}
	struct mu_buf *b = &f->list[f->n++];
	mu_buf_clear(b);
	return b;
}

void csv_fields_fini(struct csv_fields *f)
{
	for (unsigned i = 0; i < f->cap; i++)
		mu_buf_fini(&f->list[i]);
	free(f->list);
}

/* Reads a quoted field from *p, after its opening quote, and sets *p after the closing quote. */
static int read_quoted(struct mu_span in, size_t *p, const struct csv_columns *k,
		       struct mu_buf *out, struct mu_err *err)
{
	size_t i = *p;
	bool all_escaped = true; /* the quotes within the field */

	for (;; i++) {
		bool quote = i < in.len && in.data[i] == '"';

		if (quote && (i + 1 == in.len || in.data[i + 1] == k->delim))
			break;
		if (i >= in.len && k->dataset)
			return mu_invalid(err, "Reached end of file without closing quoted field "
					       "in record");
		if (i >= in.len || (quote && in.data[i + 1] != '"' && !k->dataset))
			return mu_invalid(
			    err, "Quoted field has to end with quote followed by delim or end");
		if (quote && in.data[i + 1] != '"')
			all_escaped = false;
		else if (quote)
			i++;
		mu_buf_putc(out, in.data[i]);
	}
	*p = i + 1;
	return all_escaped
		   ? 0
		   : mu_invalid(err, "Quote inside a string has to be escaped by another quote");
}

static int read_unquoted(struct mu_span in, size_t *p, const struct csv_columns *k,
			 struct mu_buf *out, struct mu_err *err)
{
	size_t i = *p;

	for (; i < in.len && in.data[i] != k->delim; i++)
		if (in.data[i] == '\n' || in.data[i] == '\r' || (k->quotes && in.data[i] == '"'))
			return mu_invalid(err, "Unquoted fields cannot have quotes%s inside",
					  k->dataset ? "" : "/CRLFs");
	mu_buf_put(out, in.data + *p, i - *p);
	*p = i;
	return 0;
}

int csv_split(struct mu_span in, const struct csv_columns *k, struct csv_fields *f,
	      struct mu_err *err)
{
	size_t p = 0;
	int64_t column = 0;
	int n_listed = 0, rc;

	f->n = 0;
	if (!in.len && !k->dataset)
		return 0;
	for (;; p++, column++) {
		bool is_listed = n_listed < k->n_select && k->select[n_listed] == column;
		bool is_skipped = k->n_select && is_listed == k->exclude;
		struct mu_buf *b = add_field(f);
		if (k->quotes && p < in.len && in.data[p] == '"') {
			p++;
			rc = read_quoted(in, &p, k, b, err);
		} else {
			rc = read_unquoted(in, &p, k, b, err);
		}
		if (rc)
			return rc;
		if (k->dataset && !is_skipped && f->n > k->max_fields)
			return mu_invalid(err, "Expect %u fields but have more in record",
					  k->max_fields);
		n_listed += is_listed;
		f->n -= is_skipped;
		if (p >= in.len)
			return 0;
	}
}

/* The number of bytes of a text that an error message shows; the text has no NUL. */
static int shown_length(struct mu_span text)
{
	return text.len > 80 ? 80 : (int)text.len;
}

int csv_store(const struct csv_fields *f, const struct csv_columns *k, unsigned i,
	      const struct mu_tensor *default_value, struct mu_tensor *out, int64_t at,
	      struct mu_err *err)
{
	struct mu_span text = mu_buf_span(&f->list[i]);
	char record[32] = "record";

	if (!k->dataset)
		snprintf(record, sizeof record, "record %lld", (long long)at);
	if (!text.len || mu_span_eq(text, k->na)) {
		if (!default_value->shape.count)
			return mu_invalid(err, "Field %u is required but missing in %s!", i,
					  record);
		elems_copy(out->dtype, out->data, at, default_value->data, 0, 1);
	} else if (out->dtype == MU_STRING) {
		mu_string_set(&MU_DATA(struct mu_string, out)[at], text.data, text.len);
	} else if (!text_number(text, out->dtype, out->data, at)) {
		return mu_invalid(err, "Field %u in %s is not a valid %s: %.*s", i, record,
				  mu_dtype_name(out->dtype), shown_length(text), text.data);
	}
	return 0;
}

int csv_check_columns(const struct csv_columns *k, struct mu_err *err)
{
	for (int i = 1; i < k->n_select; i++)
		if (k->select[i - 1] >= k->select[i])
			return mu_invalid(err, "select_cols should be strictly increasing indices");
	if (k->n_select && k->select[0] < 0)
		return mu_invalid(err, "select_cols should be non-negative indices");
	return 0;
}
