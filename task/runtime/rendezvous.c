/* SPDX-License-Identifier: Apache-2.0 */
/* A step's rendezvous is a small hash table of records in order of arrival: tensors without a
 * receiver and receivers without a tensor.  A receive from another task has a record too, so that
 * an abort can complete it at once; the later reply is dropped.
 *
 * Threads: any.  Lock order: table, then one rendezvous.  Callbacks run without a lock, except that
 * of rendezvous_each_waiting. */
#include "task/runtime/rendezvous.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "lib/base/map.h"

enum { BUCKETS = 64, MAX_RECENT = 512 };

enum record_kind { SENT, WAITING, REMOTE };

struct record {
	struct record *next, **link; /* in a bucket, or in `remote` */
	enum record_kind kind;
	bool dead, completed;
	struct mu_tensor tensor;
	rendezvous_done done;
	void *arg;
	struct rendezvous *owner; /* REMOTE: one reference */
	uint64_t hash;
	size_t len;
	char key[];
};

struct route {
	struct route *next;
	const struct rendezvous_route_ops *ops;
	void *ctx;
	size_t len;
	char task[];
};

struct rendezvous {
	_Atomic unsigned refs;
	int64_t step_id;
	const char *prefix; /* name of this task in the keys */
	struct rendezvous_remote remote_tasks;
	pthread_mutex_t lock;
	bool aborted;
	struct mu_err why;
	struct record *bucket[BUCKETS], *remote;
	_Atomic(struct route *) routes; /* routes are added, never removed */
};

struct rendezvous_table {
	char *prefix;
	struct rendezvous_remote remote;
	pthread_mutex_t lock;
	struct mu_map steps;
	int64_t recent[MAX_RECENT]; /* a ring of recently dropped steps, to reject late requests */
	unsigned next_recent;
};

int rendezvous_key_parse(struct rendezvous_key *out, const char *key, struct mu_err *err)
{
	struct mu_span part[5];
	const char *s = key;

	for (int i = 0; i < 5; i++) {
		const char *end = i < 4 ? strchr(s, ';') : s + strlen(s);
		if (!end || end == s)
			return mu_fail(err, MU_INVALID_ARGUMENT, "Invalid rendezvous key: %.400s",
				       key);
		part[i] = (struct mu_span){s, (size_t)(end - s)};
		s = end + 1;
	}
	char *end;
	unsigned long long inc = strtoull(part[1].data, &end, 16);
	if (end != part[1].data + part[1].len || part[1].len > 16)
		return mu_fail(err, MU_INVALID_ARGUMENT, "Invalid rendezvous key: %.400s", key);
	*out = (struct rendezvous_key){part[0], part[2], part[3], part[4], inc};
	return 0;
}

struct rendezvous *rendezvous_new(const struct rendezvous_table *t, int64_t step_id)
{
	struct rendezvous *r = MU_NEW(struct rendezvous);

	atomic_init(&r->refs, 1);
	r->step_id = step_id;
	r->prefix = t->prefix;
	r->remote_tasks = t->remote;
	pthread_mutex_init(&r->lock, NULL);
	return r;
}

struct rendezvous *rendezvous_ref(struct rendezvous *r)
{
	atomic_fetch_add_explicit(&r->refs, 1, memory_order_relaxed);
	return r;
}

static void drop_sent(struct rendezvous *r)
{
	for (unsigned i = 0; i < BUCKETS; i++)
		for (struct record *rec = r->bucket[i], *next; rec; rec = next) {
			next = rec->next;
			mu_tensor_unref(&rec->tensor);
			free(rec);
		}
}

void rendezvous_unref(struct rendezvous *r)
{
	if (!r || atomic_fetch_sub_explicit(&r->refs, 1, memory_order_acq_rel) != 1)
		return;
	struct mu_err cancelled = {MU_CANCELLED, "the step has ended"};
	/* otherwise receivers without a reference would wait forever */
	rendezvous_abort(r, &cancelled);
	drop_sent(r);
	for (struct route *p = atomic_load(&r->routes), *next; p; p = next) {
		next = p->next;
		p->ops->release(p->ctx);
		free(p);
	}
	pthread_mutex_destroy(&r->lock);
	free(r);
}

