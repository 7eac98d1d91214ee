/* SPDX-License-Identifier: Apache-2.0 */
/* The peers of this task.  Tasks that join a running job are added; peers are never removed, so
 * pointers to them stay valid. */
#include "task/peer/peer.h"

#include <pthread.h>

#include "lib/graph/device_name.h"
#include "task/peer/peer_stream.h"
#include "task/rpc/tls.h"

/* Limit of added peers: more than the workers of a job (JOB_MAX_REPLICAS), but few enough to bound
 * the memory for fictitious peers. */
enum { MAX_ADDED_TASKS = 4096, MAX_RENAMED_TASKS = 65536 };

/* The peers with the task names of a session. */
struct renamed_peers {
	struct renamed_peers *next;
	struct peers *peers;
	struct mu_buf key; /* the ClusterDef, then the name of this task */
};

struct peers {
	pthread_rwlock_t lock; /* guards the members below; not held across a call to a peer */
	struct peer **list;
	unsigned n;     /* tasks of the cluster at the start, then added tasks */
	unsigned n_own; /* tasks of the cluster at the start */
	struct mu_map by_task;
	char *own_address;
	struct local_worker worker;
	struct renamed_peers *renamed; /* entries are added, never removed */
	unsigned n_renamed;            /* tasks in these entries */
	struct streams *streams;       /* NULL: gRPC only */
	struct rpc_tls *tls;           /* a reference, or NULL; does not change */
};

static void peers_add(struct peers *ps, struct peer *p, const char *job, int index)
{
	p->job = mu_xstrdup(job);
	p->index = index;
	p->task = mu_xasprintf("/job:%s/replica:0/task:%d", job, index);
	ps->list[ps->n++] = p;
	mu_map_put(&ps->by_task, p->task, p);
}

struct peers *peers_new(const struct mu_cluster *cluster, const char *job, int index,
			struct rpc_tls *tls)
{
	struct peers *ps = MU_NEW(struct peers);
	size_t total = 1;

	pthread_rwlock_init(&ps->lock, NULL);
	ps->tls = tls ? rpc_tls_ref(tls) : NULL;
	mu_map_init(&ps->by_task);
	for (unsigned j = 0; j < cluster->n_jobs; j++)
		total += cluster->jobs[j].n_tasks;
	ps->list = MU_NEW_ARRAY(struct peer *, total);
	peers_add(ps, peer_local_new(), job, index);
	ps->list[0]->local = true;
	for (unsigned j = 0; j < cluster->n_jobs; j++)
		for (unsigned t = 0; t < cluster->jobs[j].n_tasks; t++) {
			const struct mu_cluster_task *task = &cluster->jobs[j].tasks[t];
			struct peer *p;

			if (!strcmp(cluster->jobs[j].name, job) && task->index == index) {
				ps->own_address = mu_xstrdup(task->address);
				continue;
			}
			p = peer_grpc_new(task->address, tls, NULL);
			if (p)
				peers_add(ps, p, cluster->jobs[j].name, task->index);
		}
	ps->n_own = ps->n;
	return ps;
}

void peers_free(struct peers *ps)
{
	if (!ps)
		return;
	for (struct renamed_peers *r = ps->renamed, *next; r; r = next) {
		next = r->next;
		peers_free(r->peers);
		mu_buf_fini(&r->key);
		free(r);
	}
	for (unsigned i = 0; i < ps->n; i++) {
		free(ps->list[i]->task);
		free(ps->list[i]->job);
		stream_peer_free(ps->list[i]->stream);
		ps->list[i]->ops->free(ps->list[i]);
	}
	mu_map_fini(&ps->by_task);
	pthread_rwlock_destroy(&ps->lock);
	streams_free(ps->streams);
	rpc_tls_unref(ps->tls);
	free(ps->own_address);
	free(ps->list);
	free(ps);
}

void peers_set_worker(struct peers *ps, const struct local_worker *w)
{
	ps->worker = *w;
	peer_local_set_worker(ps->list[0], &ps->worker);
}

static void add_stream(struct peers *ps, struct peer *p)
{
	if (ps->streams)
		p->stream = stream_peer_new(ps->streams, p->task, peer_grpc_address(p));
}

int peers_start_streams(struct peers *ps, const struct streams_options *o, struct mu_err *err)
{
	int rc = streams_start(&ps->worker, o, &ps->streams, err);

	for (unsigned i = 1; !rc && i < ps->n; i++)
		add_stream(ps, ps->list[i]);
	return rc;
}

void peers_stop_streams(struct peers *ps)
{
	streams_stop(ps->streams);
}

struct streams *peers_streams(const struct peers *ps)
{
	return ps->streams;
}

void peers_offer(struct peers *ps, struct mu_buf *status)
{
	if (ps->streams)
		streams_offer(ps->streams, status);
}

const char *peers_own_address(const struct peers *ps)
{
	return ps->own_address ? ps->own_address : "";
}

unsigned peers_count(const struct peers *ps)
{
	return ps->n_own;
}

struct peer *peers_at(struct peers *ps, unsigned i)
{
	struct peer *p;

