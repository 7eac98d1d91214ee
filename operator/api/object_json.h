/* SPDX-License-Identifier: Apache-2.0 */
/* Members of API objects in JSON. */
#ifndef MU_OPERATOR_API_OBJECT_JSON_H
#define MU_OPERATOR_API_OBJECT_JSON_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A member; NULL when there is none. */
static inline const cJSON *at(const cJSON *object, const char *key)
{
	return cJSON_GetObjectItemCaseSensitive(object, key);
}

/* A string member; NULL when there is none. */
static inline const char *text_at(const cJSON *object, const char *key)
{
	return cJSON_GetStringValue(at(object, key));
}

/* A string member; "" when there is none. */
static inline const char *text_or_empty(const cJSON *object, const char *key)
{
	const char *s = text_at(object, key);
	return s ? s : "";
}

/* The first item of a list whose member `key` is `value`; NULL when there is none. */
static inline const cJSON *item_with(const cJSON *list, const char *key, const char *value)
{
	const cJSON *item = list ? list->child : NULL;

	while (item && strcmp(text_or_empty(item, key), value) != 0)
		item = item->next;
	return item;
}

/* True when the list of conditions has this one with this status. */
static inline bool condition_is(const cJSON *conditions, const char *type, const char *status)
{
	return strcmp(text_or_empty(item_with(conditions, "type", type), "status"), status) == 0;
}

static inline const char *object_name(const cJSON *object)
{
	return text_or_empty(at(object, "metadata"), "name");
}

static inline const char *object_uid(const cJSON *object)
{
	return text_or_empty(at(object, "metadata"), "uid");
}

/* metadata.resourceVersion as a number; 0: there is none. */
static inline uint64_t object_version(const cJSON *object)
{
	return strtoull(text_or_empty(at(object, "metadata"), "resourceVersion"), NULL, 10);
}

/* The controller among the owner references; NULL when there is none. */
static inline const cJSON *object_controller(const cJSON *object)
{
	const cJSON *ref;

	cJSON_ArrayForEach(ref, at(at(object, "metadata"), "ownerReferences"))
	{
		if (cJSON_IsTrue(at(ref, "controller")))
			break;
	}
	return ref;
}

/* Its UID; "" when there is none. */
static inline const char *object_owner(const cJSON *object)
{
	return text_or_empty(object_controller(object), "uid");
}

#endif