int64_t rendezvous_step_id(const struct rendezvous *r)
{
	return r->step_id;
}

static struct record *new_record(enum record_kind kind, const char *key)
{
	size_t len = strlen(key);
	struct record *rec = mu_xmalloc(sizeof *rec + len + 1);

	*rec = (struct record){.kind = kind, .hash = mu_hash(key, len, 0), .len = len};
	memcpy(rec->key, key, len + 1);
	return rec;
}

static void rendezvous_link_last(struct record **head, struct record *rec)
{
	while (*head)
		head = &(*head)->next;
	*head = rec;
}

/* Removes and returns the first record of `kind` with the key of `like`. */
static struct record *remove_match(struct rendezvous *r, const struct record *like,
				   enum record_kind kind)
{
	struct record **p = &r->bucket[like->hash % BUCKETS];

	for (; *p; p = &(*p)->next) {
		struct record *rec = *p;
		if (rec->kind == kind && rec->hash == like->hash && rec->len == like->len &&
		    memcmp(rec->key, like->key, rec->len) == 0) {
			*p = rec->next;
			return rec;
		}
	}
	return NULL;
}

void rendezvous_add_route(struct rendezvous *r, const char *task_prefix,
			  const struct rendezvous_route_ops *ops, void *ctx)
{
	size_t len = strlen(task_prefix);
	struct route *p = mu_xmalloc(sizeof *p + len + 1);

	p->ops = ops;
	p->ctx = ctx;
	p->len = len;
	memcpy(p->task, task_prefix, len + 1);
	pthread_mutex_lock(&r->lock);
	p->next = atomic_load_explicit(&r->routes, memory_order_relaxed);
	atomic_store_explicit(&r->routes, p, memory_order_release);
	pthread_mutex_unlock(&r->lock);
}

void rendezvous_rename(struct rendezvous *r, const char *task_prefix,
		       const struct rendezvous_remote *remote)
{
	r->prefix = task_prefix;
	r->remote_tasks = *remote;
}

/* Returns the route to or from the task that owns this device. */
static struct route *route_of(struct rendezvous *r, const char *device)
{
	struct route *p = atomic_load_explicit(&r->routes, memory_order_acquire);

	while (p && (strncmp(device, p->task, p->len) != 0 || device[p->len] != '/'))
		p = p->next;
	return p;
}

int rendezvous_send(struct rendezvous *r, const char *key, struct mu_tensor tensor, bool dead,
		    struct mu_err *err)
{
	if (atomic_load_explicit(&r->routes, memory_order_acquire)) {
		const char *at = strchr(key, ';');
		struct route *p;

		at = at ? strchr(at + 1, ';') : NULL;
		p = at ? route_of(r, at + 1) : NULL;
		if (p)
			return p->ops->push(p->ctx, r->step_id, key, &tensor, dead, err);
	}
	return rendezvous_put(r, key, tensor, dead, err);
}

int rendezvous_put(struct rendezvous *r, const char *key, struct mu_tensor tensor, bool dead,
		   struct mu_err *err)
{
	struct record *rec = new_record(SENT, key), *waiter = NULL;
	int rc = 0;

	rec->tensor = tensor;
	rec->dead = dead;
	pthread_mutex_lock(&r->lock);
	if (r->aborted)
		rc = mu_fail(err, r->why.code, "%s", r->why.msg);
	else if (!(waiter = remove_match(r, rec, WAITING)))
		rendezvous_link_last(&r->bucket[rec->hash % BUCKETS], rec);
	pthread_mutex_unlock(&r->lock);
	if (rc) {
		mu_tensor_unref(&rec->tensor);
		free(rec);
	} else if (waiter) {
		waiter->done(waiter->arg, NULL, &rec->tensor, dead);
		free(waiter);
		free(rec);
	}
	return rc;
}

