/* SPDX-License-Identifier: Apache-2.0 */
/* Sparse tensors kept under numbers, so that they can travel through a queue: what is put in gets
 * the next number, what is taken is gone. */
#include <string.h>

#include "task/kernels/elems.h"
#include "task/kernels/handles.h"
#include "task/kernels/kernel_table.h"

struct entry {
	struct mu_tensor at, values;
	int rank;
	int64_t dim[MU_MAX_RANK];
};

struct sparse_map {
	struct resource base;
	pthread_mutex_t lock;
	struct mu_map entries; /* by number */
	int64_t next;
};

static void entry_free(struct entry *e)
{
	if (e) {
		mu_tensor_unref(&e->at);
		mu_tensor_unref(&e->values);
	}
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

static struct resource *create(void *arg, struct mu_err *err)
{
	struct sparse_map *m = MU_NEW(struct sparse_map);

	resource_init(&m->base, &map_type);
	pthread_mutex_init(&m->lock, NULL);
	mu_map_init(&m->entries);
	return &m->base;
}

static int find_map(const struct kernel_call *c, struct sparse_map **out, struct mu_err *err)
{
	MU_AUTO_BUF room = {0};
	struct resource *r;
	int rc = resources_find_or_create(c->runtime->resources, resource_container(c, &room),
					  resource_name(c), &map_type, create, NULL, &r, err);

	if (!rc)
		*out = MU_CONTAINER(r, struct sparse_map, base);
	return rc;
}

static int64_t put(struct sparse_map *m, struct entry *e)
{
	pthread_mutex_lock(&m->lock);
	int64_t number = m->next++;
	mu_map_put_n(&m->entries, &number, sizeof number, e);
	pthread_mutex_unlock(&m->lock);
	return number;
}

/* Inputs 0 to 2 as positions, values, shape. */
static int check(const struct kernel_call *c, int least, int64_t *dims, int *rank,
		 struct mu_err *err)
{
	int rc;

	if ((rc = args_type(c, 0, MU_INT64, err)) || (rc = args_rank(c, 0, 2, err)) ||
	    (rc = args_rank(c, 1, 1, err)) || (rc = args_rank(c, 2, 1, err)) ||
	    (rc = args_ints(c, 2, dims, MU_MAX_RANK, rank, err)))
		return rc;
	const struct mu_shape *at = &kernel_in(c, 0)->shape;
	if (at->dim[0] != kernel_in(c, 1)->shape.count || at->dim[1] != *rank)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "positions %s, values %s and a shape of rank %d do not fit",
			       mu_shape_str(at), mu_shape_str(&kernel_in(c, 1)->shape), *rank);
	if (*rank < least)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Rank of input SparseTensor should be > %d, but saw rank: %d",
			       least - 1, *rank);
	for (int d = 0; d < *rank; d++)
		if (dims[d] < 0)
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "dimension %d of the sparse shape is negative", d);
	return 0;
}

static int add_one(struct kernel_call *c, struct mu_err *err)
{
	struct entry e = {0};
	struct sparse_map *m;
	struct mu_tensor t;
	int rc;

	if ((rc = check(c, 0, e.dim, &e.rank, err)) || (rc = find_map(c, &m, err)))
		return rc;
	struct entry *kept = MU_NEW(struct entry);
	*kept = e;
	kept->at = mu_tensor_ref(kernel_in(c, 0));
	kept->values = mu_tensor_ref(kernel_in(c, 1));
	int64_t number = put(m, kept);
	resource_unref(&m->base);
	if (!(rc = mu_tensor_scalar(&t, MU_INT64, &number, err)))
		kernel_out_take(c, 0, t);
	return rc;
}

/* Rows [from, to) of the positions without their first column, which is the same in all. */
static int make_entry(const struct kernel_call *c, int64_t from, int64_t to, const int64_t *dims,
		      int rank, struct entry **out, struct mu_err *err)
{
	const struct mu_tensor *at = kernel_in(c, 0), *values = kernel_in(c, 1);
	struct mu_shape s, vec = mu_shape_vec(to - from);
	struct entry *e = MU_NEW(struct entry);
	int rc;

	e->rank = rank - 1;
	memcpy(e->dim, dims + 1, (size_t)(rank - 1) * sizeof *dims);
	if ((rc = mu_shape_set(&s, 2, (int64_t[]){to - from, rank - 1}, err)) ||
	    (rc = mu_tensor_new(&e->at, MU_INT64, &s, err)) ||
	    (rc = mu_tensor_new(&e->values, values->dtype, &vec, err))) {
		entry_free(e);
		return rc;
	}
	for (int64_t i = from; i < to; i++)
		elems_copy(MU_INT64, e->at.data, (i - from) * (rank - 1), at->data, i * rank + 1,
			   rank - 1);
	elems_copy(values->dtype, e->values.data, 0, values->data, from, to - from);
	*out = e;
	return 0;
}

