/* SPDX-License-Identifier: Apache-2.0 */
/* Converts libyaml's events to nodes.  An alias copies the node of its anchor, after checking that
 * the copy does not exceed the limit of nodes. */
#include "lib/io/yaml.h"

#include <errno.h>
#include <math.h>
#include <yaml.h>

#include "lib/base/map.h"
#include "lib/io/json.h"

/* A manifest has a few hundred values; the limit allows long lists of jobs. */
enum { MAX_NODES = 100000 };

struct reader {
	yaml_parser_t yaml;
	const char *source;
	struct mu_span text;
	struct mu_doc *doc;
	struct mu_map anchors; /* name -> finished struct mu_doc_node * */
	unsigned depth;
};

static unsigned line_of(const yaml_event_t *e)
{
	return (unsigned)e->start_mark.line + 1;
}

static int yaml_fail_at(const struct reader *r, unsigned line, struct mu_err *err,
			const char *problem)
{
	return mu_fail(err, MU_INVALID_ARGUMENT, "%s:%u: %s", r->source, line, problem);
}

/* Returns the usual cause of libyaml's error message. */
static const char *hint(const char *problem)
{
	static const struct {
		const char *problem, *hint;
	} hints[] = {
	    {"found character that cannot start any token",
	     ": indent with spaces, not tabs, and quote what begins with @ or `"},
	    {"mapping values are not allowed in this context",
	     ": is the line indented as those around it, and a value with ': ' quoted?"},
	    {"did not find expected key", ": is the line indented as those around it?"},
	    {"could not find expected ':'", ": a key ends with ':'"},
	    {"did not find expected ',' or '}'", ": is a '}' missing?"},
	    {"did not find expected ',' or ']'", ": is a ']' missing?"},
	};

	for (unsigned i = 0; i < MU_COUNT(hints); i++)
		if (strcmp(problem, hints[i].problem) == 0)
			return hints[i].hint;
	return "";
}

/* Strings in documents are NUL-terminated, so a NUL in a scalar is an error. */
static bool contains_nul(const yaml_event_t *e)
{
	return e->type == YAML_SCALAR_EVENT &&
	       memchr(e->data.scalar.value, 0, e->data.scalar.length);
}

/* Counts the lines before an offset: errors in the encoding have an offset and no line. */
static size_t lines_before(struct mu_span text, size_t offset)
{
	size_t n = 0;

	for (size_t i = 0; i < offset && i < text.len; i++)
		n += text.data[i] == '\n';
	return n;
}

static int next_event(struct reader *r, yaml_event_t *e, struct mu_err *err)
{
	const yaml_parser_t *p = &r->yaml;
	const char *problem;
	size_t line;

	if (yaml_parser_parse(&r->yaml, e)) {
		line = line_of(e);
		if (!contains_nul(e))
			return 0;
		yaml_event_delete(e);
		return yaml_fail_at(r, (unsigned)line, err,
				    "a string contains a NUL character (\\0)");
	}
	problem = p->problem ? p->problem : "cannot be read";
	line = p->error == YAML_READER_ERROR ? lines_before(r->text, p->problem_offset)
	       : p->problem_mark.line        ? p->problem_mark.line
					     : p->context_mark.line;
	return mu_fail(err, MU_INVALID_ARGUMENT, "%s:%zu: not valid YAML: %s%s", r->source,
		       line + 1, problem, hint(problem));
}

static bool add_number(struct mu_doc *d, struct mu_doc_node *parent, const char *key,
		       const char *text, struct mu_doc_node **out)
{
	const char *digits = text + (*text == '-' || *text == '+');
	char *end;

	if (strcmp(digits, ".inf") == 0 || strcmp(digits, ".Inf") == 0 ||
	    strcmp(digits, ".INF") == 0) {
		*out = mu_doc_add_float(d, parent, key, *text == '-' ? -INFINITY : INFINITY);
		return true;
	}
	if (!(*digits >= '0' && *digits <= '9') && !(*digits == '.' && digits[1] >= '0'))
		return false;
	bool is_octal =
	    digits[0] == '0' && digits[1] == 'o' && digits[2] >= '0' && digits[2] <= '7';
	errno = 0;
	long long i = is_octal ? strtoll(digits + 2, &end, 8) : strtoll(text, &end, 0);
	if (*end == '\0' && errno == 0 && end != digits + 2 * is_octal) {
		*out = mu_doc_add_int(d, parent, key, is_octal && *text == '-' ? -i : i);
		return true;
	}
	if (strpbrk(digits, "xXpPnN"))
		return false;
	double f = strtod(text, &end);
	if (*end)
		return false;
	*out = mu_doc_add_float(d, parent, key, f);
	return true;
}

