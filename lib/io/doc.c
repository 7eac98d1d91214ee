/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/io/doc.h"

#include <math.h>
#include <stdarg.h>

#include "lib/base/map.h"

struct mu_doc *mu_doc_new(const char *source)
{
	struct mu_doc *d = MU_NEW(struct mu_doc);

	mu_arena_init(&d->arena);
	d->source = mu_arena_strdup(&d->arena, source ? source : "");
	return d;
}

void mu_doc_free(struct mu_doc *d)
{
	if (!d)
		return;
	mu_arena_fini(&d->arena);
	free(d);
}

static struct mu_doc_node *child_n(const struct mu_doc_node *map, const char *key, size_t len)
{
	if (!map || map->kind != MU_DOC_MAP)
		return NULL;
	mu_doc_each(map, c) if (strncmp(c->key, key, len) == 0 && c->key[len] == '\0') return c;
	return NULL;
}

struct mu_doc_node *mu_doc_key(const struct mu_doc_node *map, const char *key)
{
	return child_n(map, key, strlen(key));
}

struct mu_doc_node *mu_doc_get(const struct mu_doc_node *map, const char *path)
{
	const struct mu_doc_node *at = map;

	for (;;) {
		size_t n = strcspn(path, ".");
		struct mu_doc_node *c = child_n(at, path, n);
		if (!c || !path[n])
			return c;
		at = c;
		path += n + 1;
	}
}

const struct mu_doc_node *mu_doc_section(const struct mu_doc_node *map, const char *path)
{
	const struct mu_doc_node *n = mu_doc_get(map, path);

	return n && n->kind != MU_DOC_NULL ? n : NULL;
}

const char *mu_doc_text(const struct mu_doc_node *map, const char *path, const char *default_value)
{
	const struct mu_doc_node *n = mu_doc_get(map, path);

	return n && n->kind == MU_DOC_STRING ? n->text : default_value;
}

int64_t mu_doc_int(const struct mu_doc_node *map, const char *path, int64_t default_value)
{
	const struct mu_doc_node *n = mu_doc_get(map, path);

	return n && (n->kind == MU_DOC_INT || n->kind == MU_DOC_FLOAT) ? n->i : default_value;
}

bool mu_doc_bool(const struct mu_doc_node *map, const char *path, bool default_value)
{
	const struct mu_doc_node *n = mu_doc_get(map, path);

	return n && n->kind == MU_DOC_BOOL ? n->b : default_value;
}

void mu_doc_path(const struct mu_doc_node *n, struct mu_buf *out)
{
	if (!n || !n->parent)
		return;
	mu_doc_path(n->parent, out);
	if (n->parent->kind == MU_DOC_MAP) {
		mu_buf_printf(out, "%s%.80s", out->len ? "." : "", n->key);
		return;
	}
	unsigned at = 0;
	for (const struct mu_doc_node *c = n->parent->first; c && c != n; c = c->next)
		at++;
	mu_buf_printf(out, "[%u]", at);
}

const char *mu_doc_kind_name(enum mu_doc_kind k)
{
	static const char *const names[] = {
	    [MU_DOC_NULL] = "null",          [MU_DOC_BOOL] = "true or false",
	    [MU_DOC_INT] = "a whole number", [MU_DOC_FLOAT] = "a number",
	    [MU_DOC_STRING] = "a string",    [MU_DOC_LIST] = "a list",
	    [MU_DOC_MAP] = "a map",
	};

	return names[k];
}

int mu_doc_fail(const struct mu_doc_node *n, struct mu_err *err, enum mu_code code, const char *fmt,
		...)
{
	MU_AUTO_BUF path = {0};
	MU_AUTO_BUF msg = {0};
	va_list ap;

	if (n && *n->doc->source)
		mu_buf_printf(&msg, "%s:", n->doc->source);
	if (n && n->line)
		mu_buf_printf(&msg, "%u:", n->line);
	if (msg.len)
		mu_buf_putc(&msg, ' ');
	mu_doc_path(n, &path);
	if (path.len)
		mu_buf_printf(&msg, "%s: ", path.data);
	va_start(ap, fmt);
	mu_buf_vprintf(&msg, fmt, ap);
	va_end(ap);
	return mu_fail(err, code, "%s", msg.data ? msg.data : "");
}

