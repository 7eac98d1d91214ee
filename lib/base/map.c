/* SPDX-License-Identifier: Apache-2.0 */
/* Open addressing with linear probing and backward-shift deletion.  The hash has a random seed for
 * each process, so that clients cannot choose names that collide. */
#include "lib/base/map.h"

#include <pthread.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "lib/base/mem.h"

static uint64_t process_seed;
static pthread_once_t seed_once = PTHREAD_ONCE_INIT;

static void draw_seed(void)
{
	if (getrandom(&process_seed, sizeof process_seed, GRND_NONBLOCK) != sizeof process_seed)
		process_seed = (uint64_t)time(NULL) * 0x9e3779b97f4a7c15u;
}

static uint64_t mix(uint64_t a, uint64_t b)
{
	__uint128_t r = (__uint128_t)a * b;
	return (uint64_t)r ^ (uint64_t)(r >> 64);
}

uint64_t mu_hash(const void *p, size_t n, uint64_t seed)
{
	const char *s = p;
	uint64_t h = seed ^ 0x9e3779b97f4a7c15u, w;

	h ^= n * 0xd6e8feb86659fd93u;
	for (; n >= 8; n -= 8, s += 8) {
		memcpy(&w, s, 8);
		h = mix(h ^ w, 0xa0761d6478bd642fu);
	}
	if (n) {
		w = 0;
		memcpy(&w, s, n);
		h = mix(h ^ w, 0xe7037ed1a0b428dbu);
	}
	return mix(h, 0x8ebc6af09c88c6e3u);
}

void mu_map_init(struct mu_map *m)
{
	pthread_once(&seed_once, draw_seed);
	*m = (struct mu_map){.seed = process_seed};
}

void mu_map_fini(struct mu_map *m)
{
	mu_map_each (m, s)
		free(s->key);
	free(m->slots);
	*m = (struct mu_map){0};
}

struct mu_map_slot *mu_map_next(const struct mu_map *m, struct mu_map_slot *after)
{
	struct mu_map_slot *s = after ? after + 1 : m->slots;

	for (; s && s < m->slots + m->cap; s++)
		if (s->key)
			return s;
	return NULL;
}

static struct mu_map_slot *map_find(const struct mu_map *m, const void *key, size_t len,
				    uint64_t hash)
{
	for (size_t i = hash & (m->cap - 1);; i = (i + 1) & (m->cap - 1)) {
		struct mu_map_slot *s = &m->slots[i];
		if (!s->key || (s->hash == hash && s->len == len && !memcmp(s->key, key, len)))
			return s;
	}
}

void *mu_map_get_n(const struct mu_map *m, const void *key, size_t len)
{
	if (!m->count)
		return NULL;
	struct mu_map_slot *s = map_find(m, key, len, mu_hash(key, len, m->seed));
	return s->key ? s->value : NULL;
}

static void map_grow(struct mu_map *m)
{
	struct mu_map old = *m;

	if (!m->seed)
		mu_map_init(m);
	m->cap = old.cap ? old.cap * 2 : 16;
	m->slots = MU_NEW_ARRAY(struct mu_map_slot, m->cap);
	m->count = old.count;
	mu_map_each (&old, s)
		*map_find(m, s->key, s->len, s->hash) = *s;
	free(old.slots);
}

void *mu_map_put_n(struct mu_map *m, const void *key, size_t len, void *value)
{
	if (m->count * 4 >= m->cap * 3)
		map_grow(m);
	uint64_t hash = mu_hash(key, len, m->seed);
	struct mu_map_slot *s = map_find(m, key, len, hash);
	void *old = s->value;
	if (!s->key) {
		*s = (struct mu_map_slot){.key = mu_xstrndup(key, len), .len = len, .hash = hash};
		m->count++;
		old = NULL;
	}
	s->value = value;
	return old;
}

void *mu_map_del_n(struct mu_map *m, const void *key, size_t len)
{
	if (!m->count)
		return NULL;
	struct mu_map_slot *s = map_find(m, key, len, mu_hash(key, len, m->seed));
	if (!s->key)
		return NULL;
	void *value = s->value;
	free(s->key);
	size_t hole = (size_t)(s - m->slots), mask = m->cap - 1;
	for (size_t i = (hole + 1) & mask; m->slots[i].key; i = (i + 1) & mask) {
		size_t home = m->slots[i].hash & mask;
		if (((i - home) & mask) >= ((i - hole) & mask)) {
			m->slots[hole] = m->slots[i];
			hole = i;
		}
	}
	m->slots[hole] = (struct mu_map_slot){0};
	m->count--;
	return value;
}

void *mu_map_get(const struct mu_map *m, const char *key)
{
	return mu_map_get_n(m, key, strlen(key));
}

void *mu_map_put(struct mu_map *m, const char *key, void *value)
{
	return mu_map_put_n(m, key, strlen(key), value);
}

void *mu_map_del(struct mu_map *m, const char *key)
{
	return mu_map_del_n(m, key, strlen(key));
}
