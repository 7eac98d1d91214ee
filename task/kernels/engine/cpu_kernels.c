/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU device's kernels by op name: the tables of cpu_tables.def in one hash table. */
#include <pthread.h>

#include "lib/base/map.h"
#include "task/kernels/engine/kernel_table.h"

#define TABLE(name) KERNEL_TABLE_DECLARE(name)
#include "task/kernels/engine/cpu_tables.def"
#undef TABLE

static const struct kernel_table *const tables[] = {
#define TABLE(name) &kernel_table_##name,
#include "task/kernels/engine/cpu_tables.def"
#undef TABLE
};

static struct mu_map by_op;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void cpu_kernels_build(void)
{
	mu_map_init(&by_op);
	for (unsigned i = 0; i < MU_COUNT(tables); i++)
		for (unsigned k = 0; k < tables[i]->count; k++)
			mu_map_put(&by_op, tables[i]->rows[k].op, (void *)&tables[i]->rows[k]);
}

const struct kernel *cpu_kernel_find(const char *op)
{
	pthread_once(&once, cpu_kernels_build);
	return mu_map_get(&by_op, op);
}

const struct kernel *cpu_kernel_at(unsigned i)
{
	for (unsigned t = 0; t < MU_COUNT(tables); t++) {
		if (i < tables[t]->count)
			return &tables[t]->rows[i];
		i -= tables[t]->count;
	}
	return NULL;
}
