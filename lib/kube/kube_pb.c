/* SPDX-License-Identifier: Apache-2.0 */
/* How deep it goes is the tables' to say, so nothing that comes can make it go deeper. */
#include "lib/kube/kube_pb.h"

#include <endian.h>

#include "lib/base/pb.h"

enum { MESSAGE_MAX = 8 << 20, HEAD = 4, KEY_MAX = 20 };
static const char magic[HEAD] = "k8s";

const struct kube_fields kube_pb_status[] = {{"message", NULL, 3, KUBE_TEXT},
					     {"reason", NULL, 4, KUBE_TEXT},
					     {"code", NULL, 6, KUBE_NUMBER},
					     {0}};
static const struct kube_fields list_metadata[] = {
    {"resourceVersion", NULL, 2, KUBE_TEXT}, {"continue", NULL, 3, KUBE_TEXT}, {0}};

/* ---- values ---- */

/* How many bytes the character at `s` has, of `n` that are there; 0 when it is no UTF-8. */
static size_t character(const unsigned char *s, size_t n)
{
	static const struct {
		unsigned char mask, lead, low, high; /* low, high: of the second byte */
	} kinds[] = {{0xff, 0xe0, 0xa0, 0xbf}, {0xff, 0xed, 0x80, 0x9f}, {0xff, 0xf0, 0x90, 0xbf},
		     {0xff, 0xf4, 0x80, 0x8f}, {0xff, 0xc0, 1, 0},       {0xff, 0xc1, 1, 0},
		     {0xe0, 0xc0, 0x80, 0xbf}, {0xf0, 0xe0, 0x80, 0xbf}, {0xfc, 0xf0, 0x80, 0xbf}};
	size_t len = *s >= 0xf0 ? 4 : *s >= 0xe0 ? 3 : 2;

	if (*s < 0x80)
		return *s ? 1 : 0;
	for (unsigned k = 0; k < MU_COUNT(kinds) && n >= len; k++) {
		if ((*s & kinds[k].mask) != kinds[k].lead)
			continue;
		if (s[1] < kinds[k].low || s[1] > kinds[k].high)
			return 0;
		for (size_t i = 2; i < len; i++)
			if ((s[i] & 0xc0) != 0x80)
				return 0;
		return len;
	}
	return 0;
}

bool kube_pb_is_text(struct mu_span text)
{
	for (size_t i = 0, n; i < text.len; i += n)
		if (!(n = character((const unsigned char *)text.data + i, text.len - i)))
			return false;
	return true;
}

/* A copy.  What is no UTF-8 could not be said again in JSON, and a zero would end the text. */
static char *copy(struct mu_span text)
{
	char *out = cJSON_malloc(text.len + 1);

	if (!out)
		return NULL;
	memcpy(out, text.data, text.len);
	out[text.len] = 0;
	for (size_t i = 0; i < text.len;) {
		size_t n = character((const unsigned char *)out + i, text.len - i);
		if (!n)
			out[i] = '?';
		i += n ? n : 1;
	}
	return out;
}

static cJSON *text(struct mu_span s)
{
	return kube_json_text(copy(s));
}

/* The bytes of field `number` of a message, empty when it has none; false when it is malformed. */
static bool bytes_of(struct mu_span message, uint32_t number, struct mu_span *out)
{
	struct mu_pb m = mu_pb_of(message);
	struct mu_pb_field f;

	*out = (struct mu_span){"", 0};
	while (mu_pb_next(&m, &f))
		if (f.number == number && f.type == MU_PB_BYTES)
			*out = f.bytes;
	return !m.bad;
}

/* Seconds = 1, and parts of one, which the API server leaves out. */
static cJSON *seconds(struct mu_span message)
{
	struct mu_pb m = mu_pb_of(message);
	struct mu_pb_field f;
	int64_t s = 0;

	while (mu_pb_next(&m, &f))
		if (f.number == 1 && f.type == MU_PB_VARINT)
			s = (int64_t)f.value;
	return m.bad ? NULL : cJSON_CreateNumber((double)s);
}