static int add_many(struct kernel_call *c, struct mu_err *err)
{
	int64_t dims[MU_MAX_RANK], i = 0;
	struct mu_tensor *numbers;
	struct sparse_map *m;
	struct entry *e;
	int rank, rc;

	if ((rc = check(c, 2, dims, &rank, err)))
		return rc;
	struct mu_shape vec;
	if ((rc = mu_shape_set(&vec, 1, dims, err)) ||
	    (rc = kernel_out(c, 0, MU_INT64, &vec, &numbers, err)))
		return rc;
	const int64_t *at = MU_DATA(int64_t, kernel_in(c, 0));
	int64_t n = kernel_in(c, 0)->shape.dim[0];
	for (int64_t k = 0; k < n; k++) {
		int64_t b = at[k * rank];
		if (b < 0 || b >= dims[0] || (k && b < at[(k - 1) * rank]))
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "Received unexpected column 0 value in input SparseTensor: "
				       "%lld, not in order or not in [0, %lld)",
				       (long long)b, (long long)dims[0]);
	}
	if ((rc = find_map(c, &m, err)))
		return rc;
	for (int64_t b = 0; b < dims[0] && !rc; b++) {
		int64_t from = i;
		while (i < n && at[i * rank] == b)
			i++;
		if (!(rc = make_entry(c, from, i, dims, rank, &e, err)))
			MU_DATA(int64_t, numbers)[b] = put(m, e);
	}
	resource_unref(&m->base);
	return rc;
}

/* ---- taking ---- */

static int join(struct kernel_call *c, struct entry **list, int64_t n, enum mu_dtype type,
		struct mu_err *err)
{
	struct mu_tensor *at, *values, *shape;
	int64_t total = 0, k = 0;
	int rank = n ? list[0]->rank : 0, rc;

	for (int64_t b = 0; b < n; b++) {
		if (list[b]->rank != rank || list[b]->values.dtype != type)
			return mu_fail(
			    err, MU_INVALID_ARGUMENT,
			    "Inconsistent rank or type across SparseTensors: %s of rank %d "
			    "at index %lld, but %s of rank %d is wanted",
			    mu_dtype_name(list[b]->values.dtype), list[b]->rank, (long long)b,
			    mu_dtype_name(type), rank);
		total += list[b]->values.shape.count;
	}
	struct mu_shape s, vec = mu_shape_vec(total), dims = mu_shape_vec(rank + 1);
	if ((rc = mu_shape_set(&s, 2, (int64_t[]){total, rank + 1}, err)) ||
	    (rc = kernel_out(c, 0, MU_INT64, &s, &at, err)) ||
	    (rc = kernel_out(c, 1, type, &vec, &values, err)) ||
	    (rc = kernel_out(c, 2, MU_INT64, &dims, &shape, err)))
		return rc;
	int64_t *size = shape->data;
	memset(size, 0, (size_t)(rank + 1) * sizeof *size);
	size[0] = n;
	for (int64_t b = 0; b < n; b++) {
		int64_t have = list[b]->values.shape.count;
		for (int d = 0; d < rank; d++)
			if (list[b]->dim[d] > size[d + 1])
				size[d + 1] = list[b]->dim[d];
		for (int64_t i = 0; i < have; i++) {
			MU_DATA(int64_t, at)[(k + i) * (rank + 1)] = b;
			elems_copy(MU_INT64, at->data, (k + i) * (rank + 1) + 1, list[b]->at.data,
				   i * rank, rank);
		}
		elems_copy(type, values->data, k, list[b]->values.data, 0, have);
		k += have;
	}
	return 0;
}

static int take_many(struct kernel_call *c, struct mu_err *err)
{
	struct sparse_map *m;
	enum mu_dtype type;
	int rc;

	if ((rc = args_type(c, 0, MU_INT64, err)) || (rc = args_rank(c, 0, 1, err)) ||
	    (rc = mu_node_attr_type(c->node, "dtype", &type, err)) || (rc = find_map(c, &m, err)))
		return rc;
	int64_t n = kernel_in(c, 0)->shape.count;
	struct entry **list = mu_xcalloc((size_t)n + 1, sizeof *list);
	pthread_mutex_lock(&m->lock);
	for (int64_t b = 0; b < n && !rc; b++) {
		int64_t number = MU_DATA(int64_t, kernel_in(c, 0))[b];
		list[b] = mu_map_del_n(&m->entries, &number, sizeof number);
		if (!list[b])
			rc = mu_fail(err, MU_INVALID_ARGUMENT,
				     "Unable to find SparseTensor: %lld in map: %s",
				     (long long)number, m->base.name);
	}
	pthread_mutex_unlock(&m->lock);
	resource_unref(&m->base);
	if (!rc)
		rc = join(c, list, n, type, err);
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
KERNEL_TABLE(sparse_map, rows)
