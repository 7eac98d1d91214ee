/* SPDX-License-Identifier: Apache-2.0 */
/* Maps from tensors to tensors, as values: an op takes a map and returns one.
 *
 * A map with one reference is changed in place. A shared map is copied, its tensors by reference.
 * Keys are equal if their types, shapes and bytes are. */
#include "lib/base/map.h"
#include "task/kernels/control/sum.h"
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/variant.h"
#include "task/kernels/text/tensor_text.h"

struct map_entry {
	struct mu_tensor key, value;
};

struct tensor_map {
	struct mu_object object;
	struct mu_map entries; /* the key's bytes -> struct map_entry */
};

static void entry_free(struct map_entry *e)
{
	if (!e)
		return;
	mu_tensor_unref(&e->key);
	mu_tensor_unref(&e->value);
	free(e);
}

static void tensor_map_free(struct mu_object *o)
{
	struct tensor_map *m = MU_CONTAINER(o, struct tensor_map, object);

	mu_map_each (&m->entries, s)
		entry_free(s->value);
	mu_map_fini(&m->entries);
	free(m);
}

static int tensor_map_zeros(const struct mu_object *o, struct mu_object **out, struct mu_err *err);
static int tensor_map_add(const struct mu_object *a, const struct mu_object *b,
			  struct mu_object **out, struct mu_err *err);
static const struct mu_object_type tensor_map_type = {.name = "map of tensors",
						      .free = tensor_map_free,
						      .zeros = tensor_map_zeros,
						      .add = tensor_map_add};

static struct tensor_map *tensor_map_new(void)
{
	struct tensor_map *m = MU_NEW(struct tensor_map);

	mu_object_init(&m->object, &tensor_map_type);
	mu_map_init(&m->entries);
	return m;
}

static void put_entry(struct tensor_map *m, const void *bytes, size_t len,
		      const struct mu_tensor *key, const struct mu_tensor *value)
{
	struct map_entry *e = MU_NEW(struct map_entry);

	*e = (struct map_entry){mu_tensor_ref(key), mu_tensor_ref(value)};
	entry_free(mu_map_put_n(&m->entries, bytes, len, e));
}

static struct tensor_map *tensor_map_copy(const struct tensor_map *from)
{
	struct tensor_map *m = tensor_map_new();

	mu_map_each (&from->entries, s) {
		const struct map_entry *e = s->value;
		put_entry(m, s->key, s->len, &e->key, &e->value);
	}
	return m;
}

/* As in TensorFlow, an empty map: addition treats a missing key as zeros. */
static int tensor_map_zeros(const struct mu_object *o, struct mu_object **out, struct mu_err *err)
{
	*out = &tensor_map_new()->object;
	return 0;
}

/* The result has the keys of both maps; the values of common keys are added. */
static int tensor_map_add(const struct mu_object *a, const struct mu_object *b,
			  struct mu_object **out, struct mu_err *err)
{
	struct tensor_map *m = tensor_map_copy(MU_CONTAINER(a, const struct tensor_map, object));
	const struct tensor_map *other = MU_CONTAINER(b, const struct tensor_map, object);

	mu_map_each (&other->entries, s) {
		const struct map_entry *y = s->value;
		struct map_entry *x = mu_map_get_n(&m->entries, s->key, s->len);
		struct mu_tensor sum;
		int rc = 0;
		if (!x) {
			put_entry(m, s->key, s->len, &y->key, &y->value);
		} else if (x->value.dtype != MU_VARIANT) {
			rc = sum_add(&x->value, &y->value, err);
		} else if (!(rc = variant_add(&sum, &x->value, &y->value, err))) {
			mu_tensor_unref(&x->value);
			x->value = sum;
		}
		if (rc) {
			mu_object_unref(&m->object);
			return rc;
		}
	}
	*out = &m->object;
	return 0;
}

/* ---- ops ---- */

/* Returns input 0's map and, unless `bytes` is NULL, the bytes of the key in input 1. */
static int map_in(const struct kernel_call *c, struct tensor_map **out, struct mu_buf *bytes,
		  struct mu_err *err)
{
	struct mu_object *o;

	MU_RETURN_IF_ERROR(args_rank(c, 0, 0, err));
	MU_RETURN_IF_ERROR(variant_in(c, 0, &tensor_map_type, &o, err));
	*out = MU_CONTAINER(o, struct tensor_map, object);
	if (!bytes)
		return 0;
	const struct mu_tensor *key = kernel_in(c, 1);
	if (key->dtype == MU_VARIANT || key->dtype == MU_RESOURCE)
		return mu_fail(err, MU_UNIMPLEMENTED, "a key of type %s",
			       mu_dtype_name(key->dtype));
	mu_buf_put(bytes, &key->dtype, sizeof key->dtype);
	mu_buf_put(bytes, &key->shape.rank, sizeof key->shape.rank);
	mu_buf_put(bytes, key->shape.dim, (size_t)key->shape.rank * sizeof key->shape.dim[0]);
	for (int64_t i = 0; i < key->shape.count && key->dtype == MU_STRING; i++) {
		struct mu_span s = elems_span(key, i);
		mu_buf_put(bytes, &s.len, sizeof s.len);
		mu_buf_put(bytes, s.data, s.len);
	}
	if (key->dtype != MU_STRING)
		mu_buf_put(bytes, key->data, (size_t)key->shape.count * mu_dtype_size(key->dtype));
	return 0;
}