static bool is_named(const struct kube_fields *fields, struct mu_span name)
{
	for (; fields && fields->name; fields++)
		if (mu_span_is(name, fields->name))
			return true;
	return !fields;
}

/* One entry of a map { key = 1, value = 2 }, for the object that the map becomes. */
static bool entry(cJSON *map, struct mu_span message, const struct kube_fields *f)
{
	struct mu_span key, value;
	cJSON *item;

	if (!bytes_of(message, 1, &key) || !bytes_of(message, 2, &value))
		return false;
	if (f->form == KUBE_AMOUNTS && !bytes_of(value, 1, &value)) /* Quantity { string = 1 } */
		return false;
	if (!is_named(f->below, key))
		return true;
	item = text(value);
	if (!item || !(item->string = copy(key))) {
		cJSON_Delete(item);
		return false;
	}
	cJSON_AddItemToArray(map, item);
	return true;
}

/* What a field that comes again and again gathers in. */
static cJSON *gathered(cJSON *out, const struct kube_fields *f)
{
	cJSON *all = cJSON_GetObjectItemCaseSensitive(out, f->name);
	bool list = f->form == KUBE_LIST || f->form == KUBE_WORDS;

	if (all)
		return all;
	all = list ? cJSON_CreateArray() : cJSON_CreateObject();
	if (all)
		kube_json_put(out, f->name, all);
	return all;
}

/* Type = 1, and by that a number = 2 or a name = 3. */
static cJSON *port(struct mu_span message)
{
	struct mu_pb m = mu_pb_of(message);
	struct mu_span name = {"", 0};
	struct mu_pb_field f;
	bool named = false;
	int32_t n = 0;

	while (mu_pb_next(&m, &f)) {
		if (f.number == 1)
			named = f.value != 0;
		else if (f.number == 2)
			n = (int32_t)f.value;
		else if (f.number == 3)
			name = f.bytes;
	}
	if (m.bad)
		return NULL;
	return named ? text(name) : cJSON_CreateNumber(n);
}

/* The members of a message go to `out` itself; an object has one at most of each name. */
static bool within(cJSON *out, const struct kube_fields *f, struct mu_span message)
{
	cJSON *item = kube_pb_message(message, f->below);

	for (cJSON *next, *m = item ? item->child : NULL; m; m = next) {
		next = m->next;
		if (!cJSON_GetObjectItemCaseSensitive(out, m->string))
			cJSON_AddItemToArray(out, cJSON_DetachItemViaPointer(item, m));
	}
	cJSON_Delete(item);
	return item;
}

static const struct kube_fields *field_of(const struct kube_fields *fields, uint32_t number)
{
	for (; fields->name; fields++)
		if (fields->number == number)
			return fields;
	return NULL;
}

/* A wanted field with its value, for `out`; false when it is malformed. */
static bool member(cJSON *out, const struct kube_fields *f, const struct mu_pb_field *from)
{
	struct mu_span amount;
	cJSON *item = NULL;

	if ((from->type == MU_PB_VARINT) != (f->form == KUBE_NUMBER || f->form == KUBE_TRUTH) ||
	    (from->type != MU_PB_VARINT && from->type != MU_PB_BYTES))
		return false;
	switch (f->form) {
	case KUBE_TEXT:
		if (!from->bytes.len)
			return true;
		item = text(from->bytes);
		break;
	case KUBE_NUMBER:
		item = cJSON_CreateNumber((double)(int64_t)from->value);
		break;
	case KUBE_TRUTH:
		item = cJSON_CreateBool(from->value != 0);
		break;
	case KUBE_TIME:
		item = seconds(from->bytes);
		break;
	case KUBE_OBJECT:
		item = kube_pb_message(from->bytes, f->below);
		break;
	case KUBE_LIST:
		item = kube_pb_message(from->bytes, f->below);
		return item && cJSON_AddItemToArray(gathered(out, f), item);
	case KUBE_WORDS:
		item = text(from->bytes);
		return item && cJSON_AddItemToArray(gathered(out, f), item);
	case KUBE_TEXTS:
	case KUBE_AMOUNTS:
		return entry(gathered(out, f), from->bytes, f);
	case KUBE_AMOUNT:
		item = bytes_of(from->bytes, 1, &amount) ? text(amount) : NULL;
		break;
	case KUBE_PORT:
		item = port(from->bytes);
		break;
	case KUBE_WITHIN:
		return within(out, f, from->bytes);
	}
	if (item)
		kube_json_put(out, f->name, item);
	return item;
}

