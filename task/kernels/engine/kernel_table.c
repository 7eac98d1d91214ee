/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels by op name: the tables of cpu_tables.def and of gpu_tables.def, each set in one hash
 * table. */
#include "task/kernels/engine/kernel_table.h"

#include <pthread.h>
#include <string.h>

#include "lib/base/map.h"
#include "task/kernels/engine/gpu_table.h"

#define WIDENED_TABLE(name) TABLE(name)
#define TABLE(name)         KERNEL_TABLE_DECLARE(name)
#include "task/kernels/engine/cpu_tables.def"
#include "task/kernels/engine/gpu_tables.def"
#undef TABLE

#define TABLE(name) &kernel_table_##name,
static const struct kernel_table *const cpu_tables[] = {
#include "task/kernels/engine/cpu_tables.def"
};
static const struct kernel_table *const gpu_tables[] = {
#include "task/kernels/engine/gpu_tables.def"
};

static struct mu_map cpu_rows, gpu_rows;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static const struct kernel *row_of(const struct kernel_table *t, unsigned i)
{
	return (const void *)((const char *)t->rows + i * t->row_size);
}

/* A row may serve several ops. */
static void put_row(struct mu_map *by_op, const struct kernel *k)
{
	for (const char *name = k->op; *name;) {
		size_t n = strcspn(name, " ");
		mu_map_put_n(by_op, name, n, (void *)k);
		name += n + (name[n] == ' ');
	}
}

static void put_tables(struct mu_map *by_op, const struct kernel_table *const *tables, unsigned n)
{
	mu_map_init(by_op);
	for (unsigned t = 0; t < n; t++)
		for (unsigned i = 0; i < tables[t]->count; i++)
			put_row(by_op, row_of(tables[t], i));
}

static void build(void)
{
	put_tables(&cpu_rows, cpu_tables, MU_COUNT(cpu_tables));
	put_tables(&gpu_rows, gpu_tables, MU_COUNT(gpu_tables));
}

const struct kernel *cpu_kernel_find(const char *op)
{
	pthread_once(&once, build);
	return mu_map_get(&cpu_rows, op);
}

const struct device_kernel *gpu_kernel_row(const char *op)
{
	pthread_once(&once, build);
	return mu_map_get(&gpu_rows, op);
}

const struct kernel *cpu_kernel_at(unsigned i)
{
	for (unsigned t = 0; t < MU_COUNT(cpu_tables); t++) {
		if (i < cpu_tables[t]->count)
			return row_of(cpu_tables[t], i);
		i -= cpu_tables[t]->count;
	}
	return NULL;
}
