/* SPDX-License-Identifier: Apache-2.0 */
/* The typed, strict getters of doc.h. */
#include "lib/io/doc.h"

static const int64_t MAX_EXACT_INTEGER = 1LL << 53; /* larger integers are not exact as doubles */

/* Returns the child to read; NULL if absent or null. */
static struct mu_doc_node *child_of(const struct mu_doc_node *map, const char *key)
{
	struct mu_doc_node *n = mu_doc_key(map, key);

	return n && n->kind != MU_DOC_NULL ? n : NULL;
}

static int wrong_kind(const struct mu_doc_node *n, enum mu_doc_kind want, struct mu_err *err)
{
	const char *wanted_kind = mu_doc_kind_name(want), *actual_kind = mu_doc_kind_name(n->kind);

	if (n->kind == MU_DOC_STRING)
		return mu_doc_invalid(n, err, "must be %s, got %s: '%.60s'", wanted_kind,
				      actual_kind, n->text);
	if (n->kind == MU_DOC_INT || n->kind == MU_DOC_FLOAT)
		return mu_doc_invalid(n, err, "must be %s, got %s: %g", wanted_kind, actual_kind,
				      n->f);
	/* In YAML, y, n, on and off are booleans unless quoted. */
	return mu_doc_invalid(n, err, "must be %s, got %s%s", wanted_kind, actual_kind,
			      n->kind == MU_DOC_BOOL && want == MU_DOC_STRING ? ": put it in quotes"
									      : "");
}

int mu_doc_opt_text(const struct mu_doc_node *map, const char *key, const char **out,
		    struct mu_err *err)
{
	struct mu_doc_node *n = child_of(map, key);

	if (n && n->kind != MU_DOC_STRING)
		return wrong_kind(n, MU_DOC_STRING, err);
	if (n && strlen(n->text) != n->len)
		return mu_doc_invalid(n, err, "must not contain a NUL character");
	if (n)
		*out = n->text;
	return 0;
}

/* Like kubectl, accepts 1e3 and 2.0 as integers. */
static bool is_integer(const struct mu_doc_node *n)
{
	return n->kind == MU_DOC_INT || (n->kind == MU_DOC_FLOAT && n->f == (double)n->i &&
					 n->i > -MAX_EXACT_INTEGER && n->i < MAX_EXACT_INTEGER);
}

int mu_doc_opt_int(const struct mu_doc_node *map, const char *key, int64_t min, int64_t max,
		   int64_t *out, struct mu_err *err)
{
	struct mu_doc_node *n = child_of(map, key);

	if (!n)
		return 0;
	if (!is_integer(n))
		return wrong_kind(n, MU_DOC_INT, err);
	if (n->i < min || n->i > max)
		return mu_doc_invalid(n, err, "must be between %lld and %lld, got %lld",
				      (long long)min, (long long)max, (long long)n->i);
	*out = n->i;
	return 0;
}

int mu_doc_opt_float(const struct mu_doc_node *map, const char *key, double min, double max,
		     double *out, struct mu_err *err)
{
	struct mu_doc_node *n = child_of(map, key);

	if (!n)
		return 0;
	if (n->kind != MU_DOC_INT && n->kind != MU_DOC_FLOAT)
		return wrong_kind(n, MU_DOC_FLOAT, err);
	if (!(n->f >= min && n->f <= max))
		return mu_doc_invalid(n, err, "must be between %g and %g, got %g", min, max, n->f);
	*out = n->f;
	return 0;
}

int mu_doc_opt_bool(const struct mu_doc_node *map, const char *key, bool *out, struct mu_err *err)
{
	struct mu_doc_node *n = child_of(map, key);

	if (n && n->kind != MU_DOC_BOOL)
		return wrong_kind(n, MU_DOC_BOOL, err);
	if (n)
		*out = n->b;
	return 0;
}

int mu_doc_opt_choice(const struct mu_doc_node *map, const char *key, const char *const *names,
		      int *out, struct mu_err *err)
{
	struct mu_doc_node *n = child_of(map, key);
	MU_AUTO_BUF list = {0};

	if (!n)
		return 0;
	if (n->kind != MU_DOC_STRING)
		return wrong_kind(n, MU_DOC_STRING, err);
	for (int i = 0; names[i]; i++) {
		if (strcmp(names[i], n->text) == 0) {
			*out = i;
			return 0;
		}
		mu_buf_printf(&list, "%s%s", !i ? "" : names[i + 1] ? ", " : " or ", names[i]);
	}
	return mu_doc_invalid(n, err, "must be %s, got '%.60s'", list.data, n->text);
}

static int opt_kind(const struct mu_doc_node *map, const char *key, enum mu_doc_kind kind,
		    struct mu_doc_node **out, struct mu_err *err)
{
	struct mu_doc_node *n = child_of(map, key);

	if (n && n->kind != kind)
		return wrong_kind(n, kind, err);
	*out = n;
	return 0;
}

int mu_doc_opt_map(const struct mu_doc_node *map, const char *key, struct mu_doc_node **out,
		   struct mu_err *err)
{
	return opt_kind(map, key, MU_DOC_MAP, out, err);
}

int mu_doc_opt_list(const struct mu_doc_node *map, const char *key, struct mu_doc_node **out,
		    struct mu_err *err)
{
	return opt_kind(map, key, MU_DOC_LIST, out, err);
}

/* Returns the edit distance of two short words; a large value for long words. */
static unsigned edit_distance(const char *a, const char *b)
{
	enum { MAX = 40 };
	size_t na = strlen(a), nb = strlen(b);
	unsigned row[MAX + 1];

	if (na > MAX || nb > MAX)
		return MAX;
	for (unsigned j = 0; j <= nb; j++)
		row[j] = j;
	for (size_t i = 1; i <= na; i++) {
		unsigned diagonal = row[0];
		row[0] = (unsigned)i;
		for (size_t j = 1; j <= nb; j++) {
			unsigned best = diagonal + ((a[i - 1] | 32) != (b[j - 1] | 32));
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			diagonal = row[j];
			row[j] = best;
		}
	}
	return row[nb];
}

static bool is_known(const char *key, const char *const *known)
{
	while (*known && strcmp(key, *known) != 0)
		known++;
	return *known;
}

int mu_doc_known_keys(const struct mu_doc_node *map, const char *const *known, struct mu_err *err)
{
	mu_doc_each(map, c)
	{
		const char *near = NULL;
		unsigned best = 4; /* words at a larger distance are not suggested */

		if (is_known(c->key, known))
			continue;
		for (const char *const *k = known; *k; k++) {
			unsigned d = edit_distance(c->key, *k);
			if (d < best && 2 * d <= strlen(*k)) {
				best = d;
				near = *k;
			}
		}
		if (near)
			return mu_doc_invalid(c, err, "unknown field; did you mean '%s'?", near);
		return mu_doc_invalid(c, err, "unknown field");
	}
	return 0;
}