cJSON *kube_pb_message(struct mu_span message, const struct kube_fields *fields)
{
	struct mu_pb m = mu_pb_of(message);
	cJSON *out = kube_fields_in_protobuf(fields) ? cJSON_CreateObject() : NULL;
	struct mu_pb_field f;

	while (out && mu_pb_next(&m, &f)) {
		const struct kube_fields *wanted = field_of(fields, f.number);

		m.bad = m.bad || (wanted && !member(out, wanted, &f));
		if (m.bad)
			break;
	}
	if (!m.bad)
		return out;
	cJSON_Delete(out);
	return NULL;
}

/* ---- what is around ---- */

static bool unwrap(struct mu_span text, struct mu_span *message)
{
	struct mu_span unknown, encoding;

	if (text.len < HEAD || memcmp(text.data, magic, HEAD) != 0)
		return false;
	unknown = (struct mu_span){text.data + HEAD, text.len - HEAD};
	return bytes_of(unknown, 3, &encoding) && !encoding.len && bytes_of(unknown, 2, message);
}

bool kube_pb_begins(char first, bool labelled)
{
	return first == 'k' || first == 0 || (labelled && first != '{');
}

cJSON *kube_pb(struct mu_span text, const struct kube_fields *fields)
{
	struct mu_span message;

	return unwrap(text, &message) ? kube_pb_message(message, fields) : NULL;
}

cJSON *kube_pb_event(struct mu_span frame, const struct kube_fields *fields)
{
	struct mu_span type, extension, raw;
	cJSON *out, *object, *name;

	if (!bytes_of(frame, 1, &type) || !bytes_of(frame, 2, &extension) ||
	    !bytes_of(extension, 1, &raw))
		return NULL;
	object = kube_pb(raw, mu_span_is(type, "ERROR") ? kube_pb_status : fields);
	out = object ? cJSON_CreateObject() : NULL;
	name = out ? text(type) : NULL;
	if (!name) {
		cJSON_Delete(object);
		cJSON_Delete(out);
		return NULL;
	}
	kube_json_put(out, "type", name);
	kube_json_put(out, "object", object);
	return out;
}

/* ---- watches ---- */

/* How long the frame at `s` is with its head; its head, while that is not there. */
static size_t frame_size(struct mu_span s)
{
	uint32_t n;

	if (s.len < HEAD)
		return HEAD;
	memcpy(&n, s.data, HEAD);
	return HEAD + (size_t)be32toh(n);
}

static int frame_ends(struct kube_frames *f, const char *frame, size_t len, struct mu_err *err)
{
	return f->frame(f->arg, (struct mu_span){frame + HEAD, len - HEAD}, err);
}

int kube_frames_feed(void *frames, const char *data, size_t len, struct mu_err *err)
{
	struct kube_frames *f = frames;

	while (len) {
		bool direct = !f->rest.len && len >= frame_size((struct mu_span){data, len});
		size_t size = direct ? frame_size((struct mu_span){data, len})
				     : frame_size(mu_buf_span(&f->rest));
		size_t n = size - f->rest.len < len ? size - f->rest.len : len;
		int rc = 0;

		if (direct) { /* where it lies */
			rc = frame_ends(f, data, n, err);
		} else {
			mu_buf_put(&f->rest, data, n);
			size = frame_size(mu_buf_span(&f->rest));
			if (size > MESSAGE_MAX)
				rc =
				    mu_fail(err, MU_RESOURCE_EXHAUSTED,
					    "a watch event of more than %d MiB", MESSAGE_MAX >> 20);
			else if (f->rest.len >= HEAD && f->rest.len == size) {
				rc = frame_ends(f, f->rest.data, size, err);
				mu_buf_clear(&f->rest);
			}
		}
		if (rc < 0)
			return rc;
		data += n;
		len -= n;
	}
	return 0;
}

