/* SPDX-License-Identifier: Apache-2.0 */
#include "task/runtime/traffic.h"

#include <pthread.h>
#include <stdatomic.h>

#include "lib/base/map.h"

/* Limit of counted tasks, because their names come from other tasks. */
enum { MAX_TASKS = 10000 };

struct traffic {
	pthread_mutex_t lock;
	struct mu_map lines; /* task -> struct traffic_line */
};

struct traffic *traffic_new(void)
{
	struct traffic *t = MU_NEW(struct traffic);

	pthread_mutex_init(&t->lock, NULL);
	mu_map_init(&t->lines);
	return t;
}

void traffic_free(struct traffic *t)
{
	if (!t)
		return;
	mu_map_each (&t->lines, s) {
		struct traffic_line *l = s->value;
		free(l->task);
		free(l);
	}
	mu_map_fini(&t->lines);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

/* Returns the task prefix of a device name, "/job:ps/replica:0/task:0". */
static struct mu_span task_of(struct mu_span device)
{
	const char *end = memmem(device.data, device.len, "/device:", 8);

	return (struct mu_span){device.data, end ? (size_t)(end - device.data) : device.len};
}

struct traffic_line *traffic_line(struct traffic *t, struct mu_span device)
{
	struct mu_span task = task_of(device);
	struct traffic_line *l;

	pthread_mutex_lock(&t->lock);
	l = mu_map_get_n(&t->lines, task.data, task.len);
	if (!l && t->lines.count < MAX_TASKS) {
		l = MU_NEW(struct traffic_line);
		l->task = mu_xstrndup(task.data, task.len);
		mu_map_put_n(&t->lines, task.data, task.len, l);
	}
	pthread_mutex_unlock(&t->lock);
	return l;
}

void traffic_each(struct traffic *t,
		  void (*fn)(void *arg, const char *task, uint64_t in, uint64_t out), void *arg)
{
	pthread_mutex_lock(&t->lock);
	mu_map_each (&t->lines, s) {
		struct traffic_line *l = s->value;
		uint64_t in = atomic_load(&l->in), out = atomic_load(&l->out);
		if (in || out)
			fn(arg, l->task, in, out);
	}
	pthread_mutex_unlock(&t->lock);
}
