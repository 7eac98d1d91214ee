/* SPDX-License-Identifier: Apache-2.0 */
/* The client side's loop: two threads for all channels of the process, started with the first
 * channel and ended with the last.
 *
 * There is one timer.  It is set to the earliest time that anything is due; then every channel
 * looks what that was.  Time limits of calls that ended long before leave it as it is, so that it
 * fires once for nothing at most, and no call in time pays for a timer of its own. */
#include <errno.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "task/rpc/channel_internal.h"

enum { THREADS = 2 };

struct channels {
	struct h2_loop loop;
	int timer, work;
	pthread_mutex_t lock; /* guards the list; then a channel's is taken */
	struct rpc_channel *list;
	pthread_mutex_t leaf; /* guards what follows; nothing is taken under it */
	int64_t armed_ms;     /* INT64_MAX: it is not */
	struct out_call *ended, **last_ended;
};

static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static struct channels *current;
static unsigned users;

/* ---- time ---- */

void channels_due(struct channels *l, int64_t ms)
{
	struct itimerspec at = {.it_value = {ms / 1000, ms % 1000 * 1000000}};

	if (ms == INT64_MAX)
		return;
	pthread_mutex_lock(&l->leaf);
	if (ms < l->armed_ms) {
		l->armed_ms = ms;
		timerfd_settime(l->timer, TFD_TIMER_ABSTIME, &at, NULL);
	}
	pthread_mutex_unlock(&l->leaf);
}

static void tick(struct channels *l)
{
	int64_t now = mu_clock_ms(), due = INT64_MAX;
	uint64_t n;

	if (read(l->timer, &n, sizeof(n)) < 0)
		return;
	pthread_mutex_lock(&l->leaf);
	l->armed_ms = INT64_MAX;
	pthread_mutex_unlock(&l->leaf);
	pthread_mutex_lock(&l->lock);
	for (struct rpc_channel *ch = l->list; ch; ch = ch->next_channel) {
		int64_t next = channel_tick(ch, now);

		due = next < due ? next : due;
	}
	pthread_mutex_unlock(&l->lock);
	channels_due(l, due);
}

/* ---- calls that we end ---- */

void channels_end(struct channels *l, struct out_call *c)
{
	bool first;

	pthread_mutex_lock(&l->leaf);
	first = !l->ended;
	c->next_ended = NULL;
	*l->last_ended = c;
	l->last_ended = &c->next_ended;
	pthread_mutex_unlock(&l->leaf);
	if (first)
		eventfd_write(l->work, 1);
}

static void run_ended(struct channels *l)
{
	struct out_call *list, *next;
	eventfd_t n;

	eventfd_read(l->work, &n);
	pthread_mutex_lock(&l->leaf);
	list = l->ended;
	l->ended = NULL;
	l->last_ended = &l->ended;
	pthread_mutex_unlock(&l->leaf);
	for (; list; list = next) {
		next = list->next_ended;
		channel_run_ended(list);
	}
}

static void ready(void *ctx, int fd)
{
	struct channels *l = ctx;

	if (fd == l->timer)
		tick(l);
	else
		run_ended(l);
	h2_loop_watch_fd(&l->loop, fd, false);
}

/* ---- life ---- */

static void channels_free(struct channels *l)
{
	struct mu_err why;

	h2_loop_stop(&l->loop);
	mu_fail(&why, MU_CANCELLED, "the channel is closed");
	h2_loop_fini(&l->loop, &why);
	if (l->timer >= 0)
		close(l->timer);
	if (l->work >= 0)
		close(l->work);
	pthread_mutex_destroy(&l->lock);
	pthread_mutex_destroy(&l->leaf);
	free(l);
}

static struct channels *channels_new(struct mu_err *err)
{
	struct channels *l = MU_NEW(struct channels);
	int rc;

	*l = (struct channels){.loop = {.name = "rpc-out", .ctx = l, .ready = ready},
			       .timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK),
			       .work = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
			       .armed_ms = INT64_MAX};
	l->last_ended = &l->ended;
	pthread_mutex_init(&l->lock, NULL);
	pthread_mutex_init(&l->leaf, NULL);
	rc = h2_loop_start(&l->loop, THREADS, err);
	if (!rc && (l->timer < 0 || l->work < 0))
		rc = mu_fail(err, MU_RESOURCE_EXHAUSTED,
			     "no descriptors are left for a channel (ulimit -n)");
	if (rc) {
		channels_free(l);
		return NULL;
	}
	h2_loop_watch_fd(&l->loop, l->timer, true);
	h2_loop_watch_fd(&l->loop, l->work, true);
	return l;
}

int channels_enter(struct rpc_channel *ch, struct mu_err *err)
{
	struct channels *l;

	pthread_mutex_lock(&one);
	if (!current)
		current = channels_new(err);
	l = current;
	users += l != NULL;
	pthread_mutex_unlock(&one);
	if (!l)
		return -MU_RESOURCE_EXHAUSTED;
	ch->channels = l;
	pthread_mutex_lock(&l->lock);
	ch->next_channel = l->list;
	if (ch->next_channel)
		ch->next_channel->prev_channel = ch;
	l->list = ch;
	pthread_mutex_unlock(&l->lock);
	return 0;
}

void channels_leave(struct rpc_channel *ch)
{
	struct channels *l = ch->channels;
	bool last;

	pthread_mutex_lock(&l->lock);
	if (ch->prev_channel)
		ch->prev_channel->next_channel = ch->next_channel;
	else
		l->list = ch->next_channel;
	if (ch->next_channel)
		ch->next_channel->prev_channel = ch->prev_channel;
	pthread_mutex_unlock(&l->lock);
	pthread_mutex_lock(&one);
	last = --users == 0;
	if (last)
		current = NULL; /* who comes next makes another one */
	pthread_mutex_unlock(&one);
	if (last)
		channels_free(l);
}

void channels_add(struct channels *l, struct h2_conn *c)
{
	h2_loop_add(&l->loop, c);
}

bool channels_is_this_thread(const struct channels *l)
{
	return h2_loop_is_this_thread(&l->loop);
}