/* ---- lists ---- */

void kube_pb_items_fini(struct kube_pb_items *items)
{
	mu_buf_fini(&items->rest);
	cJSON_Delete(items->around);
	items->around = NULL;
}

static int bad(struct mu_err *err)
{
	return mu_fail(err, MU_UNAVAILABLE, "a list that is no protobuf");
}

static int keep_metadata(struct kube_pb_items *s, struct mu_span message, struct mu_err *err)
{
	cJSON *metadata = kube_pb_message(message, list_metadata);

	if (!metadata || s->around || !(s->around = cJSON_CreateObject())) {
		cJSON_Delete(metadata);
		return bad(err);
	}
	kube_json_put(s->around, "metadata", metadata);
	return 0;
}

/* The field at `text`, of what is around the list or of the list: 1 when it was taken, with *used
 * bytes; 0 while not all of it is there.  The list itself is gone into. */
static int take_field(struct kube_pb_items *s, struct mu_span text, size_t *used,
		      struct mu_err *err)
{
	bool list = s->place == KUBE_PB_LIST;
	struct mu_pb m = mu_pb_of(text);
	uint64_t tag, n;
	size_t head;
	int rc = 0;

	if (!mu_pb_varint(&m, &tag) || !mu_pb_varint(&m, &n))
		return text.len >= KEY_MAX ? bad(err) : 0;
	head = (size_t)(m.at - text.data);
	if ((tag & 7) == MU_PB_VARINT) /* a number, which is none of ours: it has been passed */
		tag = n = 0;
	else if ((tag & 7) != MU_PB_BYTES)
		return bad(err);
	if (list && (head > s->left || n > s->left - head))
		return bad(err);
	*used = head;
	if (!list && tag >> 3 == 2) {
		if (s->whole)
			return bad(err);
		s->place = KUBE_PB_LIST;
		s->left = n;
		return 1;
	}
	if (n > MESSAGE_MAX)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "an answer that is too large");
	if (n > text.len - head)
		return 0;
	*used += (size_t)n;
	text = (struct mu_span){m.at, (size_t)n};
	if (list && tag >> 3 == 1)
		rc = keep_metadata(s, text, err);
	else if (list && tag >> 3 == 2)
		rc = s->fn(s->arg, text, err);
	if (list)
		s->left -= *used;
	return rc < 0 ? rc : 1;
}

static int take(struct kube_pb_items *s, struct mu_span text, size_t *used, struct mu_err *err)
{
	*used = 0;
	switch (s->place) {
	case KUBE_PB_MAGIC:
		if (text.len < HEAD)
			return 0;
		*used = HEAD;
		s->place = KUBE_PB_OUTER;
		return memcmp(text.data, magic, HEAD) == 0 ? 1 : bad(err);
	case KUBE_PB_LIST:
		if (!s->left) {
			s->whole = true;
			s->place = KUBE_PB_OUTER;
			return 1;
		}
		break;
	case KUBE_PB_OUTER:
		break;
	}
	return text.len ? take_field(s, text, used, err) : 0;
}

int kube_pb_items_feed(void *items, const char *data, size_t len, struct mu_err *err)
{
	struct kube_pb_items *s = items;
	size_t at = 0, used;
	int rc;

	if (!len)
		return 0;
	mu_buf_put(&s->rest, data, len);
	do {
		struct mu_span left = {s->rest.data + at, s->rest.len - at};
		rc = take(s, left, &used, err);
		at += rc == 1 ? used : 0;
	} while (rc == 1);
	if (at)
		memmove(s->rest.data, s->rest.data + at, s->rest.len - at);
	s->rest.len -= at;
	return rc;
}
