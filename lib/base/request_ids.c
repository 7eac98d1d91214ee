/* SPDX-License-Identifier: Apache-2.0 */
/* Two hash tables with open addressing.  New ids go into the first.  When it is half full, the
 * second is cleared and the two are swapped.  So no id is removed singly, and the tables contain at
 * least the last MAX_REMEMBERED ids.  Unused pages of the tables take no memory. */
#include "lib/base/request_ids.h"

#include <pthread.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/random.h"

enum { SLOTS = 1 << 17, MAX_REMEMBERED = SLOTS / 2 };

struct mu_request_ids {
	pthread_mutex_t lock;
	int64_t *tables[2]; /* 0: free */
	unsigned count;     /* ids in tables[0] */
	uint64_t seed;      /* so that callers cannot choose ids that collide */
};

struct mu_request_ids *mu_request_ids_new(void)
{
	struct mu_request_ids *r = MU_NEW(struct mu_request_ids);

	pthread_mutex_init(&r->lock, NULL);
	for (int i = 0; i < 2; i++)
		r->tables[i] = MU_NEW_ARRAY(int64_t, SLOTS);
	r->seed = mu_random_u64();
	return r;
}

void mu_request_ids_free(struct mu_request_ids *r)
{
	if (!r)
		return;
	pthread_mutex_destroy(&r->lock);
	free(r->tables[0]);
	free(r->tables[1]);
	free(r);
}

/* Finds the slot of id, or the free slot for it. */
static int64_t *request_ids_slot(int64_t *table, uint64_t hash, int64_t id)
{
	unsigned at = (unsigned)(hash % SLOTS);

	while (table[at] && table[at] != id)
		at = (at + 1) % SLOTS;
	return &table[at];
}

bool mu_request_ids_add(struct mu_request_ids *r, int64_t id)
{
	uint64_t hash = mu_mix_bits((uint64_t)id ^ r->seed);
	int64_t *slot, *full_table;
	bool is_new;

	if (id == 0)
		return true;
	pthread_mutex_lock(&r->lock);
	slot = request_ids_slot(r->tables[0], hash, id);
	is_new = !*slot && !*request_ids_slot(r->tables[1], hash, id);
	if (is_new) {
		*slot = id;
		r->count++;
	}
	if (r->count == MAX_REMEMBERED) {
		full_table = r->tables[0];
		r->tables[0] = r->tables[1];
		r->tables[1] = full_table;
		memset(r->tables[0], 0, SLOTS * sizeof(*full_table));
		r->count = 0;
	}
	pthread_mutex_unlock(&r->lock);
	return is_new;
}
