/* SPDX-License-Identifier: Apache-2.0 */
/* What is not wanted is stepped over by counting brackets.  What is becomes cJSON's nodes, made
 * here: reading each kept value with its parser took longer than stepping over all the others, most
 * of it for names, which are those of the table.
 *
 * A member's name with an escape in it is none that a table has. */
#include "lib/kube/kube_json.h"

enum { ELEMENT_MAX = 8 << 20, ENVELOPE_MAX = 64 << 10, DEPTH_MAX = 1000 };

struct cursor {
	const char *at, *end;
};

static void skip_space(struct cursor *c)
{
	while (c->at < c->end && (unsigned char)*c->at <= ' ')
		c->at++;
}

/* Over a string; `inner` is what is between its quotes. */
static bool skip_string(struct cursor *c, struct mu_span *inner)
{
	const char *from = ++c->at;

	while (c->at < c->end) {
		const char *quote = memchr(c->at, '"', (size_t)(c->end - c->at));
		const char *back = quote;

		if (!quote)
			return false;
		c->at = quote + 1;
		while (back > from && back[-1] == '\\')
			back--;
		if ((quote - back) % 2 == 0) {
			*inner = (struct mu_span){from, (size_t)(quote - from)};
			return true;
		}
	}
	return false;
}

static bool ends_word(char b)
{
	return (unsigned char)b <= ' ' || b == ',' || b == ']' || b == '}';
}

/* Over any value. */
static bool skip_value(struct cursor *c)
{
	struct mu_span ignored;
	size_t depth = 0;

	skip_space(c);
	while (c->at < c->end) {
		switch (*c->at) {
		case '"':
			if (!skip_string(c, &ignored))
				return false;
			if (!depth)
				return true;
			continue;
		case '{':
		case '[':
			depth++;
			break;
		case '}':
		case ']':
			if (!depth)
				return false;
			if (!--depth) {
				c->at++;
				return true;
			}
			break;
		case ',':
		case ':':
			if (!depth)
				return false;
			break;
		case ' ':
		case '\t':
		case '\r':
		case '\n':
			break;
		default: /* a number or a word: up to what can follow one */
			do
				c->at++;
			while (c->at < c->end && !ends_word(*c->at));
			if (!depth)
				return true;
			continue;
		}
		c->at++;
	}
	return false;
}

static bool take(struct cursor *c, char wanted)
{
	skip_space(c);
	if (c->at >= c->end || *c->at != wanted)
		return false;
	c->at++;
	return true;
}

static const struct kube_fields *field_of(const struct kube_fields *fields, struct mu_span name)
{
	for (; fields->name; fields++)
		if (mu_span_is(name, fields->name))
			return fields;
	return NULL;
}

/* Escapes and numbers are cJSON's to read. */
static cJSON *whole(struct mu_span text)
{
	return cJSON_ParseWithLength(text.data, text.len);
}

static char *copy(struct mu_span text)
{
	char *out = cJSON_malloc(text.len + 1);

	if (out) {
		memcpy(out, text.data, text.len);
		out[text.len] = 0;
	}
	return out;
}

/* What is between the quotes of `text`, as a string of its own. */
static char *unquoted(struct mu_span text)
{
	struct mu_span inner = {text.data + 1, text.len - 2};
	cJSON *escaped;
	char *out;

	if (!memchr(inner.data, '\\', inner.len))
		return copy(inner);
	escaped = whole(text);
	out = escaped ? mu_steal(&escaped->valuestring) : NULL;
	cJSON_Delete(escaped);
	return out;
}

/* A string node with that text, which it takes; NULL when there is no text or no memory. */
static cJSON *text_node(char *text)
{
	cJSON *out = text ? cJSON_CreateNull() : NULL;

	if (out) {
		out->type = cJSON_String;
		out->valuestring = text;
	} else {
		cJSON_free(text);
	}
	return out;
}

/* Appends a member whose name outlives the object. */
static void put_member(cJSON *to, const char *name, cJSON *item)
{
	item->string = (char *)name;
	item->type |= cJSON_StringIsConst;
	cJSON_AddItemToArray(to, item);
}

static cJSON *string(struct cursor *c)
{
	const char *from = c->at;
	struct mu_span inner;
	char *text = skip_string(c, &inner)
			 ? unquoted((struct mu_span){from, (size_t)(c->at - from)})
			 : NULL;

	return text_node(text);
}

/* A number, true, false or null. */
static cJSON *word(struct cursor *c)
{
	const char *from = c->at;

	return skip_value(c) ? whole((struct mu_span){from, (size_t)(c->at - from)}) : NULL;
}

const struct kube_fields kube_as_text[] = {{0}};

/* Any value, unread. */
static cJSON *as_it_stands(struct cursor *c)
{
	const char *from;
	cJSON *out = NULL;
	char *text;

	skip_space(c);
	from = c->at;
	if (!skip_value(c))
		return NULL;
	text = copy((struct mu_span){from, (size_t)(c->at - from)});
	if (text && (out = cJSON_CreateNull())) {
		out->type = cJSON_Raw;
		out->valuestring = mu_steal(&text);
	}
	cJSON_free(text);
	return out;
}

static cJSON *value(struct cursor *c, const struct kube_fields *fields, int depth);