static int find_entry(const struct kernel_call *c, const char *verb, struct tensor_map **m,
		      struct mu_buf *bytes, struct map_entry **out, struct mu_err *err)
{
	MU_RETURN_IF_ERROR(map_in(c, m, bytes, err));
	if ((*out = mu_map_get_n(&(*m)->entries, bytes->data, bytes->len)))
		return 0;
	MU_AUTO_BUF key = {0};
	tensor_text_nested(&key, kernel_in(c, 1), 3);
	return mu_invalid(err, "Trying to %s. Could not find key \"%s\".", verb, key.data);
}

/* Returns m, the map of input 0, if nothing else refers to it, else a copy.  The result is a new
 * reference. */
static struct tensor_map *map_writable(struct kernel_call *c, struct tensor_map *m)
{
	if (!variant_is_sole(c, 0))
		return tensor_map_copy(m);
	*MU_DATA(struct mu_object *, kernel_in(c, 0)) = NULL; /* the output takes the reference */
	return m;
}

static int map_empty(struct kernel_call *c, struct mu_err *err)
{
	return variant_out(c, 0, &tensor_map_new()->object, err);
}

static int map_size(struct kernel_call *c, struct mu_err *err)
{
	struct tensor_map *m;

	MU_RETURN_IF_ERROR(map_in(c, &m, NULL, err));
	return kernel_out_value(c, 0, MU_INT32, &(int32_t){(int32_t)m->entries.count}, err);
}

static int map_insert(struct kernel_call *c, struct mu_err *err)
{
	MU_AUTO_BUF bytes = {0};
	struct tensor_map *m;

	MU_RETURN_IF_ERROR(map_in(c, &m, &bytes, err));
	m = map_writable(c, m);
	put_entry(m, bytes.data, bytes.len, kernel_in(c, 1), kernel_in(c, 2));
	return variant_out(c, 0, &m->object, err);
}

static int map_lookup(struct kernel_call *c, struct mu_err *err)
{
	MU_AUTO_BUF bytes = {0};
	struct tensor_map *m;
	struct map_entry *e;

	MU_RETURN_IF_ERROR(find_entry(c, "lookup non-existent key", &m, &bytes, &e, err));
	enum mu_dtype want = args_attr_type(c->node, "value_dtype", e->value.dtype);
	if (want != e->value.dtype)
		return mu_invalid(err, "the value of the key is %s, not %s",
				  mu_dtype_name(e->value.dtype), mu_dtype_name(want));
	kernel_out_take(c, 0, mu_tensor_ref(&e->value));
	return 0;
}

static int map_erase(struct kernel_call *c, struct mu_err *err)
{
	MU_AUTO_BUF bytes = {0};
	struct tensor_map *m;
	struct map_entry *e;

	MU_RETURN_IF_ERROR(find_entry(c, "erase non-existent item", &m, &bytes, &e, err));
	m = map_writable(c, m);
	entry_free(mu_map_del_n(&m->entries, bytes.data, bytes.len));
	return variant_out(c, 0, &m->object, err);
}

static int map_has_key(struct kernel_call *c, struct mu_err *err)
{
	MU_AUTO_BUF bytes = {0};
	struct tensor_map *m;

	MU_RETURN_IF_ERROR(map_in(c, &m, &bytes, err));
	bool has = mu_map_get_n(&m->entries, bytes.data, bytes.len) != NULL;
	return kernel_out_value(c, 0, MU_BOOL, &has, err);
}

/* The keys in any order, as the rows of one tensor. */
static int map_stack_keys(struct kernel_call *c, struct mu_err *err)
{
	enum mu_dtype type = args_attr_type(c->node, "key_dtype", MU_FLOAT);
	struct mu_tensor *out = NULL;
	const struct mu_shape *key_shape = NULL;
	struct tensor_map *m;
	int64_t at = 0;

	MU_RETURN_IF_ERROR(map_in(c, &m, NULL, err));
	if (!m->entries.count)
		return mu_invalid(err, "TensorMapStackKeys cannot be called on empty map.");
	mu_map_each (&m->entries, s) {
		const struct mu_tensor *key = &((const struct map_entry *)s->value)->key;
		struct mu_shape all = mu_shape_vec((int64_t)m->entries.count);
		if (!key_shape) {
			key_shape = &key->shape;
			MU_RETURN_IF_ERROR(
			    mu_shape_append(&all, key_shape->rank, key_shape->dim, err));
			MU_RETURN_IF_ERROR(kernel_out(c, 0, type, &all, &out, err));
		}
		if (key->dtype != type)
			return mu_invalid(err, "Key does not match requested dtype.");
		if (!mu_shape_eq(&key->shape, key_shape))
			return mu_invalid(err, "Keys must all have the same shape.");
		elems_copy(type, out->data, at, key->data, 0, key_shape->count);
		at += key_shape->count;
	}
	return 0;
}

static const struct kernel rows[] = {
    {"EmptyTensorMap", .run = map_empty},          {"TensorMapSize", .run = map_size},
    {"TensorMapInsert", .run = map_insert},        {"TensorMapLookup", .run = map_lookup},
    {"TensorMapErase", .run = map_erase},          {"TensorMapHasKey", .run = map_has_key},
    {"TensorMapStackKeys", .run = map_stack_keys},
};
KERNEL_TABLE(control_tensor_map, rows)
