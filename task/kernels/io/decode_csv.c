/* SPDX-License-Identifier: Apache-2.0 */
/* DecodeCSV: one record per string, each column with its own type; and StringToNumber. */
#include <string.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/io/csv_fields.h"
#include "task/kernels/text/text_number.h"

static int decode_record(struct kernel_call *c, const struct csv_columns *columns,
			 struct csv_fields *f, int64_t r, struct mu_tensor *const *out,
			 struct mu_err *err)
{
	MU_RETURN_IF_ERROR(csv_split(elems_span(kernel_in(c, 0), r), columns, f, err));
	if (f->n != c->n_out)
		return mu_invalid(err, "Expect %u fields but have %u in record %lld", c->n_out,
				  f->n, (long long)r);
	for (unsigned i = 0; i < c->n_out; i++)
		MU_RETURN_IF_ERROR(csv_store(f, columns, i, kernel_in(c, i + 1), out[i], r, err));
	return 0;
}

static int decode_csv_read_columns(const struct mu_node *n, struct csv_columns *columns,
				   struct mu_err *err)
{
	const char *delim = args_attr_string(n, "field_delim", ",");

	columns->delim = *delim;
	columns->quotes = args_attr_bool(n, "use_quote_delim", true);
	columns->na = mu_span_of(args_attr_string(n, "na_value", ""));
	columns->n_select = args_attr_ints(n, "select_cols", columns->select, CSV_MAX_COLUMNS);
	if (strlen(delim) != 1)
		return mu_invalid(err, "field_delim should be only 1 char");
	if (columns->n_select < 0)
		return mu_invalid(err, "select_cols names over %d columns", CSV_MAX_COLUMNS);
	return csv_check_columns(columns, err);
}

static int decode_csv(struct kernel_call *c, struct mu_err *err)
{
	__attribute__((cleanup(csv_fields_fini))) struct csv_fields f = {0};
	MU_AUTO_FREE struct csv_columns *columns = MU_NEW(struct csv_columns);
	MU_AUTO_FREE struct mu_tensor **out = mu_xcalloc(c->n_out + 1, sizeof *out);

	MU_RETURN_IF_ERROR(decode_csv_read_columns(c->node, columns, err));
	if (c->n_in != c->n_out + 1 || (columns->n_select && columns->n_select != (int)c->n_out))
		return mu_invalid(err,
				  "select_cols should match output size: %u columns, %u defaults",
				  c->n_out, c->n_in - 1);
	for (unsigned i = 0; i < c->n_out; i++) {
		const struct mu_tensor *fallback = kernel_in(c, i + 1);
		if (fallback->shape.rank > 1 || fallback->shape.count > 1)
			return mu_invalid(
			    err, "There should only be 1 default per field but field %u has %lld",
			    i, (long long)fallback->shape.count);
		MU_RETURN_IF_ERROR(
		    kernel_out(c, i, fallback->dtype, &kernel_in(c, 0)->shape, &out[i], err));
	}
	for (int64_t r = 0; r < kernel_in(c, 0)->shape.count; r++)
		MU_RETURN_IF_ERROR(decode_record(c, columns, &f, r, out, err));
	return 0;
}

static int string_to_number(struct kernel_call *c, struct mu_err *err)
{
	enum mu_dtype type = args_attr_type(c->node, "out_type", MU_FLOAT);
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(kernel_out(c, 0, type, &kernel_in(c, 0)->shape, &out, err));
	for (int64_t i = 0; i < out->shape.count; i++) {
		struct mu_span text = elems_span(kernel_in(c, 0), i);
		if (!text_number(text, type, out->data, i))
			return mu_invalid(
			    err, "StringToNumberOp could not correctly convert string: %.*s",
			    text.len > 80 ? 80 : (int)text.len, text.data);
	}
	return 0;
}

static const struct kernel rows[] = {
    {"DecodeCSV", .run = decode_csv},
    {"StringToNumber", .run = string_to_number},
};
KERNEL_TABLE(io_decode_csv, rows)
