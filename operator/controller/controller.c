/* SPDX-License-Identifier: Apache-2.0 */
/* State that all threads of the controller share; changes in the store become keys in the queue. */
#include "operator/controller/controller.h"

#include "lib/base/log.h"

/* Joins a burst of changes into one reconcile.  Delivers the deletion of a job before that of its
 * dependents, although its watch may pause (kube_client.c). */
static const double DEPENDENT_EVENT_DELAY_S = 0.1;

static void object_changed(void *controller, const char *key, enum object_kind kind)
{
	struct controller *c = controller;

	if (c->options.leader_election && !atomic_load(&c->leading))
		return;
	if (kind == KIND_JOB)
		workqueue_add(&c->queue, key);
	else
		workqueue_add_after(&c->queue, key, DEPENDENT_EVENT_DELAY_S);
}

void controller_init(struct controller *c, const struct controller_options *options,
		     double (*now)(void))
{
	memset(c, 0, sizeof(*c));
	c->options = *options;
	if (!c->options.cert_life)
		c->options.cert_life = PLAN_CERT_LIFE;
	store_init(&c->store, object_changed, c);
	workqueue_init(&c->queue, now);
	events_init(&c->events);
	for (int k = 0; k < KINDS; k++)
		c->wanted_kinds |= kinds[k].on_demand ? 0 : 1U << k;
	c->reconcile_seconds.bounds = mu_histogram_call_bounds;
	c->to_running.bounds = c->succeeded_in.bounds = c->failed_in.bounds =
	    mu_histogram_job_bounds;
}

void controller_fini(struct controller *c)
{
	events_fini(&c->events);
	mu_buf_fini(&c->token_key);
	workqueue_fini(&c->queue);
	store_fini(&c->store);
}

void controller_requeue(struct controller *c, const char *key, int rc, double after,
			const struct mu_err *err)
{
	if (rc < 0 && !(c->kube && kube_client_stopped(c->kube))) {
		atomic_fetch_add(&c->reconcile_errors, 1);
		/* the watches report an unreachable server once, so the jobs do not */
		if (controller_is_unreachable(rc) || rc == -MU_ABORTED)
			mu_debug("controller", "%s", err->msg);
		else
			mu_warn("controller", "%s", err->msg);
		workqueue_add_rate_limited(&c->queue, key);
	} else {
		workqueue_forget(&c->queue, key);
	}
	if (after > 0) /* a deadline does not wait for the backoff */
		workqueue_add_after(&c->queue, key, after);
	workqueue_done(&c->queue, key);
}

void controller_watch_kind(struct controller *c, enum object_kind kind)
{
	if (!(atomic_fetch_or(&c->wanted_kinds, 1U << kind) & 1U << kind))
		controller_wake(c);
}

void controller_wake(struct controller *c)
{
	if (c->stop)
		sem_post(&c->stop->wake);
}