static struct mu_doc_node *add_plain(struct mu_doc *d, struct mu_doc_node *parent, const char *key,
				     const char *text, size_t len)
{
	static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
	static const char *const true_words[] = {"true", "True", "TRUE", "yes", "Yes", "YES",
						 "on",   "On",   "ON",   "y",   "Y",   NULL};
	static const char *const false_words[] = {"false", "False", "FALSE", "no", "No", "NO",
						  "off",   "Off",   "OFF",   "n",  "N",  NULL};
	struct mu_doc_node *n;

	if (mu_word_index(text, nulls) >= 0)
		return mu_doc_add(d, parent, key, MU_DOC_NULL);
	if (mu_word_index(text, true_words) >= 0)
		return mu_doc_add_bool(d, parent, key, true);
	if (mu_word_index(text, false_words) >= 0)
		return mu_doc_add_bool(d, parent, key, false);
	if (add_number(d, parent, key, text, &n))
		return n;
	return mu_doc_add_text(d, parent, key, text, len);
}

static unsigned count_nodes(const struct mu_doc_node *n, unsigned depth, unsigned *deepest)
{
	unsigned sum = 1;

	if (depth > *deepest)
		*deepest = depth;
	mu_doc_each(n, c) sum += count_nodes(c, depth + 1, deepest);
	return sum;
}

static int add_copy(struct reader *r, struct mu_doc_node *parent, const char *key, unsigned line,
		    const struct mu_doc_node *from, struct mu_doc_node **out, struct mu_err *err)
{
	unsigned deepest = 0;
	unsigned n_copies = count_nodes(from, r->depth, &deepest);

	if (n_copies > MAX_NODES - r->doc->n_nodes || deepest > MU_DOC_MAX_DEPTH)
		return yaml_fail_at(r, line, err,
				    "aliases expand to more than is allowed in one document");
	*out = mu_doc_add_copy(r->doc, parent, key, from);
	return 0;
}

static int add_alias(struct reader *r, struct mu_doc_node *parent, const char *key,
		     const yaml_event_t *e, struct mu_doc_node **out, struct mu_err *err)
{
	const struct mu_doc_node *target =
	    mu_map_get(&r->anchors, (const char *)e->data.alias.anchor);

	if (!target)
		return yaml_fail_at(r, line_of(e), err, "an alias without its anchor before it");
	return add_copy(r, parent, key, line_of(e), target, out, err);
}

/* The merge key (<<) of a map.  It is not one of the map's children. */
struct merge {
	struct mu_doc_node value; /* a list with the value; empty without a merge key */
	unsigned n_above;         /* children of the map before the merge key */
};

static int merge_fail(const struct reader *r, const struct mu_doc_node *from, struct mu_err *err,
		      const char *problem, const char *key)
{
	return mu_fail(err, MU_INVALID_ARGUMENT, "%s:%u: the merge key (<<) %s%s", r->source,
		       from->line, problem, key);
}

/* Position of a key of a map, relative to the merge key. */
static char above[] = "above", below[] = "below";

/* Adds the keys of the map `from` that are missing in `map`, whose keys are `keys`.  In kubectl a
 * merge key replaces keys above it, in other parsers it does not.  Such a file is therefore
 * invalid. */
static int merge_map(struct reader *r, struct mu_doc_node *map, struct mu_map *keys,
		     const struct mu_doc_node *from, struct mu_err *err)
{
	if (from->kind != MU_DOC_MAP)
		return merge_fail(r, from, err, "takes a map or a list of maps", "");
	mu_doc_each(from, c)
	{
		const char *position = mu_map_get(keys, c->key);
		struct mu_doc_node *copy;
		if (position == above)
			return merge_fail(r, from, err, "must be above ", c->key);
		if (position)
			continue;
		int rc = add_copy(r, map, c->key, c->line, c, &copy, err);
		if (rc)
			return rc;
		mu_map_put(keys, c->key, below);
	}
	return 0;
}

/* In a list of maps, an earlier map has precedence over a later map. */
static int merge_all(struct reader *r, struct mu_doc_node *map, const struct merge *merge,
		     struct mu_err *err)
{
	const struct mu_doc_node *value = merge->value.first, *from = value;
	struct mu_map keys;
	unsigned i = 0;
	int rc = 0;

	if (!value)
		return 0;
	if (value->kind == MU_DOC_LIST)
		from = value->first;
	mu_map_init(&keys);
	mu_doc_each(map, c) mu_map_put(&keys, c->key, i++ < merge->n_above ? above : below);
	for (; from && !rc; from = from->next)
		rc = merge_map(r, map, &keys, from, err);
	mu_map_fini(&keys);
	return rc;
}

