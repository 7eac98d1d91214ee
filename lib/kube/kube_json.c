/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/kube/kube_json.h"

#include "lib/io/json.h"

enum { ELEMENT_MAX = 8 << 20, ENVELOPE_MAX = 64 << 10, DEPTH_MAX = 1000 };

/* Removes the members that `fields` does not name, from an object or from those of an array. */
static void prune(cJSON *value, const struct kube_fields *fields)
{
	for (cJSON *child = value->child, *next; child; child = next) {
		const struct kube_fields *f = fields;

		next = child->next;
		if (!child->string) {
			if (cJSON_IsObject(child))
				prune(child, fields);
			continue;
		}
		while (f->name && strcmp(f->name, child->string) != 0)
			f++;
		if (!f->name)
			cJSON_Delete(cJSON_DetachItemViaPointer(value, child));
		else if (f->below)
			prune(child, f->below);
	}
}

cJSON *kube_json(struct mu_span text, const struct kube_fields *fields)
{
	cJSON *out = NULL;

	if (mu_json_tree(&out, text, "object", NULL) < 0)
		return NULL;
	if (!cJSON_IsObject(out)) {
		cJSON_Delete(out);
		return NULL;
	}
	if (fields)
		prune(out, fields);
	return out;
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
