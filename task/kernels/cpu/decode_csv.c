/* SPDX-License-Identifier: Apache-2.0 */
/* DecodeCSV: each record one line of fields, each column a type of its own.  TensorFlow's reading:
 * quotes only around whole fields, "" within them one quote, spaces kept. */
#include <string.h>

#include "task/kernels/args.h"
#include "task/kernels/elems.h"
#include "task/kernels/kernel_table.h"
#include "task/kernels/text_number.h"

enum { MAX_COLUMNS = 4096 };

struct columns {
	char delim;
	bool quotes;
	struct mu_span na;
	int64_t select[MAX_COLUMNS];
	int n_select;
};

struct fields {
	struct mu_buf *list;
	unsigned n, cap;
};

static struct mu_buf *next_field(struct fields *f)
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

static void fields_fini(struct fields *f)
{
	for (unsigned i = 0; i < f->cap; i++)
		mu_buf_fini(&f->list[i]);
	free(f->list);
}

/* A quoted field from *p (behind its quote) to behind the closing one. */
static int quoted(struct mu_span in, size_t *p, const struct columns *k, struct mu_buf *out,
		  struct mu_err *err)
{
	size_t i = *p;

	for (; i < in.len; i++) {
		if (in.data[i] != '"') {
			mu_buf_putc(out, in.data[i]);
		} else if (i + 1 < in.len && in.data[i + 1] == '"') {
			mu_buf_putc(out, '"');
			i++;
		} else {
			break;
		}
	}
	bool end = i + 1 == in.len || (i + 1 < in.len && in.data[i + 1] == k->delim);
	if (i >= in.len || !end)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Quoted field has to end with quote followed by delim or end");
	*p = i + 1;
	return 0;
}

static int plain(struct mu_span in, size_t *p, const struct columns *k, struct mu_buf *out,
		 struct mu_err *err)
{
	size_t i = *p;

	for (; i < in.len && in.data[i] != k->delim; i++)
		if (in.data[i] == '\n' || in.data[i] == '\r' || (k->quotes && in.data[i] == '"'))
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "Unquoted fields cannot have quotes/CRLFs inside");
	mu_buf_put(out, in.data + *p, i - *p);
	*p = i;
	return 0;
}

static int split(struct mu_span in, const struct columns *k, struct fields *f, struct mu_err *err)
{
	size_t p = 0;
	int64_t column = 0;
	int chosen = 0, rc;

	f->n = 0;
	if (!in.len)
		return 0;
	for (;; p++, column++) {
		struct mu_buf *b = next_field(f);
		if (k->quotes && p < in.len && in.data[p] == '"') {
			p++;
			rc = quoted(in, &p, k, b, err);
		} else {
			rc = plain(in, &p, k, b, err);
		}
		if (rc)
			return rc;
		if (k->n_select && (chosen == k->n_select || k->select[chosen] != column))
			f->n--;
		else
			chosen++;
		if (p >= in.len)
			return 0;
	}
}

/* The field as the column's type, in out[record]. */
/* How much of a text an error shows; its bytes end with no zero. */
static int shown(struct mu_span text)
{
	return text.len > 80 ? 80 : (int)text.len;
}

static int store(const struct mu_buf *b, struct mu_tensor *out, int64_t record, unsigned column,
		 struct mu_err *err)
{
	struct mu_span text = {b->data ? b->data : "", b->len};

	if (out->dtype == MU_STRING) {
		mu_string_set(&MU_DATA(struct mu_string, out)[record], text.data, text.len);
		return 0;
	}
	if (!text_number(text, out->dtype, out->data, record))
		return mu_fail(
		    err, MU_INVALID_ARGUMENT, "Field %u in record %lld is not a valid %s: %.*s",
		    column, (long long)record, mu_dtype_name(out->dtype), shown(text), text.data);
	return 0;
}