static int check_tag(const struct reader *r, const char *tag, unsigned line, struct mu_err *err)
{
	static const char core[] = "tag:yaml.org,2002:";

	if (!tag || strcmp(tag, "!") == 0 || strncmp(tag, core, sizeof core - 1) == 0)
		return 0;
	return yaml_fail_at(r, line, err, "tags are not used here");
}

static int yaml_add_value(struct reader *r, struct mu_doc_node *parent, const char *key,
			  const yaml_event_t *e, struct mu_doc_node **out, struct mu_err *err);

static int add_member(struct reader *r, struct mu_doc_node *map, struct merge *merge,
		      const yaml_event_t *key, struct mu_err *err)
{
	struct mu_doc_node *parent = map, *child;
	const char *name;
	yaml_event_t e;

	if (key->type != YAML_SCALAR_EVENT)
		return yaml_fail_at(r, line_of(key), err, "a key must be a plain word");
	name = (const char *)key->data.scalar.value;
	if (key->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && strcmp(name, "<<") == 0) {
		if (merge->value.n)
			return yaml_fail_at(r, line_of(key), err,
					    "the merge key (<<) is given twice: it takes a list");
		merge->n_above = map->n;
		parent = &merge->value;
		name = NULL;
	}
	int rc = next_event(r, &e, err);
	if (rc)
		return rc;
	rc = yaml_add_value(r, parent, name, &e, &child, err);
	yaml_event_delete(&e);
	if (!rc)
		child->line = line_of(key); /* a block begins below its key */
	return rc;
}

static int add_members(struct reader *r, struct mu_doc_node *map, struct mu_err *err)
{
	struct merge merge = {{.kind = MU_DOC_LIST, .parent = map, .key = "<<", .doc = r->doc}, 0};
	struct mu_doc_node *duplicate;

	for (;;) {
		yaml_event_t e;
		int rc = next_event(r, &e, err);
		if (rc)
			return rc;
		bool is_end = e.type == YAML_MAPPING_END_EVENT;
		rc = is_end ? 0 : add_member(r, map, &merge, &e, err);
		yaml_event_delete(&e);
		if (rc)
			return rc;
		if (is_end)
			break;
	}
	duplicate = mu_doc_duplicate(map);
	if (duplicate)
		return mu_doc_invalid(duplicate, err, "is given twice");
	return merge_all(r, map, &merge, err);
}

static int add_items(struct reader *r, struct mu_doc_node *list, struct mu_err *err)
{
	for (;;) {
		struct mu_doc_node *child;
		yaml_event_t e;
		int rc = next_event(r, &e, err);
		if (rc)
			return rc;
		bool is_end = e.type == YAML_SEQUENCE_END_EVENT;
		rc = is_end ? 0 : yaml_add_value(r, list, NULL, &e, &child, err);
		yaml_event_delete(&e);
		if (rc || is_end)
			return rc;
	}
}

static int yaml_add_value(struct reader *r, struct mu_doc_node *parent, const char *key,
			  const yaml_event_t *e, struct mu_doc_node **out, struct mu_err *err)
{
	const char *anchor = NULL, *tag = NULL;
	struct mu_doc_node *n = NULL;
	int rc = 0;

	if (r->doc->n_nodes >= MAX_NODES)
		return yaml_fail_at(r, line_of(e), err,
				    "more values than are allowed in one document");
	if (r->depth >= MU_DOC_MAX_DEPTH)
		return yaml_fail_at(r, line_of(e), err, "nested too deep");
	switch (e->type) {
	case YAML_ALIAS_EVENT:
		return add_alias(r, parent, key, e, out, err);
	case YAML_SCALAR_EVENT:
		anchor = (const char *)e->data.scalar.anchor;
		tag = (const char *)e->data.scalar.tag;
		const char *text = (const char *)e->data.scalar.value;
		if (e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && !tag)
			n = add_plain(r->doc, parent, key, text, e->data.scalar.length);
		else
			n = mu_doc_add_text(r->doc, parent, key, text, e->data.scalar.length);
		break;
	case YAML_SEQUENCE_START_EVENT:
		anchor = (const char *)e->data.sequence_start.anchor;
		tag = (const char *)e->data.sequence_start.tag;
		n = mu_doc_add(r->doc, parent, key, MU_DOC_LIST);
		break;
	case YAML_MAPPING_START_EVENT:
		anchor = (const char *)e->data.mapping_start.anchor;
		tag = (const char *)e->data.mapping_start.tag;
		n = mu_doc_add(r->doc, parent, key, MU_DOC_MAP);
		break;
	default:
		return yaml_fail_at(r, line_of(e), err, "not valid YAML");
	}
	n->line = line_of(e);
	rc = check_tag(r, tag, n->line, err);
	r->depth++;
	if (!rc && n->kind == MU_DOC_LIST)
		rc = add_items(r, n, err);
	else if (!rc && n->kind == MU_DOC_MAP)
		rc = add_members(r, n, err);
	r->depth--;
	if (rc)
		return rc;
	if (anchor)
		mu_map_put(&r->anchors, anchor, n);
	*out = n;
	return 0;
}