	pthread_rwlock_rdlock(&ps->lock);
	p = ps->list[i];
	pthread_rwlock_unlock(&ps->lock);
	return p;
}

struct peer *peers_find(struct peers *ps, const char *device)
{
	size_t len = mu_device_task_len(device);
	struct peer *p;

	pthread_rwlock_rdlock(&ps->lock);
	p = len ? mu_map_get_n(&ps->by_task, device, len) : NULL;
	pthread_rwlock_unlock(&ps->lock);
	return p;
}

/* Adds p, which it takes. */
static int add_locked(struct peers *ps, struct peer *p, const char *job, int index,
		      struct mu_err *err)
{
	if (ps->n - ps->n_own == MAX_ADDED_TASKS)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED,
			       "%d tasks have joined since this one started; restart it",
			       MAX_ADDED_TASKS);
	ps->list = mu_xrealloc(ps->list, (ps->n + 1) * sizeof(ps->list[0]));
	peers_add(ps, p, job, index);
	add_stream(ps, p);
	return 0;
}

int peers_add_task(struct peers *ps, const char *task, const char *address, struct mu_err *err)
{
	struct mu_device_name name;
	struct peer *p;
	int rc;

	if (peers_find(ps, task))
		return 0;
	if ((rc = mu_device_parse(&name, task, err)))
		return rc;
	if (!name.job[0] || name.task < 0 || mu_device_task_len(task) != strlen(task))
		return mu_fail(err, MU_INVALID_ARGUMENT, "'%.200s' is not a task name", task);
	p = peer_grpc_new(address, ps->tls, err);
	if (!p)
		return -MU_INVALID_ARGUMENT;
	pthread_rwlock_wrlock(&ps->lock);
	if (!mu_map_get(&ps->by_task, task))
		rc = add_locked(ps, p, name.job, name.task, err);
	else
		rc = 1; /* another call has added it */
	pthread_rwlock_unlock(&ps->lock);
	if (rc)
		p->ops->free(p);
	return rc < 0 ? rc : 0;
}

/* Called with the lock held. */
static struct peers *find_renamed(const struct peers *ps, const struct mu_buf *key)
{
	for (const struct renamed_peers *r = ps->renamed; r; r = r->next)
		if (r->key.len == key->len && memcmp(r->key.data, key->data, key->len) == 0)
			return r->peers;
	return NULL;
}

int peers_renamed(struct peers *ps, const struct mu_cluster *cluster, const char *job, int index,
		  struct peers **out, struct mu_err *err)
{
	MU_AUTO_BUF key = {0};
	unsigned n_tasks = 0;
	int rc = 0;

	for (unsigned j = 0; j < cluster->n_jobs; j++)
		n_tasks += cluster->jobs[j].n_tasks;
	if (!mu_cluster_address(cluster, job, index, err))
		return -(int)err->code;
	mu_cluster_write_def(cluster, &key);
	mu_buf_printf(&key, "/%s/%d", job, index);
	pthread_rwlock_wrlock(&ps->lock);
	*out = find_renamed(ps, &key);
	if (!*out && ps->n_renamed + n_tasks > MAX_RENAMED_TASKS) {
		rc = mu_fail(err, MU_RESOURCE_EXHAUSTED,
			     "sessions have given more than %d names to tasks; restart this task",
			     MAX_RENAMED_TASKS);
	} else if (!*out) {
		struct renamed_peers *r = MU_NEW(struct renamed_peers);

		*out = peers_new(cluster, job, index, ps->tls);
		peers_set_worker(*out, &ps->worker);
		*r = (struct renamed_peers){ps->renamed, *out, key};
		key = (struct mu_buf){0};
		ps->renamed = r;
		ps->n_renamed += n_tasks;
	}
	pthread_rwlock_unlock(&ps->lock);
	return rc;
}

static void recv_remote(void *ctx, struct rendezvous *r, const char *key, rendezvous_done done,
			void *arg)
{
	struct peer *p = peers_find(ctx, key);
	struct mu_tensor none = {0};
	struct mu_err err;

	if (p && p->ops->recv_tensor) {
		p->ops->recv_tensor(p, rendezvous_step_id(r), key, done, arg);
		return;
	}
	mu_fail(&err, MU_INVALID_ARGUMENT,
		"the source task of a tensor is not in this cluster: %.300s", key);
	done(arg, &err, &none, false);
}

struct rendezvous_remote peers_remote(struct peers *ps)
{
	return (struct rendezvous_remote){recv_remote, ps};
}

void peers_drop_step(struct peers *ps, int64_t step_id)
{
	const struct renamed_peers *renamed;
	unsigned n;

	pthread_rwlock_rdlock(&ps->lock);
	n = ps->n;
	renamed = ps->renamed;
	pthread_rwlock_unlock(&ps->lock);
	for (; renamed; renamed = renamed->next)
		peers_drop_step(renamed->peers, step_id);
	for (unsigned i = 1; i < n; i++)
		peer_grpc_drop_step(peers_at(ps, i), step_id);
}