void rendezvous_recv_local(struct rendezvous *r, const char *key, rendezvous_done done, void *arg)
{
	struct record *rec = new_record(WAITING, key), *sent = NULL;
	struct mu_err why;
	bool aborted;

	rec->done = done;
	rec->arg = arg;
	pthread_mutex_lock(&r->lock);
	if ((aborted = r->aborted))
		why = r->why;
	else if (!(sent = remove_match(r, rec, SENT)))
		rendezvous_link_last(&r->bucket[rec->hash % BUCKETS], rec);
	pthread_mutex_unlock(&r->lock);
	if (!aborted && !sent)
		return;
	free(rec);
	if (aborted) {
		struct mu_tensor none = {0};
		done(arg, &why, &none, false);
	} else {
		done(arg, NULL, &sent->tensor, sent->dead);
		free(sent);
	}
}

static void remote_unlink(struct record *rec)
{
	*rec->link = rec->next;
	if (rec->next)
		rec->next->link = rec->link;
}

static void remote_done(void *arg, const struct mu_err *err, struct mu_tensor *tensor, bool dead)
{
	struct record *rec = arg;
	struct rendezvous *r = rec->owner;

	pthread_mutex_lock(&r->lock);
	bool aborted = rec->completed;
	if (!aborted)
		remote_unlink(rec);
	pthread_mutex_unlock(&r->lock);
	if (!aborted)
		rec->done(rec->arg, err, tensor, dead);
	else if (!err)
		mu_tensor_unref(tensor);
	free(rec);
	rendezvous_unref(r);
}

void rendezvous_recv(struct rendezvous *r, const char *key, rendezvous_done done, void *arg)
{
	size_t len = strlen(r->prefix);

	if (!r->remote_tasks.recv || route_of(r, key) ||
	    (strncmp(key, r->prefix, len) == 0 && key[len] == '/')) {
		rendezvous_recv_local(r, key, done, arg);
		return;
	}
	struct record *rec = new_record(REMOTE, key);
	struct mu_err why;
	bool aborted;
	rec->done = done;
	rec->arg = arg;
	rec->owner = r;
	pthread_mutex_lock(&r->lock);
	if ((aborted = r->aborted)) {
		why = r->why;
	} else {
		rendezvous_ref(r);
		rec->next = r->remote;
		if (rec->next)
			rec->next->link = &rec->next;
		rec->link = &r->remote;
		r->remote = rec;
	}
	pthread_mutex_unlock(&r->lock);
	if (aborted) {
		struct mu_tensor none = {0};
		free(rec);
		done(arg, &why, &none, false);
		return;
	}
	r->remote_tasks.recv(r->remote_tasks.ctx, r, key, remote_done, rec);
}

void rendezvous_each_waiting(struct rendezvous *r, void (*fn)(void *arg, const char *key),
			     void *arg)
{
	pthread_mutex_lock(&r->lock);
	for (unsigned i = 0; i < BUCKETS; i++)
		for (const struct record *rec = r->bucket[i]; rec; rec = rec->next)
			if (rec->kind == WAITING)
				fn(arg, rec->key);
	for (const struct record *rec = r->remote; rec; rec = rec->next)
		if (!rec->completed)
			fn(arg, rec->key);
	pthread_mutex_unlock(&r->lock);
}

/* A copy of a waiting receiver, to complete after an abort: the reply of a REMOTE record may free
 * the record once the lock is released. */
struct aborted_receive {
	rendezvous_done done;
	void *arg;
};

static void add_aborted(struct aborted_receive **list, size_t *n, size_t *cap,
			const struct record *rec)
{
	if (*n == *cap) {
		*cap = *cap ? *cap * 2 : 16;
		*list = mu_xrealloc(*list, *cap * sizeof **list);
	}
	(*list)[(*n)++] = (struct aborted_receive){rec->done, rec->arg};
}

