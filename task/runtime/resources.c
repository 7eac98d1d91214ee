/* SPDX-License-Identifier: Apache-2.0 */
/* The table is one map under one lock; the key is container, type and name, with a NUL between
 * them.  Creation runs under the lock, so two kernels that request the same new resource get the
 * same one. */
#include "task/runtime/resources.h"

#include <stdatomic.h>
#include <stdio.h>

struct resources {
	char *default_container;
	pthread_mutex_t lock;
	struct mu_map by_key;
};

void resource_init(struct resource *r, const struct resource_type *type)
{
	r->type = type;
	atomic_init(&r->refs, 1);
	r->container = r->name = NULL;
}

void resource_ref(struct resource *r)
{
	atomic_fetch_add_explicit(&r->refs, 1, memory_order_relaxed);
}

void resource_unref(struct resource *r)
{
	if (!r || atomic_fetch_sub_explicit(&r->refs, 1, memory_order_acq_rel) != 1)
		return;
	free(r->container);
	free(r->name);
	r->type->free(r);
}

struct resources *resources_new(const char *default_container)
{
	struct resources *rs = MU_NEW(struct resources);

	rs->default_container = mu_xstrdup(default_container);
	pthread_mutex_init(&rs->lock, NULL);
	mu_map_init(&rs->by_key);
	return rs;
}

static void close_and_unref(struct resource *r)
{
	if (r->type->close)
		r->type->close(r);
	resource_unref(r);
}

static void resource_make_key(struct mu_buf *b, const char *container, const char *type,
			      const char *name)
{
	mu_buf_puts(b, container);
	mu_buf_putc(b, '\0');
	mu_buf_puts(b, type);
	mu_buf_putc(b, '\0');
	mu_buf_puts(b, name);
}

static bool container_is_within(const char *container, const char *outer)
{
	size_t n = strlen(outer);

	return strncmp(container, outer, n) == 0 &&
	       (!container[n] || container[n] == CONTAINER_SEPARATOR);
}

/* Removes the resources of a container, or all (NULL).  They are closed without the lock: closing a
 * queue calls its waiters, and an iterator's functions have their own containers. */
static void remove_all(struct resources *rs, const char *container)
{
	struct resource **to_free;
	size_t n = 0;

	pthread_mutex_lock(&rs->lock);
	to_free = MU_NEW_ARRAY(struct resource *, rs->by_key.count + 1);
	mu_map_each (&rs->by_key, s)
		if (!container || container_is_within(s->key, container))
			to_free[n++] = s->value;
	for (size_t i = 0; i < n; i++) {
		MU_AUTO_BUF key = {0};
		resource_make_key(&key, to_free[i]->container, to_free[i]->type->name,
				  to_free[i]->name);
		mu_map_del_n(&rs->by_key, key.data, key.len);
	}
	pthread_mutex_unlock(&rs->lock);
	for (size_t i = 0; i < n; i++)
		close_and_unref(to_free[i]);
	free(to_free);
}

void resources_free(struct resources *rs)
{
	if (!rs)
		return;
	remove_all(rs, NULL);
	mu_map_fini(&rs->by_key);
	pthread_mutex_destroy(&rs->lock);
	free(rs->default_container);
	free(rs);
}

const char *resources_default(const struct resources *rs)
{
	return rs->default_container;
}

static const char *or_default(const struct resources *rs, const char *container)
{
	return container && *container ? container : rs->default_container;
}

static int fail_absent(const char *container, const char *name, const char *type,
		       struct mu_err *err)
{
	return mu_fail(err, MU_NOT_FOUND, "Resource %s/%s/%s does not exist.", container, name,
		       type);
}

int resources_find_or_create(struct resources *rs, const char *container, const char *name,
			     const struct resource_type *type,
			     struct resource *(*create)(void *arg, struct mu_err *err), void *arg,
			     struct resource **out, struct mu_err *err)
{
	MU_AUTO_BUF key = {0};
	struct resource *r;
	int rc = 0;

	container = or_default(rs, container);
	resource_make_key(&key, container, type->name, name);
	pthread_mutex_lock(&rs->lock);
	r = mu_map_get_n(&rs->by_key, key.data, key.len);
	if (!r && !create) {
		rc = fail_absent(container, name, type->name, err);
	} else if (!r) {
		struct mu_err why = {0};
		r = create(arg, &why);
		if (r) {
			r->container = mu_xstrdup(container);
			r->name = mu_xstrdup(name);
			mu_map_put_n(&rs->by_key, key.data, key.len, r);
		} else {
			rc = mu_fail(err, why.code ? why.code : MU_INTERNAL, "%s", why.msg);
		}
	}
	if (!rc) {
		resource_ref(r);
		*out = r;
	}
	pthread_mutex_unlock(&rs->lock);
	return rc;
}

int resources_find(struct resources *rs, const char *container, const char *name,
		   const struct resource_type *type, struct resource **out, struct mu_err *err)
{
	return resources_find_or_create(rs, container, name, type, NULL, NULL, out, err);
}

int resources_remove(struct resources *rs, const char *container, const char *name,
		     const char *type, struct mu_err *err)
{
	MU_AUTO_BUF key = {0};
	struct resource *r;

	container = or_default(rs, container);
	resource_make_key(&key, container, type, name);
	pthread_mutex_lock(&rs->lock);
	r = mu_map_get_n(&rs->by_key, key.data, key.len);
	if (r)
		mu_map_del_n(&rs->by_key, key.data, key.len);
	pthread_mutex_unlock(&rs->lock);
	if (!r)
		return fail_absent(container, name, type, err);
	close_and_unref(r);
	return 0;
}

void resources_clear(struct resources *rs, const char *container)
{
	remove_all(rs, or_default(rs, container));
}

void resources_clear_all(struct resources *rs)
{
	remove_all(rs, NULL);
}

char *resources_of_kernels(const char *session)
{
	return mu_xasprintf("%s%ckernels", session, CONTAINER_SEPARATOR);
}

void resources_each(struct resources *rs, void (*fn)(void *arg, struct resource *r), void *arg)
{
	struct resource **all;
	size_t n = 0;

	pthread_mutex_lock(&rs->lock);
	all = MU_NEW_ARRAY(struct resource *, rs->by_key.count + 1);
	mu_map_each (&rs->by_key, s) {
		resource_ref(s->value);
		all[n++] = s->value;
	}
	pthread_mutex_unlock(&rs->lock);
	for (size_t i = 0; i < n; i++) {
		fn(arg, all[i]);
		resource_unref(all[i]);
	}
	free(all);
}
