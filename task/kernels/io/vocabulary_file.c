/* SPDX-License-Identifier: Apache-2.0 */
#include "task/kernels/io/vocabulary_file.h"

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/io/file_error.h"
#include "task/kernels/text/text_number.h"

enum { MAX_FILE_BYTES = 1 << 30, WHOLE_LINE = -2, LINE_NUMBER = -1 };

bool vocabulary_line(const struct mu_buf *b, size_t *at, struct mu_span *out)
{
	if (*at >= b->len)
		return false;
	const char *start = b->data + *at, *end = memchr(start, '\n', b->len - *at);
	size_t len = end ? (size_t)(end - start) : b->len - *at;
	*at += len + 1;
	*out = (struct mu_span){start, len - (len && start[len - 1] == '\r')};
	return true;
}

int vocabulary_read(const struct kernel_call *c, unsigned in, int64_t vocab_size, struct mu_buf *b,
		    int64_t *n, struct mu_err *err)
{
	MU_AUTO_FREE char *path = NULL;
	struct mu_span line;
	size_t at = 0;

	MU_RETURN_IF_ERROR(args_string(c, in, &path, err));
	MU_RETURN_IF_ERROR(file_error(mu_buf_read_file(b, path, MAX_FILE_BYTES, err), path, err));
	for (*n = 0; (vocab_size < 0 || *n < vocab_size) && vocabulary_line(b, &at, &line); ++*n)
		if (!line.len)
			return mu_invalid(
			    err, "Invalid content in %s: empty line found at position %zu.", path,
			    at);
	if (!at)
		return mu_fail(err, MU_OUT_OF_RANGE, "%s is empty", path);
	return *n < vocab_size
		   ? mu_invalid(err, "Invalid vocab_size in %s: expected %lld but got %lld", path,
				(long long)vocab_size, (long long)*n)
		   : 0;
}

/* Finds column k of a line; returns false if the line has fewer columns. */
static bool column(struct mu_span line, int64_t k, char delim, struct mu_span *out)
{
	const char *end = line.data + line.len, *from = line.data, *at;

	for (; (at = memchr(from, delim, (size_t)(end - from))) && k; k--)
		from = at + 1;
	*out = (struct mu_span){from, (size_t)((at ? at : end) - from)};
	return k == 0;
}

/* Sets element i of a tensor from line i: the line, its number, or the column `index`. */
static int vocabulary_file_put(struct mu_tensor *t, int64_t i, struct mu_span line, int64_t index,
			       char delim, int64_t offset, struct mu_span path, struct mu_err *err)
{
	struct mu_span text = line;
	int64_t n_columns = 1;

	if (index == LINE_NUMBER) {
		MU_DATA(int64_t, t)[i] = i + offset;
		return 0;
	}
	if (index >= 0 && !column(line, index, delim, &text)) {
		for (size_t k = 0; k < line.len; k++)
			n_columns += line.data[k] == delim;
		return mu_invalid(
		    err,
		    "Invalid number of columns in %.*s line %lld (%.*s) : expected at "
		    "least %lld got %lld",
		    (int)path.len, path.data, (long long)i, (int)(line.len < 64 ? line.len : 64),
		    line.data, (long long)index + 1, (long long)n_columns);
	}
	if (t->dtype == MU_STRING) {
		mu_string_set(&MU_DATA(struct mu_string, t)[i], text.data, text.len);
		return 0;
	}
	return text_number(text, t->dtype, t->data, i)
		   ? 0
		   : mu_invalid(err, "Field %.*s in line %lld is not a valid %s.",
				(int)(text.len < 64 ? text.len : 64), text.data, (long long)i,
				mu_dtype_name(t->dtype));
}

static int check_index(const char *what, int64_t index, enum mu_dtype t, struct mu_err *err)
{
	if (index < WHOLE_LINE || (index == WHOLE_LINE && t != MU_STRING && t != MU_INT64) ||
	    (index == LINE_NUMBER && t != MU_INT64) ||
	    (t != MU_STRING && t != MU_INT64 && t != MU_INT32 && t != MU_FLOAT && t != MU_DOUBLE))
		return mu_invalid(err, "%s index %lld of a text file does not go with type %s",
				  what, (long long)index, mu_dtype_name(t));
	return 0;
}

int vocabulary_pairs(const struct kernel_call *c, enum mu_dtype key, enum mu_dtype value,
		     struct mu_tensor *keys, struct mu_tensor *values, struct mu_err *err)
{
	const char *delim = args_attr_string(c->node, "delimiter", "\t");
	int64_t key_at = args_attr_int(c->node, "key_index", WHOLE_LINE);
	int64_t value_at = args_attr_int(c->node, "value_index", LINE_NUMBER);
	int64_t vocab_size = args_attr_int(c->node, "vocab_size", -1), n = 0;
	int64_t offset = args_attr_int(c->node, "offset", 0);
	MU_AUTO_TENSOR k = {0};
	MU_AUTO_TENSOR v = {0};
	MU_AUTO_BUF text = {0};
	struct mu_span line;
	size_t at = 0;
	int rc = 0;

	MU_RETURN_IF_ERROR(check_index("key", key_at, key, err));
	MU_RETURN_IF_ERROR(check_index("value", value_at, value, err));
	if (strlen(delim) != 1)
		return mu_invalid(err, "delimiter should be only 1 char");
	MU_RETURN_IF_ERROR(vocabulary_read(c, 1, vocab_size, &text, &n, err));
	struct mu_span path = elems_span(kernel_in(c, 1), 0);
	struct mu_shape s = mu_shape_vec(n);
	MU_RETURN_IF_ERROR(mu_tensor_new(&k, key, &s, err));
	MU_RETURN_IF_ERROR(mu_tensor_new(&v, value, &s, err));
	at = 0;
	for (int64_t i = 0; i < n && vocabulary_line(&text, &at, &line); i++)
		if ((rc = vocabulary_file_put(&k, i, line, key_at, *delim, offset, path, err)) ||
		    (rc = vocabulary_file_put(&v, i, line, value_at, *delim, offset, path, err)))
			return rc;
	*keys = k;
	*values = v;
	k = v = (struct mu_tensor){0};
	return 0;
}
