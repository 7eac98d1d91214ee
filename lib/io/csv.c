/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/io/csv.h"

#include <math.h>
#include <stdio.h>

#include "lib/base/log.h"
#include "lib/io/gz.h"

enum { MAX_TEXT = 1 << 30, MAX_FIELDS = 1 << 20 };

struct table {
	const char *source;
	double *v;
	size_t n, cap;
	int64_t rows, fields, skipped;
	bool skip_bad;
	mu_csv_check check;
};

/* Parses a number between optional blanks. */
static bool parse_number(const char *at, const char *stop, double *out)
{
	char text[64], *end;

	while (at < stop && (*at == ' ' || *at == '\t'))
		at++;
	while (stop > at && (stop[-1] == ' ' || stop[-1] == '\t'))
		stop--;
	if (stop - at > 1 && *at == '"' && stop[-1] == '"') {
		at++;
		stop--;
	}
	size_t n = (size_t)(stop - at);
	if (n == 0 || n >= sizeof text)
		return false;
	memcpy(text, at, n);
	text[n] = '\0';
	*out = strtod(text, &end);
	return end == text + n && isfinite(*out);
}

static int push_value(struct table *t, double v, unsigned line, struct mu_err *err)
{
	if (t->n == t->cap) {
		size_t cap = t->cap ? 2 * t->cap : 1024;
		double *values = realloc(t->v, cap * sizeof *values);
		if (!values)
			return mu_fail(err, MU_RESOURCE_EXHAUSTED, "%s:%u: no memory", t->source,
				       line);
		t->v = values;
		t->cap = cap;
	}
	t->v[t->n++] = v;
	return 0;
}

static const char *field_end(const char *at, const char *stop)
{
	const char *comma = memchr(at, ',', (size_t)(stop - at));

	return comma ? comma : stop;
}

static bool is_heading(const char *at, const char *stop)
{
	double v;

	for (;;) {
		const char *end = field_end(at, stop);
		if (parse_number(at, end, &v))
			return false;
		if (end == stop)
			return true;
		at = end + 1;
	}
}

/* Formats a field for a message: replaces bytes that are not printable. */
static const char *printable(const char *at, const char *stop, char *out, size_t size)
{
	size_t n = 0;

	for (; at < stop && n + 1 < size; at++)
		out[n++] = *at >= ' ' && *at <= '~' ? *at : '?';
	out[n] = '\0';
	return out;
}

static int read_row(struct table *t, const char *at, const char *stop, unsigned line,
		    struct mu_err *err)
{
	int64_t fields = 0;
	size_t first = t->n;
	char text[128];

	for (;;) {
		const char *end = field_end(at, stop);
		double v;
		if (!parse_number(at, end, &v))
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "%s:%u: column %lld: '%.40s' is not a number", t->source,
				       line, (long long)fields + 1,
				       printable(at, end, text, sizeof(text)));
		int rc = push_value(t, v, line, err);
		if (rc)
			return rc;
		if (++fields > MAX_FIELDS)
			return mu_fail(err, MU_INVALID_ARGUMENT, "%s:%u: more than %d columns",
				       t->source, line, MAX_FIELDS);
		if (end == stop)
			break;
		at = end + 1;
	}
	if (t->rows && fields != t->fields)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "%s:%u: has %lld columns, but the rows before have %lld", t->source,
			       line, (long long)fields, (long long)t->fields);
	if (t->check && !t->check(t->v + first, fields, text, sizeof(text)))
		return mu_fail(err, MU_INVALID_ARGUMENT, "%s:%u: %s", t->source, line, text);
	t->fields = fields;
	t->rows++;
	return 0;
}

static int read_rows(struct table *t, struct mu_span text, struct mu_err *err)
{
	const char *at = text.data, *end = text.data + text.len;
	bool heading_allowed = true; /* until the first line that is not a comment */
	unsigned line;

	if (text.len >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0) /* byte order mark */
		at += 3;
	for (line = 1; at < end; line++) {
		const char *eol = memchr(at, '\n', (size_t)(end - at));
		const char *next = eol ? eol + 1 : end, *stop = eol ? eol : end;
		if (stop > at && stop[-1] == '\r')
			stop--;
		bool is_comment = stop == at || *at == '#';
		bool is_skipped = is_comment || (heading_allowed && is_heading(at, stop));
		size_t n_before = t->n;
		int rc = is_skipped ? 0 : read_row(t, at, stop, line, err);
		if (rc && !(t->skip_bad && rc == -(int)MU_INVALID_ARGUMENT))
			return rc;
		if (rc) {
			mu_warn("data", "left out: %s", err->msg);
			t->n = n_before;
			t->skipped++;
		}
		heading_allowed = heading_allowed && is_comment;
		at = next;
	}
	if (!t->rows)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "%s:%u: ends without a row of comma-separated numbers", t->source,
			       line);
	if (t->skipped)
		mu_warn("data", "%s: %lld of %lld rows were left out", t->source,
			(long long)t->skipped, (long long)(t->rows + t->skipped));
	return 0;
}

int mu_csv_parse(struct mu_tensor *out, struct mu_span text, const char *source, mu_csv_check check,
		 bool skip_bad, struct mu_err *err)
{
	struct table t = {.source = source, .skip_bad = skip_bad, .check = check};
	struct mu_err local_err;
	struct mu_shape shape;
	struct mu_tensor tensor;
	int rc;

	err = err ? err : &local_err; /* the log needs the reason for skipped rows */
	rc = read_rows(&t, text, err);

	if (!rc)
		rc = mu_shape_set(&shape, 2, (int64_t[]){t.rows, t.fields}, err);
	if (!rc)
		rc = mu_tensor_new(&tensor, MU_DOUBLE, &shape, err);
	if (!rc) {
		memcpy(tensor.data, t.v, t.n * sizeof t.v[0]);
		*out = tensor;
	}
	free(t.v);
	return rc;
}

int mu_csv_read(struct mu_tensor *out, const char *path, mu_csv_check check, bool skip_bad,
		struct mu_err *err)
{
	MU_AUTO_BUF text = {0};
	int rc = mu_gz_read_file(&text, path, MAX_TEXT, err);

	return rc ? rc : mu_csv_parse(out, mu_buf_span(&text), path, check, skip_bad, err);
}