/* A member with its value, for `out`; false when it is malformed. */
static bool member(struct cursor *c, cJSON *out, const struct kube_fields *fields, int depth)
{
	const struct kube_fields *f = NULL;
	const char *from;
	struct mu_span name;
	cJSON *v;

	skip_space(c);
	from = c->at;
	if (c->at >= c->end || *c->at != '"' || !skip_string(c, &name) || !take(c, ':'))
		return false;
	if (fields && !(f = field_of(fields, name)))
		return skip_value(c);
	v = value(c, f ? f->below : NULL, depth);
	if (!v)
		return false;
	if (f) {
		put_member(out, f->name, v);
		return true;
	}
	v->string = unquoted((struct mu_span){from, name.len + 2});
	cJSON_AddItemToArray(out, v);
	return v->string != NULL;
}

/* Of objects and arrays, after their first bracket; NULL when one is malformed. */
static cJSON *members(struct cursor *c, cJSON *out, const struct kube_fields *fields, int depth)
{
	char end = cJSON_IsObject(out) ? '}' : ']';

	c->at++;
	if (!out || take(c, end))
		return out;
	do {
		cJSON *v;

		if (end == '}') {
			if (!member(c, out, fields, depth))
				goto malformed;
			continue;
		}
		skip_space(c);
		/* one of objects; other elements have no members to choose from */
		v = value(c, c->at < c->end && *c->at == '{' ? fields : NULL, depth);
		if (!v)
			goto malformed;
		cJSON_AddItemToArray(out, v);
	} while (take(c, ','));
	if (take(c, end))
		return out;
malformed:
	cJSON_Delete(out);
	return NULL;
}

/* fields NULL: all of it. */
static cJSON *value(struct cursor *c, const struct kube_fields *fields, int depth)
{
	if (fields == kube_as_text)
		return as_it_stands(c);
	skip_space(c);
	if (c->at >= c->end || depth > DEPTH_MAX)
		return NULL;
	switch (*c->at) {
	case '{':
		return members(c, cJSON_CreateObject(), fields, depth + 1);
	case '[':
		return members(c, cJSON_CreateArray(), fields, depth + 1);
	case '"':
		return string(c);
	default:
		return word(c);
	}
}

cJSON *kube_json(struct mu_span text, const struct kube_fields *fields)
{
	struct cursor c = {text.data, text.data + text.len};
	cJSON *out = value(&c, fields, 0);

	skip_space(&c);
	if (out && c.at == c.end && cJSON_IsObject(out))
		return out;
	cJSON_Delete(out);
	return NULL;
}

cJSON *kube_json_event(struct mu_span text, const struct kube_fields *fields)
{
	const struct kube_fields event[] = {
	    {.name = "type"}, {.name = "object", .below = fields}, {0}};
	cJSON *out = kube_json(text, event);
	const char *type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(out, "type"));

	if (!type || strcmp(type, "ERROR") != 0)
		return out;
	cJSON_Delete(out);
	return kube_json(text, NULL);
}

/* ---- lists ---- */

void kube_items_fini(struct kube_items *items)
{
	mu_buf_fini(&items->envelope);
	mu_buf_fini(&items->element);
}

/* Inside of "items" at depth 1 of the list? */
static bool begins_items(const struct kube_items *s)
{
	static const char name[] = "\"items\":";
	size_t n = sizeof(name) - 1;

	return s->depth == 1 && s->envelope.len >= n &&
	       memcmp(s->envelope.data + s->envelope.len - n, name, n) == 0;
}

static int element_ends(struct kube_items *s, struct mu_err *err)
{
	int rc = s->fn(s->arg, mu_buf_span(&s->element), err);

	mu_buf_clear(&s->element);
	return rc;
}

/* What one byte does outside of strings; depth is 2 between the elements. */
static int structure(struct kube_items *s, char b, bool *keep, struct mu_err *err)
{
	switch (b) {
	case '"':
		s->in_string = true;
		return 0;
	case '{':
	case '[':
		if (b == '[' && begins_items(s))
			s->in_items = true;
		return ++s->depth > DEPTH_MAX
			   ? mu_fail(err, MU_INVALID_ARGUMENT, "a list that is nested too deeply")
			   : 0;
	case '}':
	case ']':
		if (--s->depth < 0)
			return mu_fail(err, MU_UNAVAILABLE, "a list that is no JSON");
		if (s->in_items && s->depth == 1)
			s->in_items = false;
		if (s->in_items && s->depth == 2) {
			mu_buf_putc(&s->element, b);
			*keep = false;
			return element_ends(s, err);
		}
		return 0;
	default:
		/* spaces say nothing; commas between elements neither */
		*keep = (unsigned char)b > ' ' && !(s->in_items && s->depth == 2 && b == ',');
		return 0;
	}
}

int kube_items_feed(void *items, const char *data, size_t len, struct mu_err *err)
{
	struct kube_items *s = items;

	for (size_t i = 0; i < len; i++) {
		bool keep = true;
		int rc = 0;
		struct mu_buf *to;

		if (s->in_string) {
			if (s->escaped)
				s->escaped = false;
			else if (data[i] == '\\')
				s->escaped = true;
			else if (data[i] == '"')
				s->in_string = false;
		} else {
			rc = structure(s, data[i], &keep, err);
		}
		if (rc < 0)
			return rc;
		/* the bracket that opens the items is the envelope's */
		to = s->in_items && (s->depth > 2 || (s->depth == 2 && data[i] != '['))
			 ? &s->element
			 : &s->envelope;
		if (keep)
			mu_buf_putc(to, data[i]);
		if (s->element.len > ELEMENT_MAX || s->envelope.len > ENVELOPE_MAX)
			return mu_fail(err, MU_RESOURCE_EXHAUSTED, "an answer that is too large");
	}
	return 0;
}