/* Reads one document; leaves *out NULL if it is empty. */
static int read_document(struct reader *r, struct mu_doc **out, struct mu_err *err)
{
	struct mu_doc_node *root = NULL;
	yaml_event_t e;
	int rc = next_event(r, &e, err);

	if (rc)
		return rc;
	r->doc = mu_doc_new(r->source);
	mu_map_init(&r->anchors);
	rc = yaml_add_value(r, NULL, NULL, &e, &root, err);
	yaml_event_delete(&e);
	mu_map_fini(&r->anchors);
	if (!rc && !(rc = next_event(r, &e, err)))
		yaml_event_delete(&e); /* the document's end */
	if (rc || root->kind == MU_DOC_NULL)
		mu_doc_free(r->doc);
	else
		*out = r->doc;
	r->doc = NULL;
	return rc;
}

static int read_stream(struct reader *r, struct mu_doc **docs, unsigned *n, struct mu_err *err)
{
	for (;;) {
		yaml_event_t e;
		int rc = next_event(r, &e, err);
		if (rc)
			return rc;
		yaml_event_type_t type = e.type;
		unsigned line = line_of(&e);
		yaml_event_delete(&e);
		if (type == YAML_STREAM_END_EVENT)
			return 0;
		if (type != YAML_DOCUMENT_START_EVENT)
			continue; /* the stream's start */
		if (*n == MU_YAML_MAX_DOCS)
			return yaml_fail_at(r, line, err, "too many documents in one file");
		docs[*n] = NULL;
		rc = read_document(r, &docs[*n], err);
		if (rc)
			return rc;
		*n += docs[*n] != NULL;
	}
}

/* libyaml rejects some JSON (surrogate pairs, keys of more than 1024 characters) and parses some
 * differently (Unicode line breaks in strings).  Therefore JSON text is parsed as JSON; libyaml
 * adds the line numbers if it can parse the text too. */
static bool read_json(struct mu_doc **out, struct mu_span text, const char *source)
{
	size_t i = 0;

	while (i < text.len && strchr(" \t\r\n\xef\xbb\xbf", text.data[i]))
		i++;
	return i < text.len && text.data[i] == '{' && !mu_json_parse(out, text, source, NULL);
}

static void copy_lines(struct mu_doc_node *to, const struct mu_doc_node *from)
{
	const struct mu_doc_node *from_child = from->first;

	to->line = from->line;
	for (struct mu_doc_node *c = to->first; c && from_child;
	     c = c->next, from_child = from_child->next)
		copy_lines(c, from_child);
}

int mu_yaml_parse_all(struct mu_doc ***out, unsigned *n, struct mu_span text, const char *source,
		      struct mu_err *err)
{
	struct reader r = {.source = source, .text = text};
	MU_AUTO_FREE struct mu_doc **docs = NULL;
	struct mu_doc *json;
	unsigned count = 0;

	if (text.len > MU_DOC_MAX_BYTES)
		return mu_fail(err, MU_INVALID_ARGUMENT, "%s: larger than %d bytes", source,
			       MU_DOC_MAX_BYTES);
	if (!yaml_parser_initialize(&r.yaml))
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for a YAML parser");
	docs = MU_NEW_ARRAY(struct mu_doc *, MU_YAML_MAX_DOCS);
	yaml_parser_set_input_string(&r.yaml, (const unsigned char *)(text.data ? text.data : ""),
				     text.len);
	int rc = read_stream(&r, docs, &count, err);
	yaml_parser_delete(&r.yaml);
	if (read_json(&json, text, source)) {
		if (count)
			copy_lines(json->root, docs[0]->root);
		while (count)
			mu_doc_free(docs[--count]);
		docs[count++] = json;
		rc = 0;
	}
	if (rc) {
		while (count)
			mu_doc_free(docs[--count]);
		return rc;
	}
	*out = mu_steal(&docs);
	*n = count;
	return 0;
}

int mu_yaml_parse(struct mu_doc **out, struct mu_span text, const char *source, struct mu_err *err)
{
	MU_AUTO_FREE struct mu_doc **docs = NULL;
	unsigned n;
	int rc = mu_yaml_parse_all(&docs, &n, text, source, err);

	if (rc)
		return rc;
	if (n != 1) {
		for (unsigned i = 0; i < n; i++)
			mu_doc_free(docs[i]);
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "%s: holds %u documents where one is expected%s", source, n,
			       n ? ": put each in a file of its own" : "");
	}
	*out = docs[0];
	return 0;
}
