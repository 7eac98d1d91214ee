/* SPDX-License-Identifier: Apache-2.0 */
/* Builds and changes JSON trees. */
#ifndef MU_LIB_IO_JSON_BUILD_H
#define MU_LIB_IO_JSON_BUILD_H

struct cJSON;

/* Returns a new tree from a pattern such as "{'name': %s, 'port': %d}": ' stands for ", %s for a
 * quoted string, or null if the argument is NULL. */
struct cJSON *mu_json_pack(const char *pattern, ...) __attribute__((format(printf, 1, 2)));
/* Sets the members of `from` and frees it.  Objects are merged member by member, other values are
 * replaced.  A value that should be an object stays: it is an error in the user's template, and the
 * error of the API server becomes a condition of the job. */
void mu_json_set(struct cJSON *into, struct cJSON *from);
/* Adds the members of `from` that are missing in `into`, and frees `from`. */
void mu_json_fill(struct cJSON *into, struct cJSON *from);
void mu_json_set_text(struct cJSON *object, const char *key, const char *value);
/* Return the object or array with the key; create it if it is absent or null. */
struct cJSON *mu_json_object_in(struct cJSON *object, const char *key);
struct cJSON *mu_json_array_in(struct cJSON *object, const char *key);
/* Returns the JSON merge patch (RFC 7396) from `from` to `to`; NULL: they are equal. */
struct cJSON *mu_json_merge_patch(const struct cJSON *from, const struct cJSON *to);

#endif
