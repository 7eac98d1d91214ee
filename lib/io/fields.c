/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/io/fields.h"

#include <cjson/cJSON.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>

#include "lib/base/rfc3339.h"

enum { MAX_KEYS = 32 };

static int read_int(const struct mu_doc_node *map, const struct field *f, int *out,
		    struct mu_err *err)
{
	int64_t v = *out;
	int rc = mu_doc_opt_int(map, f->key, f->min, f->max, &v, err);

	*out = (int)v;
	return rc;
}

static int read_name(const struct mu_doc_node *map, const struct field *f, const char **out,
		     struct mu_err *err)
{
	int i = -1, rc = mu_doc_opt_choice(map, f->key, f->names, &i, err);

	if (!rc && i >= 0)
		*out = f->names[i];
	return rc;
}

static int read_ints(const struct mu_doc_node *map, const struct field *f, int *out, unsigned *n,
		     struct mu_err *err)
{
	struct mu_doc_node *list;
	int rc = mu_doc_opt_list(map, f->key, &list, err);

	if (rc)
		return rc;
	if (list && list->n > f->size / sizeof(*out))
		return mu_doc_invalid(list, err, "has more than %zu entries",
				      f->size / sizeof(*out));
	mu_doc_each(list, item)
	{
		if (item->kind != MU_DOC_INT || item->i < f->min || item->i > f->max)
			return mu_doc_invalid(item, err,
					      "must be a whole number between %lld and %lld",
					      (long long)f->min, (long long)f->max);
		out[(*n)++] = (int)item->i;
	}
	return 0;
}

static int read_section(const struct mu_doc_node *map, const struct field *f, void *out,
			struct mu_err *err)
{
	struct mu_doc_node *section;
	int rc = mu_doc_opt_map(map, f->key, &section, err);

	return rc ? rc : fields_read(section, f->section, out, err);
}

static int read_field(const struct mu_doc_node *map, const struct field *f, void *base,
		      struct mu_err *err)
{
	void *out = (char *)base + f->offset;

	switch (f->kind) {
	case FIELD_INT:
		return read_int(map, f, out, err);
	case FIELD_INT64:
		return mu_doc_opt_int(map, f->key, f->min, f->max, out, err);
	case FIELD_BOOL:
		return mu_doc_opt_bool(map, f->key, out, err);
	case FIELD_DOUBLE:
		return mu_doc_opt_float(map, f->key, f->min_value, f->max_value, out, err);
	case FIELD_ENUM:
		return mu_doc_opt_choice(map, f->key, f->names, out, err);
	case FIELD_NAME:
		return read_name(map, f, out, err);
	case FIELD_TEXT:
		return mu_doc_opt_text(map, f->key, out, err);
	case FIELD_LIST:
		return mu_doc_opt_list(map, f->key, out, err);
	case FIELD_MAP:
		return mu_doc_opt_map(map, f->key, out, err);
	case FIELD_INTS:
		return read_ints(map, f, out, (unsigned *)((char *)base + f->count), err);
	case FIELD_SECTION:
		return read_section(map, f, out, err);
	default: /* kinds that only fields_decode reads, and FIELD_CUSTOM */
		return 0;
	}
}

int fields_read(const struct mu_doc_node *map, const struct field *fields, void *out,
		struct mu_err *err)
{
	const char *known[MAX_KEYS] = {NULL};
	int rc;

	for (unsigned i = 0; fields[i].key && i < MAX_KEYS - 1; i++)
		known[i] = fields[i].key;
	rc = mu_doc_known_keys(map, known, err);
	for (; rc == 0 && fields->key; fields++)
		rc = read_field(map, fields, out, err);
	return rc;
}

static void decode_number(double v, const struct field *f, void *out)
{
	if (f->kind == FIELD_DOUBLE)
		*(double *)out = v;
	else if (f->kind == FIELD_INT && v >= INT_MIN && v <= INT_MAX)
		*(int *)out = (int)v;
	else if (f->kind == FIELD_INT64 && fabs(v) < 1e18)
		*(int64_t *)out = (int64_t)v;
}

static void decode_text(const char *text, const struct field *f, void *out)
{
	if (f->kind == FIELD_TIME)
		*(double *)out = mu_rfc3339_read(text);
	else if (f->kind == FIELD_CHARS && strlen(text) < f->size)
		snprintf(out, f->size, "%s", text);
	else if (f->kind == FIELD_COPY && *text)
		*(char **)out = mu_xstrdup(text);
	else if (f->kind == FIELD_ENUM && mu_word_index(text, f->names) >= 0)
		*(int *)out = mu_word_index(text, f->names);
}

void fields_decode(const cJSON *json, const struct field *fields, void *out)
{
	for (const struct field *f = fields; f->key; f++) {
		const cJSON *value = cJSON_GetObjectItemCaseSensitive(json, f->key);
		void *at = (char *)out + f->offset;

		if (f->kind == FIELD_SECTION)
			fields_decode(value, f->section, at);
		else if (cJSON_IsNumber(value))
			decode_number(value->valuedouble, f, at);
		else if (cJSON_IsString(value))
			decode_text(value->valuestring, f, at);
		else if (cJSON_IsBool(value) && f->kind == FIELD_BOOL)
			*(bool *)at = cJSON_IsTrue(value);
	}
}

static cJSON *encode_number(const struct field *f, double v)
{
	return isfinite(v) && (v != 0 || !f->optional) ? cJSON_CreateNumber(v) : NULL;
}

static cJSON *encode_text(const struct field *f, const char *text)
{
	return text && (*text || !f->optional) ? cJSON_CreateString(text) : NULL;
}

static cJSON *encode_time(double seconds)
{
	char text[MU_RFC3339];

	return seconds > 0 && mu_rfc3339_write(text, seconds) ? cJSON_CreateString(text) : NULL;
}

static cJSON *encode_section(const struct field *f, const void *from)
{
	cJSON *json = cJSON_CreateObject();

	fields_encode(json, f->section, from);
	if (json->child)
		return json;
	cJSON_Delete(json);
	return NULL;
}

/* Returns the value of a member; NULL: it is not written. */
static cJSON *encode_field(const struct field *f, const void *base)
{
	const void *at = (const char *)base + f->offset;
	unsigned n;

	switch (f->kind) {
	case FIELD_INT:
		return encode_number(f, *(const int *)at);
	case FIELD_INT64:
		return encode_number(f, (double)*(const int64_t *)at);
	case FIELD_DOUBLE:
		return encode_number(f, *(const double *)at);
	case FIELD_BOOL:
		return *(const bool *)at ? cJSON_CreateTrue() : NULL;
	case FIELD_TIME:
		return encode_time(*(const double *)at);
	case FIELD_ENUM:
		return *f->names[*(const int *)at] ? cJSON_CreateString(f->names[*(const int *)at])
						   : NULL;
	case FIELD_NAME:
	case FIELD_TEXT:
	case FIELD_COPY:
		return encode_text(f, *(const char *const *)at);
	case FIELD_CHARS:
		return encode_text(f, at);
	case FIELD_INTS:
		n = *(const unsigned *)((const char *)base + f->count);
		return n ? cJSON_CreateIntArray(at, (int)n) : NULL;
	case FIELD_SECTION:
		return encode_section(f, at);
	default:
		return NULL;
	}
}

void fields_encode(cJSON *json, const struct field *fields, const void *from)
{
	for (; fields->key; fields++) {
		cJSON *value = encode_field(fields, from);

		if (value)
			cJSON_AddItemToObjectCS(json, fields->key, value);
	}
}
