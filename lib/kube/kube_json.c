/* SPDX-License-Identifier: Apache-2.0 */
/* The walk goes only as deep as the table of wanted members does; below that values are stepped
 * over by counting brackets, and kept ones are cJSON's to read, which has a limit of its own.
 *
 * A member's name with an escape in it is no name that anybody wants. */
#include "lib/kube/kube_json.h"

enum { ELEMENT_MAX = 8 << 20, ENVELOPE_MAX = 64 << 10, LIST_DEPTH_MAX = 1000 };

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

static cJSON *whole(struct cursor *c)
{
	const char *from;

	skip_space(c);
	from = c->at;
	return skip_value(c) ? cJSON_ParseWithLength(from, (size_t)(c->at - from)) : NULL;
}

static cJSON *value(struct cursor *c, const struct kube_fields *fields);

/* NULL when it is malformed, as below. */
static cJSON *object(struct cursor *c, const struct kube_fields *fields)
{
	cJSON *out = cJSON_CreateObject();
	struct mu_span name = {0};

	c->at++;
	if (take(c, '}'))
		return out;
	do {
		const struct kube_fields *f;
		char key[64];
		cJSON *v = NULL;

		skip_space(c);
		if (c->at >= c->end || *c->at != '"' || !skip_string(c, &name) || !take(c, ':'))
			goto malformed;
		f = name.len < sizeof(key) ? field_of(fields, name) : NULL;
		if (f ? !(v = value(c, f->below)) : !skip_value(c))
			goto malformed;
		if (!v)
			continue;
		memcpy(key, name.data, name.len);
		key[name.len] = 0;
		cJSON_AddItemToObject(out, key, v);
	} while (take(c, ','));
	if (take(c, '}'))
		return out;
malformed:
	cJSON_Delete(out);
	return NULL;
}

static cJSON *array(struct cursor *c, const struct kube_fields *fields)
{
	cJSON *out = cJSON_CreateArray(), *v;

	c->at++;
	if (take(c, ']'))
		return out;
	do {
		skip_space(c);
		/* one of objects; other elements have no members to choose from */
		v = c->at < c->end && *c->at == '{' ? object(c, fields) : whole(c);
		if (!v)
			goto malformed;
		cJSON_AddItemToArray(out, v);
	} while (take(c, ','));
	if (take(c, ']'))
		return out;
malformed:
	cJSON_Delete(out);
	return NULL;
}

static cJSON *value(struct cursor *c, const struct kube_fields *fields)
{
	skip_space(c);
	if (fields && c->at < c->end && *c->at == '{')
		return object(c, fields);
	if (fields && c->at < c->end && *c->at == '[')
		return array(c, fields);
	return whole(c);
}

cJSON *kube_json(struct mu_span text, const struct kube_fields *fields)
{
	struct cursor c = {text.data, text.data + text.len};
	cJSON *out = value(&c, fields);

	skip_space(&c);
	if (out && c.at == c.end && cJSON_IsObject(out))
		return out;
	cJSON_Delete(out);
	return NULL;
}

cJSON *kube_json_event(struct mu_span text, const struct kube_fields *fields)
{
	const struct kube_fields event[] = {{"type", NULL}, {"object", fields}, {NULL, NULL}};
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
		return ++s->depth > LIST_DEPTH_MAX
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