static int decode_record(struct kernel_call *c, const struct columns *k, struct fields *f,
			 int64_t r, struct mu_tensor *const *out, struct mu_err *err)
{
	const struct mu_string *s = &MU_DATA(struct mu_string, kernel_in(c, 0))[r];
	int rc = split((struct mu_span){s->data ? s->data : "", s->len}, k, f, err);

	if (rc)
		return rc;
	if (f->n != c->n_out)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Expect %u fields but have %u in record %lld", c->n_out, f->n,
			       (long long)r);
	for (unsigned i = 0; i < c->n_out && !rc; i++) {
		const struct mu_tensor *other = kernel_in(c, i + 1);
		if (f->list[i].len && !mu_span_eq(mu_buf_span(&f->list[i]), k->na))
			rc = store(&f->list[i], out[i], r, i, err);
		else if (other->shape.count)
			elems_copy(out[i]->dtype, out[i]->data, r, other->data, 0, 1);
		else
			rc = mu_fail(err, MU_INVALID_ARGUMENT,
				     "Field %u is required but missing in record %lld!", i,
				     (long long)r);
	}
	return rc;
}

static int read_columns(const struct mu_node *n, struct columns *k, struct mu_err *err)
{
	const char *delim = args_attr_string(n, "field_delim", ",");

	k->delim = *delim;
	k->quotes = args_attr_bool(n, "use_quote_delim", true);
	k->na = mu_span_of(args_attr_string(n, "na_value", ""));
	k->n_select = args_attr_ints(n, "select_cols", k->select, MAX_COLUMNS);
	if (strlen(delim) != 1)
		return mu_fail(err, MU_INVALID_ARGUMENT, "field_delim should be only 1 char");
	if (k->n_select < 0)
		return mu_fail(err, MU_INVALID_ARGUMENT, "select_cols names over %d columns",
			       MAX_COLUMNS);
	for (int i = 1; i < k->n_select; i++)
		if (k->select[i - 1] >= k->select[i])
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "select_cols should be strictly increasing indices");
	if (k->n_select && k->select[0] < 0)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "select_cols should be non-negative indices");
	return 0;
}

static int decode_csv(struct kernel_call *c, struct mu_err *err)
{
	__attribute__((cleanup(fields_fini))) struct fields f = {0};
	MU_AUTO_FREE struct columns *k = MU_NEW(struct columns);
	MU_AUTO_FREE struct mu_tensor **out = mu_xcalloc(c->n_out + 1, sizeof *out);
	int rc;

	if ((rc = args_type(c, 0, MU_STRING, err)) || (rc = read_columns(c->node, k, err)))
		return rc;
	if (c->n_in != c->n_out + 1 || (k->n_select && k->n_select != (int)c->n_out))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "select_cols should match output size: %u columns, %u defaults",
			       c->n_out, c->n_in - 1);
	for (unsigned i = 0; i < c->n_out; i++) {
		const struct mu_tensor *other = kernel_in(c, i + 1);
		if (other->shape.rank > 1 || other->shape.count > 1)
			return mu_fail(
			    err, MU_INVALID_ARGUMENT,
			    "There should only be 1 default per field but field %u has %lld", i,
			    (long long)other->shape.count);
		if ((rc = kernel_out(c, i, other->dtype, &kernel_in(c, 0)->shape, &out[i], err)))
			return rc;
	}
	for (int64_t r = 0; r < kernel_in(c, 0)->shape.count && !rc; r++)
		rc = decode_record(c, k, &f, r, out, err);
	return rc;
}

static int string_to_number(struct kernel_call *c, struct mu_err *err)
{
	enum mu_dtype type = args_attr_type(c->node, "out_type", MU_FLOAT);
	struct mu_tensor *out;
	int rc;

	if ((rc = args_type(c, 0, MU_STRING, err)) ||
	    (rc = kernel_out(c, 0, type, &kernel_in(c, 0)->shape, &out, err)))
		return rc;
	for (int64_t i = 0; i < out->shape.count; i++) {
		const struct mu_string *s = &MU_DATA(struct mu_string, kernel_in(c, 0))[i];
		struct mu_span text = {s->data ? s->data : "", s->len};
		if (!text_number(text, type, out->data, i))
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "StringToNumberOp could not correctly convert string: %.*s",
				       shown(text), text.data);
	}
	return 0;
}

static const struct kernel rows[] = {
    {"DecodeCSV", .run = decode_csv},
    {"StringToNumber", .run = string_to_number},
};
KERNEL_TABLE(decode_csv, rows)