void rendezvous_abort(struct rendezvous *r, const struct mu_err *why)
{
	struct aborted_receive *list = NULL;
	size_t n = 0, cap = 0;
	struct mu_err copy = *why;

	pthread_mutex_lock(&r->lock);
	if (r->aborted) {
		pthread_mutex_unlock(&r->lock);
		return;
	}
	r->aborted = true;
	r->why = copy;
	for (unsigned i = 0; i < BUCKETS; i++)
		for (struct record **p = &r->bucket[i]; *p;) {
			struct record *rec = *p;
			if (rec->kind != WAITING) {
				p = &rec->next;
				continue;
			}
			*p = rec->next;
			add_aborted(&list, &n, &cap, rec);
			free(rec);
		}
	for (struct record *rec = r->remote; rec; rec = rec->next) {
		rec->completed = true;
		add_aborted(&list, &n, &cap, rec);
	}
	r->remote = NULL;
	pthread_mutex_unlock(&r->lock);
	for (size_t i = 0; i < n; i++) {
		struct mu_tensor none = {0};
		list[i].done(list[i].arg, &copy, &none, false);
	}
	free(list);
}

bool rendezvous_was_aborted(struct rendezvous *r, struct mu_err *why)
{
	pthread_mutex_lock(&r->lock);
	bool aborted = r->aborted;
	if (aborted)
		*why = r->why;
	pthread_mutex_unlock(&r->lock);
	return aborted;
}

/* ---- table of the steps of a task ---- */

struct rendezvous_table *rendezvous_table_new(const char *task_prefix,
					      const struct rendezvous_remote *remote)
{
	struct rendezvous_table *t = MU_NEW(struct rendezvous_table);

	t->prefix = mu_xstrdup(task_prefix);
	if (remote)
		t->remote = *remote;
	pthread_mutex_init(&t->lock, NULL);
	mu_map_init(&t->steps);
	return t;
}

void rendezvous_table_free(struct rendezvous_table *t)
{
	struct mu_err cancelled = {MU_CANCELLED, "the task is shutting down"};

	if (!t)
		return;
	mu_map_each (&t->steps, s) {
		rendezvous_abort(s->value, &cancelled);
		rendezvous_unref(s->value);
	}
	mu_map_fini(&t->steps);
	pthread_mutex_destroy(&t->lock);
	free(t->prefix);
	free(t);
}

static bool was_dropped(const struct rendezvous_table *t, int64_t step_id)
{
	for (unsigned i = 0; i < MAX_RECENT; i++)
		if (t->recent[i] == step_id)
			return true;
	return false;
}

struct rendezvous *rendezvous_table_get(struct rendezvous_table *t, int64_t step_id)
{
	struct rendezvous *r;
	bool has_ended = false;

	pthread_mutex_lock(&t->lock);
	r = mu_map_get_n(&t->steps, &step_id, sizeof step_id);
	if (r) {
		rendezvous_ref(r);
	} else {
		r = rendezvous_new(t, step_id);
		has_ended = step_id && was_dropped(t, step_id);
		if (!has_ended)
			mu_map_put_n(&t->steps, &step_id, sizeof step_id, rendezvous_ref(r));
	}
	pthread_mutex_unlock(&t->lock);
	if (has_ended) {
		struct mu_err ended = {MU_ABORTED, ""};
		snprintf(ended.msg, sizeof ended.msg, "Step %lld has ended on this task",
			 (long long)step_id);
		rendezvous_abort(r, &ended);
	}
	return r;
}

void rendezvous_table_drop(struct rendezvous_table *t, int64_t step_id, const struct mu_err *why)
{
	struct mu_err ended = {MU_CANCELLED, ""};

	snprintf(ended.msg, sizeof ended.msg, "Step %lld was cleaned up", (long long)step_id);
	pthread_mutex_lock(&t->lock);
	struct rendezvous *r = mu_map_del_n(&t->steps, &step_id, sizeof step_id);
	if (step_id)
		t->recent[t->next_recent++ % MAX_RECENT] = step_id;
	pthread_mutex_unlock(&t->lock);
	if (!r)
		return;
	rendezvous_abort(r, why ? why : &ended);
	rendezvous_unref(r);
}
