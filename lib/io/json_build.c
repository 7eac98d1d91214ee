/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/io/json_build.h"

#include <cjson/cJSON.h>
#include <stdarg.h>

#include "lib/io/json.h"

cJSON *mu_json_pack(const char *pattern, ...)
{
	MU_AUTO_BUF text = {0};
	const char *value;
	va_list ap;

	va_start(ap, pattern);
	for (const char *p = pattern; *p; p++) {
		if (*p == '\'') {
			mu_buf_putc(&text, '"');
		} else if (*p != '%') {
			mu_buf_putc(&text, *p);
		} else if (*++p == 'd') {
			mu_buf_printf(&text, "%d", va_arg(ap, int));
		} else if ((value = va_arg(ap, const char *))) {
			mu_json_quote(&text, mu_span_of(value));
		} else {
			mu_buf_puts(&text, "null");
		}
	}
	va_end(ap);
	return cJSON_Parse(text.data);
}

/* Moves the member into another object. */
static void move_member(cJSON *into, cJSON *from, cJSON *member)
{
	cJSON_DetachItemViaPointer(from, member);
	cJSON_DeleteItemFromObjectCaseSensitive(into, member->string);
	cJSON_AddItemToObject(into, member->string, member);
}

void mu_json_set(cJSON *into, cJSON *from)
{
	for (cJSON *m = from->child, *next; m; m = next) {
		cJSON *old = cJSON_GetObjectItemCaseSensitive(into, m->string);

		next = m->next;
		if (!cJSON_IsObject(m) || !old || cJSON_IsNull(old))
			move_member(into, from, m);
		else
			mu_json_set(old, cJSON_DetachItemViaPointer(from, m));
	}
	cJSON_Delete(from);
}

void mu_json_fill(cJSON *into, cJSON *from)
{
	for (cJSON *m = from->child, *next; m; m = next) {
		next = m->next;
		if (!cJSON_GetObjectItemCaseSensitive(into, m->string))
			move_member(into, from, m);
	}
	cJSON_Delete(from);
}

void mu_json_set_text(cJSON *object, const char *key, const char *value)
{
	cJSON_DeleteItemFromObjectCaseSensitive(object, key);
	cJSON_AddStringToObject(object, key, value);
}

static cJSON *get_or_add(cJSON *object, const char *key, cJSON *(*add)(cJSON *, const char *))
{
	cJSON *c = cJSON_GetObjectItemCaseSensitive(object, key);

	if (c && !cJSON_IsNull(c))
		return c;
	cJSON_DeleteItemFromObjectCaseSensitive(object, key);
	return add(object, key);
}

cJSON *mu_json_object_in(cJSON *object, const char *key)
{
	return get_or_add(object, key, cJSON_AddObjectToObject);
}

cJSON *mu_json_array_in(cJSON *object, const char *key)
{
	return get_or_add(object, key, cJSON_AddArrayToObject);
}

cJSON *mu_json_merge_patch(const cJSON *from, const cJSON *to)
{
	cJSON *patch = cJSON_CreateObject();
	const cJSON *item;

	cJSON_ArrayForEach(item, to)
	{
		const cJSON *old = cJSON_GetObjectItemCaseSensitive(from, item->string);
		cJSON *change;

		if (cJSON_IsObject(item) && cJSON_IsObject(old))
			change = mu_json_merge_patch(old, item);
		else
			change =
			    cJSON_Compare(item, old, true) ? NULL : cJSON_Duplicate(item, true);
		if (change)
			cJSON_AddItemToObject(patch, item->string, change);
	}
	cJSON_ArrayForEach(item, from)
	{
		if (!cJSON_GetObjectItemCaseSensitive(to, item->string))
			cJSON_AddNullToObject(patch, item->string);
	}
	if (patch->child)
		return patch;
	cJSON_Delete(patch);
	return NULL;
}