/* For at most this number of keys, a comparison of all pairs is faster than a hash map. */
enum { MAX_PAIRWISE = 24 };

static struct mu_doc_node *find_duplicate_pairwise(const struct mu_doc_node *map)
{
	mu_doc_each(map, c)
	{
		for (const struct mu_doc_node *earlier = map->first; earlier != c;
		     earlier = earlier->next)
			if (*earlier->key == *c->key && strcmp(earlier->key, c->key) == 0)
				return c;
	}
	return NULL;
}

struct mu_doc_node *mu_doc_duplicate(const struct mu_doc_node *map)
{
	struct mu_doc_node *found = NULL;
	struct mu_map keys;

	if (map->n <= MAX_PAIRWISE)
		return find_duplicate_pairwise(map);
	mu_map_init(&keys);
	mu_doc_each(map, c)
	{
		if (mu_map_put(&keys, c->key, c)) {
			found = c;
			break;
		}
	}
	mu_map_fini(&keys);
	return found;
}

struct mu_doc_node *mu_doc_add(struct mu_doc *d, struct mu_doc_node *parent, const char *key,
			       enum mu_doc_kind kind)
{
	struct mu_doc_node *n = MU_ARENA_NEW(&d->arena, struct mu_doc_node);

	n->kind = kind;
	n->doc = d;
	n->text = "";
	n->parent = parent;
	n->key = key ? mu_arena_strdup(&d->arena, key) : NULL;
	d->n_nodes++;
	if (!parent) {
		d->root = n;
		return n;
	}
	if (parent->last)
		parent->last->next = n;
	else
		parent->first = n;
	parent->last = n;
	parent->n++;
	return n;
}

struct mu_doc_node *mu_doc_add_text(struct mu_doc *d, struct mu_doc_node *parent, const char *key,
				    const char *text, size_t len)
{
	struct mu_doc_node *n = mu_doc_add(d, parent, key, MU_DOC_STRING);

	n->text = mu_arena_strndup(&d->arena, text, len);
	n->len = len;
	return n;
}

struct mu_doc_node *mu_doc_add_str(struct mu_doc *d, struct mu_doc_node *parent, const char *key,
				   const char *text)
{
	return mu_doc_add_text(d, parent, key, text, strlen(text));
}

struct mu_doc_node *mu_doc_add_int(struct mu_doc *d, struct mu_doc_node *parent, const char *key,
				   int64_t v)
{
	struct mu_doc_node *n = mu_doc_add(d, parent, key, MU_DOC_INT);

	n->i = v;
	n->f = (double)v;
	return n;
}

struct mu_doc_node *mu_doc_add_float(struct mu_doc *d, struct mu_doc_node *parent, const char *key,
				     double v)
{
	struct mu_doc_node *n = mu_doc_add(d, parent, key, MU_DOC_FLOAT);

	n->f = v;
	n->i = v >= 9.2e18 ? INT64_MAX : v <= -9.2e18 ? INT64_MIN : isnan(v) ? 0 : (int64_t)v;
	return n;
}

struct mu_doc_node *mu_doc_add_bool(struct mu_doc *d, struct mu_doc_node *parent, const char *key,
				    bool v)
{
	struct mu_doc_node *n = mu_doc_add(d, parent, key, MU_DOC_BOOL);

	n->b = v;
	return n;
}

struct mu_doc_node *mu_doc_add_copy(struct mu_doc *d, struct mu_doc_node *parent, const char *key,
				    const struct mu_doc_node *from)
{
	struct mu_doc_node *n = mu_doc_add(d, parent, key, from->kind);

	n->line = from->line;
	n->b = from->b;
	n->i = from->i;
	n->f = from->f;
	n->len = from->len;
	n->text = !from->len       ? ""
		  : from->doc == d ? from->text
				   : mu_arena_strndup(&d->arena, from->text, from->len);
	mu_doc_each(from, c) mu_doc_add_copy(d, n, c->key, c);
	return n;
}
