/* SPDX-License-Identifier: Apache-2.0 */
/* Sparse tensors stored under handle numbers, so that they can pass through a queue. An insertion
 * returns the next number; a lookup removes the tensor. */
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/sparse/sparse.h"
#include "task/kernels/state/handles.h"

enum { MAX_ROWS = 1 << 20 }; /* of one insertion */

struct sparse_map {
	struct resource base;
	pthread_mutex_t lock;
	struct mu_map entries; /* by number */
	int64_t next;
};

static void entry_free(struct sparse_part *e)
{
	if (e)
		sparse_part_fini(e);
	free(e);
}

static void map_free(struct resource *r)
{
	struct sparse_map *m = MU_CONTAINER(r, struct sparse_map, base);

	mu_map_each (&m->entries, s)
		entry_free(s->value);
	mu_map_fini(&m->entries);
	pthread_mutex_destroy(&m->lock);
	free(m);
}

static const struct resource_type map_type = {.name = "sparse tensors", .free = map_free};

static struct resource *tensors_map_create(void *arg, struct mu_err *err)
{
	struct sparse_map *m = MU_NEW(struct sparse_map);

	resource_init(&m->base, &map_type);
	pthread_mutex_init(&m->lock, NULL);
	mu_map_init(&m->entries);
	return &m->base;
}

static int find_map(const struct kernel_call *c, struct sparse_map **out, struct mu_err *err)
{
	MU_AUTO_BUF buf = {0};
	struct resource *r;

	MU_RETURN_IF_ERROR(resources_find_or_create(c->runtime->resources,
						    resource_container(c, &buf), resource_name(c),
						    &map_type, tensors_map_create, NULL, &r, err));
	*out = MU_CONTAINER(r, struct sparse_map, base);
	return 0;
}

/* Moves the part into the map and returns its number. */
static int64_t tensors_map_put(struct sparse_map *m, const struct sparse_part *p)
{
	struct sparse_part *e = MU_NEW(struct sparse_part);

	*e = *p;
	pthread_mutex_lock(&m->lock);
	int64_t number = m->next++;
	mu_map_put_n(&m->entries, &number, sizeof number, e);
	pthread_mutex_unlock(&m->lock);
	return number;
}

static int add_one(struct kernel_call *c, struct mu_err *err)
{
	struct sparse_part p;
	struct sparse_map *m;
	int rc;

	MU_RETURN_IF_ERROR(sparse_part_in(c, 0, &p, err));
	if ((rc = find_map(c, &m, err))) {
		sparse_part_fini(&p);
		return rc;
	}
	int64_t number = tensors_map_put(m, &p);
	resource_unref(&m->base);
	return kernel_out_value(c, 0, MU_INT64, &number, err);
}

static int add_rows(struct kernel_call *c, const struct sparse_part *batch, struct mu_err *err)
{
	const int64_t *at = MU_DATA(int64_t, &batch->at);
	int64_t n = batch->values.shape.count, i = 0;
	struct mu_tensor *numbers;
	struct sparse_part row;
	struct sparse_map *m;
	int rc = 0;

	if (batch->dim[0] > MAX_ROWS)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED,
			       "a minibatch of %lld sparse tensors, more than %d",
			       (long long)batch->dim[0], MAX_ROWS);
	MU_RETURN_IF_ERROR(kernel_out_dims(c, 0, MU_INT64, 1, batch->dim, &numbers, err));
	MU_RETURN_IF_ERROR(sparse_part_check_rows(batch, err));
	MU_RETURN_IF_ERROR(find_map(c, &m, err));
	for (int64_t b = 0; b < batch->dim[0] && !rc; b++) {
		int64_t from = i;
		while (i < n && at[i * batch->rank] == b)
			i++;
		if (!(rc = sparse_part_row(batch, from, i, &row, err)))
			MU_DATA(int64_t, numbers)[b] = tensors_map_put(m, &row);
	}
	resource_unref(&m->base);
	return rc;
}

static int add_many(struct kernel_call *c, struct mu_err *err)
{
	struct sparse_part batch;
	int rc;

	MU_RETURN_IF_ERROR(sparse_part_in(c, 2, &batch, err));
	rc = add_rows(c, &batch, err);
	sparse_part_fini(&batch);
	return rc;
}

/* ---- removal ---- */

static int take_many(struct kernel_call *c, struct mu_err *err)
{
	struct sparse_map *m;
	enum mu_dtype type;
	int rc = 0;

	MU_RETURN_IF_ERROR(mu_node_attr_type(c->node, "dtype", &type, err));
	MU_RETURN_IF_ERROR(find_map(c, &m, err));
	int64_t n = kernel_in(c, 0)->shape.count;
	struct sparse_part **list = mu_xcalloc((size_t)n + 1, sizeof *list);
	pthread_mutex_lock(&m->lock);
	for (int64_t b = 0; b < n && !rc; b++) {
		int64_t number = MU_DATA(int64_t, kernel_in(c, 0))[b];
		list[b] = mu_map_del_n(&m->entries, &number, sizeof number);
		if (!list[b])
			rc = mu_invalid(err, "Unable to find SparseTensor: %lld in map: %s",
					(long long)number, m->base.name);
	}
	pthread_mutex_unlock(&m->lock);
	resource_unref(&m->base);
	if (!rc)
		rc = sparse_parts_join(c, (const struct sparse_part *const *)list,
				       &kernel_in(c, 0)->shape, type, err);
	for (int64_t b = 0; b < n; b++)
		entry_free(list[b]);
	free(list);
	return rc;
}

static const struct kernel rows[] = {
    {"AddSparseToTensorsMap", .run = add_one},
    {"AddManySparseToTensorsMap", .run = add_many},
    {"TakeManySparseFromTensorsMap", .run = take_many},
};
KERNEL_TABLE(sparse_tensors_map, rows)
