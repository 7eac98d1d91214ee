/* SPDX-License-Identifier: Apache-2.0 */
/* malloc keeps seven free pieces of each size for a thread.  A tree has hundreds, and the rest was
 * joined with its neighbours when freed and cut out again for the next tree: a quarter of all that
 * the operator did. */
#include "operator/control/json_pool.h"

#include <cjson/cJSON.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>

enum { STEP = 16, SMALLEST = 24, SIZES = 4, KEEP = 256 }; /* malloc's steps; a node has 64 bytes */

struct piece {
	struct piece *next;
};
struct pool {
	struct piece *first[SIZES];
	unsigned n[SIZES];
};
static __thread struct pool *own;
static pthread_key_t key;

static void pool_free(void *pool)
{
	struct pool *p = pool;

	for (int i = 0; i < SIZES; i++)
		for (struct piece *at = p->first[i], *next; at; at = next) {
			next = at->next;
			free(at);
		}
	free(p);
	own = NULL;
}

/* NULL when there is no memory for one: then malloc does alone. */
static struct pool *pool_of_thread(void)
{
	if (own)
		return own;
	own = calloc(1, sizeof(*own));
	if (own && pthread_setspecific(key, own) != 0) {
		free(own);
		own = NULL;
	}
	return own;
}

static void *take(size_t size)
{
	size_t i = size <= SMALLEST ? 0 : (size - SMALLEST + STEP - 1) / STEP;
	struct piece *piece;

	if (i >= SIZES || !own || !own->first[i])
		return malloc(size);
	piece = own->first[i];
	own->first[i] = piece->next;
	own->n[i]--;
	return piece;
}

static void give(void *memory)
{
	size_t size = memory ? malloc_usable_size(memory) : 0;
	size_t i = (size - SMALLEST) / STEP;
	struct pool *p = size >= SMALLEST && i < SIZES ? pool_of_thread() : NULL;
	struct piece *piece = memory;

	if (!p || p->n[i] >= KEEP) {
		free(memory);
		return;
	}
	piece->next = p->first[i];
	p->first[i] = piece;
	p->n[i]++;
}

void json_pool_install(void)
{
	if (pthread_key_create(&key, pool_free) == 0)
		cJSON_InitHooks(&(cJSON_Hooks){take, give});
}
