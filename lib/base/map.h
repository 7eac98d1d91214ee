/* SPDX-License-Identifier: Apache-2.0 */
/* A hash map from byte strings to pointers.  Copies its keys; owns no values. */
#ifndef MU_LIB_BASE_MAP_H
#define MU_LIB_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mu_map_slot {
	char *key; /* NULL: free */
	size_t len;
	uint64_t hash;
	void *value;
};
struct mu_map {
	struct mu_map_slot *slots;
	size_t count, cap;
	uint64_t seed;
};

void mu_map_init(struct mu_map *m);
void mu_map_fini(struct mu_map *m);
void *mu_map_get(const struct mu_map *m, const char *key); /* NULL when absent */
void *mu_map_get_n(const struct mu_map *m, const void *key, size_t len);
void *mu_map_put(struct mu_map *m, const char *key,
		 void *value); /* returns the value it replaced */
void *mu_map_put_n(struct mu_map *m, const void *key, size_t len, void *value);
void *mu_map_del(struct mu_map *m, const char *key); /* returns the value removed, or NULL */
void *mu_map_del_n(struct mu_map *m, const void *key, size_t len);

/* Iterates in any order: for (struct mu_map_slot *s = NULL; (s = mu_map_next(m, s));).  The map
 * must not change during the iteration. */
struct mu_map_slot *mu_map_next(const struct mu_map *m, struct mu_map_slot *after);
#define mu_map_each(m, s) for (struct mu_map_slot *s = NULL; (s = mu_map_next((m), s));)

uint64_t mu_hash(const void *p, size_t n, uint64_t seed);

#endif
