/* SPDX-License-Identifier: Apache-2.0 */
/* Builds and changes JSON trees. */
#ifndef MU_LIB_IO_JSON_BUILD_H
#define MU_LIB_IO_JSON_BUILD_H

struct cJSON;

/* The tree of a pattern such as "{'name': %s, 'port': %d}": ' stands for ", and %s for a quoted
 * string, or null for NULL.  Returns new. */
struct cJSON *mu_json_pack(const char *pattern, ...) __attribute__((format(printf, 1, 2)));
/* Sets the members of `from`, which it takes: objects member by member, other values as a whole.  A
 * value that should be an object stays: it is a mistake of the user's template, and what the API
 * server says of it becomes a condition of the job. */
void mu_json_set(struct cJSON *into, struct cJSON *from);
/* Adds the members of `from`, which it takes, that `into` lacks. */
void mu_json_fill(struct cJSON *into, struct cJSON *from);
void mu_json_set_text(struct cJSON *object, const char *key, const char *value);
/* The object or array under the key, made when it is absent or null. */
struct cJSON *mu_json_object_in(struct cJSON *object, const char *key);
struct cJSON *mu_json_array_in(struct cJSON *object, const char *key);
/* The JSON merge patch (RFC 7396) that makes `to` of `from`; NULL when they are equal. */
struct cJSON *mu_json_merge_patch(const struct cJSON *from, const struct cJSON *to);

#endif
