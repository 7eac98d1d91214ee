/* SPDX-License-Identifier: Apache-2.0 */
/* State that all threads of the controller share; changes in the cache become keys in the queue. */
#include "operator/control/control.h"

/* Pods of a job change in bursts: one reconcile sees all of a burst. */
static const double POD_EVENT_DELAY_S = 0.1;

static void job_changed(void *control, const char *key)
{
	struct control *c = control;
	if (!c->options.leader_election || atomic_load(&c->leading))
		workqueue_add(&c->queue, key);
}

static void pod_changed(void *control, const char *key)
{
	struct control *c = control;
	if (!c->options.leader_election || atomic_load(&c->leading))
		workqueue_after(&c->queue, key, POD_EVENT_DELAY_S);
}

void control_init(struct control *c, const struct control_options *options, double (*now)(void))
{
	memset(c, 0, sizeof(*c));
	c->options = *options;
	cache_init(&c->cache, job_changed, c);
	c->cache.pod_changed = pod_changed;
	workqueue_init(&c->queue, now);
	events_init(&c->events);
	c->looked.bounds = mu_histogram_calls;
	c->to_running.bounds = c->succeeded_in.bounds = c->failed_in.bounds = mu_histogram_jobs;
	certs_init(&c->certs);
}

void control_fini(struct control *c)
{
	events_fini(&c->events);
	certs_fini(&c->certs);
	mu_buf_fini(&c->token_key);
	workqueue_fini(&c->queue);
	cache_fini(&c->cache);
}

void control_want(struct control *c, enum watch_wanted what)
{
	if (!(atomic_fetch_or(&c->wanted, (unsigned)what) & (unsigned)what))
		control_wake(c);
}

void control_wake(struct control *c)
{
	if (c->stop)
		sem_post(&c->stop->wake);
}
