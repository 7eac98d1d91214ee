/* SPDX-License-Identifier: Apache-2.0 */
#include "task/request_ids.h"

#include <pthread.h>
#include <sys/random.h>
#include <time.h>

#include "lib/base/map.h"
#include "lib/base/mem.h"

enum { REMEMBERED = 8192 };

struct request_ids {
	pthread_mutex_t lock;
	struct mu_map seen;
	int64_t ring[REMEMBERED];
	unsigned at;
};

struct request_ids *request_ids_new(void)
{
	struct request_ids *r = MU_NEW(struct request_ids);

	pthread_mutex_init(&r->lock, NULL);
	mu_map_init(&r->seen);
	return r;
}

void request_ids_free(struct request_ids *r)
{
	if (!r)
		return;
	mu_map_fini(&r->seen);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

bool request_ids_add(struct request_ids *r, int64_t id)
{
	bool is_new;

	if (id == 0)
		return true;
	pthread_mutex_lock(&r->lock);
	is_new = !mu_map_get_n(&r->seen, &id, sizeof(id));
	if (is_new) {
		int64_t *old = &r->ring[r->at++ % REMEMBERED];

		if (*old)
			mu_map_del_n(&r->seen, old, sizeof(*old));
		*old = id;
		mu_map_put_n(&r->seen, &id, sizeof(id), r);
	}
	pthread_mutex_unlock(&r->lock);
	return is_new;
}

/* splitmix64, seeded by the kernel, one stream a thread: no system call a step. */
uint64_t random_u64(void)
{
	static _Thread_local uint64_t state;
	uint64_t z;

	do {
		if (!state && getrandom(&state, sizeof(state), 0) != sizeof(state))
			state = (uint64_t)time(NULL) * 0x9e3779b97f4a7c15u ^ (uintptr_t)&state;
		z = state += 0x9e3779b97f4a7c15u;
		z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
		z = (z ^ z >> 27) * 0x94d049bb133111ebu;
		z ^= z >> 31;
	} while (z == 0);
	return z;
}
