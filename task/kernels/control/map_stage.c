/* SPDX-License-Identifier: Apache-2.0 */
/* Staging maps: tuples of tensors that one part of a step stores under a key for another part or
 * for the next step. A tuple may be staged and unstaged in parts. The unordered map of TensorFlow
 * yields keys in any order; here both kinds yield the smallest key first. */
#include "task/kernels/control/wait_queue.h"
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/state/variables.h"

struct entry {
	int64_t key;
	unsigned n, n_set;
	struct mu_tensor t[]; /* unset: not staged yet, or removed */
};

/* Entries in the order of their keys: e[from] to e[from + count - 1]. */
struct entries {
	struct entry **e;
	size_t from, count, cap;
};

struct staging_map {
	struct resource base;
	struct wait_queue waiters;
	int64_t capacity, limit; /* entries and bytes; 0: unlimited */
	struct entries complete, incomplete;
	size_t bytes;
};

/* Returns the index of the first entry whose key is at least `key`. */
static size_t entries_lower_bound(const struct entries *es, int64_t key)
{
	size_t low = es->from, high = es->from + es->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (es->e[middle]->key < key)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct entry *entries_find(const struct entries *es, int64_t key)
{
	size_t i = entries_lower_bound(es, key);

	return i < es->from + es->count && es->e[i]->key == key ? es->e[i] : NULL;
}

static void entries_insert(struct entries *es, struct entry *e)
{
	size_t end = es->from + es->count, i;

	if (end == es->cap) { /* moves the entries to the front, or doubles the array */
		if (es->from <= es->cap / 2) {
			es->cap = es->cap ? 2 * es->cap : 8;
			es->e = mu_xrealloc(es->e, es->cap * sizeof(*es->e));
		}
		if (es->count)
			memmove(es->e, es->e + es->from, es->count * sizeof(*es->e));
		es->from = 0;
		end = es->count;
	}
	i = entries_lower_bound(es, e->key);
	memmove(es->e + i + 1, es->e + i, (end - i) * sizeof(*es->e));
	es->e[i] = e;
	es->count++;
}

static void entries_remove(struct entries *es, const struct entry *e)
{
	size_t i = entries_lower_bound(es, e->key);

	es->count--;
	if (i == es->from)
		es->from++;
	else
		memmove(es->e + i, es->e + i + 1, (es->from + es->count - i) * sizeof(*es->e));
}

static void entry_free(struct entry *e)
{
	for (unsigned i = 0; e && i < e->n; i++)
		mu_tensor_unref(&e->t[i]);
	free(e);
}

static void entries_clear(struct entries *es)
{
	for (size_t i = 0; i < es->count; i++)
		entry_free(es->e[es->from + i]);
	free(es->e);
	*es = (struct entries){0};
}

static void staging_map_clear(void *arg)
{
	struct staging_map *m = arg;

	entries_clear(&m->complete);
	entries_clear(&m->incomplete);
	m->bytes = 0;
}

static void staging_map_free(struct resource *r)
{
	struct staging_map *m = MU_CONTAINER(r, struct staging_map, base);

	staging_map_clear(m);
	wait_queue_fini(&m->waiters);
	free(m);
}

static size_t staging_map_bytes(struct resource *r)
{
	struct staging_map *m = MU_CONTAINER(r, struct staging_map, base);

	pthread_mutex_lock(&m->waiters.lock);
	size_t bytes = m->bytes;
	pthread_mutex_unlock(&m->waiters.lock);
	return bytes;
}

static void staging_map_close(struct resource *r)
{
	struct staging_map *m = MU_CONTAINER(r, struct staging_map, base);

	wait_queue_close(&m->waiters, "ends: its staging map was reset");
}

static const struct resource_type staging_map_type = {.name = "staging map",
						      .free = staging_map_free,
						      .bytes = staging_map_bytes,
						      .close = staging_map_close};

static struct resource *staging_map_new(void *arg, struct mu_err *err)
{
	const struct mu_node *n = arg;
	struct staging_map *m = MU_NEW(struct staging_map);

	resource_init(&m->base, &staging_map_type);
	wait_queue_init(&m->waiters);
	m->capacity = args_attr_int(n, "capacity", 0);
	m->limit = args_attr_int(n, "memory_limit", 0);
	return &m->base;
}

/* Finds or creates the staging map of the node; *out is a new reference. */
static int staging_map_of(struct kernel_call *c, struct staging_map **out, struct mu_err *err)
{
	MU_AUTO_BUF buf = {0};
	struct resource *r;

	MU_RETURN_IF_ERROR(resources_find_or_create(
	    c->runtime->resources, resource_container(c, &buf), resource_name(c), &staging_map_type,
	    staging_map_new, (void *)c->node, &r, err));
	*out = MU_CONTAINER(r, struct staging_map, base);
	return 0;
}

/* ---- calls that may wait ---- */

struct map_call {
	struct waiter w;
	struct staging_map *m;
	int64_t key;
	bool any_key; /* MapUnstageNoKey: the smallest key */
	bool remove;
	const struct mu_tensor *indices; /* an input of the call */
	struct entry *new_entry;         /* MapStage */
	size_t bytes;                    /* of the tensors of new_entry */
};

static void map_call_free(struct waiter *w)
{
	struct map_call *t = MU_CONTAINER(w, struct map_call, w);

	entry_free(t->new_entry);
	free(t);
}

static int check_index(const struct map_call *t, const struct entry *e, int64_t i,
		       struct mu_err *err)
{
	int32_t index = MU_DATA(int32_t, t->indices)[i];

	if (i && index <= MU_DATA(int32_t, t->indices)[i - 1])
		return mu_invalid(err, "Indices are not strictly ordered");
	if (index < 0 || (unsigned)index >= e->n)
		return mu_invalid(err, "Index '%d' for key '%lld' was out of bounds '%u'.", index,
				  (long long)e->key, e->n);
	return 0;
}

/* Moves the tensors of t->new_entry into an incomplete entry, which has other tensors. */
static int entry_merge(struct map_call *t, struct entry *e, struct mu_err *err)
{
	const int32_t *index = t->indices->data;

	if (e->n != t->new_entry->n)
		return mu_invalid(err, "key '%lld' has a tuple of %u tensors, not %u",
				  (long long)e->key, e->n, t->new_entry->n);
	for (int64_t i = 0; i < t->indices->shape.count; i++)
		if (mu_tensor_is_set(&e->t[index[i]]))
			return mu_invalid(
			    err,
			    "The tensor for index '%d' for key '%lld' was already initialized "
			    "'%u'.",
			    index[i], (long long)e->key, e->n);
	for (int64_t i = 0; i < t->indices->shape.count; i++) {
		e->t[index[i]] = t->new_entry->t[index[i]];
		t->new_entry->t[index[i]] = (struct mu_tensor){0};
	}
	e->n_set += t->new_entry->n_set;
	t->m->bytes += t->bytes;
	if (e->n_set < e->n)
		return 0;
	entries_remove(&t->m->incomplete, e);
	if (!entries_find(&t->m->complete, e->key)) {
		entries_insert(&t->m->complete, e);
		return 0;
	}
	for (unsigned i = 0; i < e->n; i++)
		t->m->bytes -= mu_tensor_bytes(&e->t[i]);
	entry_free(e);
	return 0;
}

static bool map_put_try(struct waiter *w)
{
	struct map_call *t = MU_CONTAINER(w, struct map_call, w);
	struct staging_map *m = t->m;
	const bool is_complete = t->new_entry->n_set == t->new_entry->n;
	struct entry *e = entries_find(is_complete ? &m->complete : &m->incomplete, t->key);

	if (!is_complete && e) {
		entry_merge(t, e, &w->err);
		return true;
	}
	if (m->limit > 0 && t->bytes > (size_t)m->limit) {
		mu_fail(&w->err, MU_RESOURCE_EXHAUSTED,
			"Attempted to insert tensors with combined size of '%zu' bytes into "
			"Staging Area with a memory limit of '%lld'.",
			t->bytes, (long long)m->limit);
		return true;
	}
	if ((is_complete && m->capacity > 0 && m->complete.count >= (size_t)m->capacity) ||
	    (m->limit > 0 && m->bytes + t->bytes > (size_t)m->limit))
		return false;
	if (e) /* as in TensorFlow, the first tuple of a key remains */
		return true;
	entries_insert(is_complete ? &m->complete : &m->incomplete, t->new_entry);
	m->bytes += t->bytes;
	t->new_entry = NULL;
	return true;
}

static int check_output(const struct map_call *t, const struct entry *e, int64_t i, unsigned out,
			struct mu_err *err)
{
	const struct mu_attr *types = mu_node_attr(t->w.c->node, "dtypes");
	int32_t index = MU_DATA(int32_t, t->indices)[i];

	MU_RETURN_IF_ERROR(check_index(t, e, i, err));
	if (!mu_tensor_is_set(&e->t[index]))
		return mu_invalid(err,
				  "Tensor at index '%d' for key '%lld' has already been removed.",
				  index, (long long)e->key);
	if (e->t[index].dtype != types->types[i])
		return mu_fail(err, MU_INTERNAL,
			       "Output %u of type %s does not match declared output type %s", out,
			       mu_dtype_name(e->t[index].dtype), mu_dtype_name(types->types[i]));
	return 0;
}

/* Outputs the tensors that the indices select. If the call removes them (MapUnstage), they are
 * removed from the entry, and an empty entry is freed. */
static int entry_output(struct map_call *t, struct entry *e, struct mu_err *err)
{
	struct kernel_call *c = t->w.c;
	const int64_t n = t->indices->shape.count;
	const unsigned first = t->any_key; /* output 0 is the key */

	if (n + first != c->n_out)
		return mu_fail(err, MU_INTERNAL, "%lld indices for %u outputs", (long long)n,
			       c->n_out - first);
	for (int64_t i = 0; i < n; i++)
		MU_RETURN_IF_ERROR(check_output(t, e, i, (unsigned)i + first, err));
	if (t->any_key)
		MU_RETURN_IF_ERROR(kernel_out_value(c, 0, MU_INT64, &e->key, err));
	for (int64_t i = 0; i < n; i++) {
		struct mu_tensor *from = &e->t[MU_DATA(int32_t, t->indices)[i]];
		kernel_out_take(c, (unsigned)i + first, mu_tensor_ref(from));
		if (!t->remove)
			continue;
		t->m->bytes -= mu_tensor_bytes(from);
		mu_tensor_unref(from);
		*from = (struct mu_tensor){0};
		e->n_set--;
	}
	if (!e->n_set) {
		entries_remove(&t->m->complete, e);
		entry_free(e);
	}
	return 0;
}

static bool map_get_try(struct waiter *w)
{
	struct map_call *t = MU_CONTAINER(w, struct map_call, w);
	struct entries *es = &t->m->complete;
	struct entry *e = !t->any_key ? entries_find(es, t->key)
			  : es->count ? es->e[es->from]
				      : NULL;

	if (e)
		entry_output(t, e, &w->err);
	return e;
}

/* Creates an entry of the inputs of a MapStage call. */
static int entry_of_inputs(struct kernel_call *c, struct map_call *t, struct mu_err *err)
{
	const struct mu_attr *types = mu_node_attr(c->node, "dtypes");
	const unsigned n = c->n_in - 2;

	if (t->indices->shape.count != n)
		return mu_invalid(err, "indices.size != values.size");
	t->new_entry = mu_xcalloc(1, sizeof *t->new_entry + types->n * sizeof t->new_entry->t[0]);
	t->new_entry->key = t->key;
	t->new_entry->n = types->n;
	t->new_entry->n_set = n;
	for (unsigned i = 0; i < n; i++) {
		MU_RETURN_IF_ERROR(check_index(t, t->new_entry, i, err));
		struct mu_tensor *to = &t->new_entry->t[MU_DATA(int32_t, t->indices)[i]];
		*to = mu_tensor_ref(kernel_in(c, i + 2));
		t->bytes += mu_tensor_bytes(to);
	}
	return 0;
}

static int map_call_init(struct kernel_call *c, struct map_call *t, bool put, struct mu_err *err)
{
	if (!t->any_key) {
		if (kernel_in(c, 0)->shape.rank)
			return mu_invalid(err,
					  "key must be an int64 scalar, got tensor with shape: %s",
					  mu_shape_str(&kernel_in(c, 0)->shape));
		MU_RETURN_IF_ERROR(args_int(c, 0, &t->key, err));
	}
	t->indices = kernel_in(c, !t->any_key);
	MU_RETURN_IF_ERROR(put ? entry_of_inputs(c, t, err) : 0);
	return staging_map_of(c, &t->m, err);
}

static void map_start(struct kernel_call *c, const struct map_call *kind)
{
	struct map_call *t = MU_NEW(struct map_call);
	struct mu_err err;

	*t = *kind;
	if (map_call_init(c, t, kind->w.try == map_put_try, &err)) {
		map_call_free(&t->w);
		kernel_finish(c, &err);
		return;
	}
	t->w.what = c->node->op;
	t->w.c = c;
	t->w.waiters = &t->m->waiters;
	t->w.owner = &t->m->base;
	t->w.free = map_call_free;
	wait_queue_add(&t->w, WAIT_PEEK); /* a call for one key does not block calls for others */
}

static void map_stage(struct kernel_call *c)
{
	map_start(c, &(struct map_call){.w = {.try = map_put_try}});
}

static void map_unstage(struct kernel_call *c)
{
	map_start(c, &(struct map_call){.w = {.try = map_get_try}, .remove = true});
}

static void map_unstage_no_key(struct kernel_call *c)
{
	map_start(c,
		  &(struct map_call){.w = {.try = map_get_try}, .any_key = true, .remove = true});
}

static void map_peek(struct kernel_call *c)
{
	map_start(c, &(struct map_call){.w = {.try = map_get_try}});
}

/* ---- calls that never wait ---- */

static int entries_size(struct kernel_call *c, bool complete, struct mu_err *err)
{
	struct staging_map *m;

	MU_RETURN_IF_ERROR(staging_map_of(c, &m, err));
	pthread_mutex_lock(&m->waiters.lock);
	int32_t n = (int32_t)(complete ? m->complete.count : m->incomplete.count);
	pthread_mutex_unlock(&m->waiters.lock);
	resource_unref(&m->base);
	return kernel_out_value(c, 0, MU_INT32, &n, err);
}

KERNEL_RUN(map_size, entries_size(c, true, err))
KERNEL_RUN(map_incomplete_size, entries_size(c, false, err))

static int map_clear(struct kernel_call *c, struct mu_err *err)
{
	struct staging_map *m;

	MU_RETURN_IF_ERROR(staging_map_of(c, &m, err));
	wait_queue_update(&m->waiters, staging_map_clear, m);
	resource_unref(&m->base);
	return 0;
}

static const struct kernel rows[] = {
    {"MapStage OrderedMapStage", .start = map_stage},
    {"MapUnstage OrderedMapUnstage", .start = map_unstage},
    {"MapUnstageNoKey OrderedMapUnstageNoKey", .start = map_unstage_no_key},
    {"MapPeek OrderedMapPeek", .start = map_peek},
    {"MapSize OrderedMapSize", .run = map_size},
    {"MapIncompleteSize OrderedMapIncompleteSize", .run = map_incomplete_size},
    {"MapClear OrderedMapClear", .run = map_clear},
};
KERNEL_TABLE(control_map_stage, rows)
