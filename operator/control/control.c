/* SPDX-License-Identifier: Apache-2.0 */
/* What all threads of the controller share, and how news of the cache becomes work. */
#include "operator/control/control.h"

/* Pods change in bursts: a look a little later sees all of one; in a crowd, that takes longer. */
static const double pod_news_s[POD_NEWS_KINDS] = {
    [POD_NEWS_WHOLE] = 0.03, [POD_NEWS_FIRST] = 1, [POD_NEWS_COUNT] = 5};
static const double pod_first_in_crowd_s = 2;

static void job_changed(void *control, const char *key)
{
	struct control *c = control;
	if (!c->options.leader_election || atomic_load(&c->leading))
		workqueue_add(&c->queue, key);
}

static void pod_changed(void *control, const char *key, enum pod_news news)
{
	struct control *c = control;
	double wait =
	    news == POD_NEWS_FIRST && control_crowded(c) ? pod_first_in_crowd_s : pod_news_s[news];

	if (!c->options.leader_election || atomic_load(&c->leading))
		workqueue_after(&c->queue, key, wait);
}

void control_init(struct control *c, const struct control_options *options, double (*now)(void))
{
	memset(c, 0, sizeof(*c));
	c->options = *options;
	cache_init(&c->cache, job_changed, c);
	c->cache.pod_changed = pod_changed;
	workqueue_init(&c->queue, now);
	events_init(&c->events);
	spec_memo_init(&c->specs);
	c->looked.bounds = mu_histogram_calls;
	c->to_running.bounds = c->succeeded_in.bounds = c->failed_in.bounds = mu_histogram_jobs;
	certs_init(&c->certs);
}

void control_fini(struct control *c)
{
	events_fini(&c->events);
	spec_memo_fini(&c->specs);
	certs_fini(&c->certs);
	mu_buf_fini(&c->token_key);
	workqueue_fini(&c->queue);
	cache_fini(&c->cache);
}

bool control_busy(struct control *c)
{
	return atomic_load(&c->making) > 0 || workqueue_is_behind(&c->queue);
}

/* More phases than that a second, or at once, are a crowd's.  Each is a status, of some 5 ms of the
 * server's: these take a tenth of a processor. */
enum { CALM_A_SECOND = 20, CALM_AT_ONCE = 16, CALM_US = 1000000 / CALM_A_SECOND };
enum { CROWD_US = 2000000 }; /* is over so long after the last of it */

static long long now_us(struct control *c)
{
	return (long long)(c->queue.now() * 1e6);
}

/* Each takes its part of a second; crowd_us is when all that were told have had theirs. */
void control_phase_told(struct control *c)
{
	long long now = now_us(c), was = atomic_load(&c->crowd_us), next;

	do {
		next = (was > now ? was : now) + CALM_US;
		if (next > now + CROWD_US)
			next = was > now + CROWD_US ? was : now + CROWD_US;
	} while (!atomic_compare_exchange_weak(&c->crowd_us, &was, next));
}

bool control_crowded(struct control *c)
{
	return atomic_load(&c->crowd_us) > now_us(c) + CALM_AT_ONCE * CALM_US;
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
