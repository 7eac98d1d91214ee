/* SPDX-License-Identifier: Apache-2.0 */
/* A field of a JSON object; NULL when there is none. */
#ifndef CONTROL_AT_H
#define CONTROL_AT_H

#include <cjson/cJSON.h>

static inline const cJSON *at(const cJSON *object, const char *key)
{
	return cJSON_GetObjectItemCaseSensitive(object, key);
}

#endif
