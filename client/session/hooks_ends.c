/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks for the start and the end of a training: wait for a step, feed each step, fetch final
 * values. */
#include <unistd.h>

#include "client/session/hooks.h"
#include "client/session/stop.h"
#include "lib/base/clock.h"
#include "lib/builder/builder.h"

enum { POLL_INTERVAL_MS = 100 };

/* ---- final values ---- */
struct final_hook {
	struct mu_hook base;
	struct mu_tensor *values;
	unsigned n;
	struct mu_out fetches[];
};

static int final_end(struct mu_hook *base, struct mu_session *s, int64_t step, struct mu_err *err)
{
	struct final_hook *h = (struct final_hook *)base;
	struct mu_run run = {.fetches = h->fetches, .n_fetches = h->n};

	return mu_session_run(s, &run, h->values, err);
}

struct mu_hook *mu_final_hook(const struct mu_out *fetches, unsigned n, struct mu_tensor *values)
{
	struct final_hook *h = mu_xcalloc(1, sizeof(*h) + n * sizeof(*fetches));

	h->base = (struct mu_hook){.end = final_end, .free = hook_free};
	h->values = values;
	h->n = n;
	memcpy(h->fetches, fetches, n * sizeof(*fetches));
	return &h->base;
}

/* ---- feed ---- */
struct feed_hook {
	struct mu_hook base;
	int (*make)(void *arg, const struct mu_tensor **values, struct mu_err *err);
	void *arg;
	const struct mu_tensor **values;
	unsigned n;
	struct mu_out at[];
};

static int feed_feeds(struct mu_hook *base, struct mu_feed *feeds, unsigned max, unsigned *n,
		      struct mu_err *err)
{
	struct feed_hook *h = (struct feed_hook *)base;
	int rc;

	if (*n + h->n > max)
		return mu_fail(err, MU_INVALID_ARGUMENT, "%u feeds are too many", *n + h->n);
	rc = h->make(h->arg, h->values, err);
	for (unsigned i = 0; i < h->n && !rc; i++)
		feeds[(*n)++] = (struct mu_feed){h->at[i], h->values[i]};
	return rc;
}

static void feed_free(struct mu_hook *base)
{
	free(((struct feed_hook *)base)->values);
	free(base);
}

struct mu_hook *
mu_feed_hook(const struct mu_out *at, unsigned n,
	     int (*make)(void *arg, const struct mu_tensor **values, struct mu_err *err), void *arg)
{
	struct feed_hook *h = mu_xcalloc(1, sizeof(*h) + n * sizeof(*at));

	h->base = (struct mu_hook){.feeds = feed_feeds, .free = feed_free};
	h->make = make;
	h->arg = arg;
	h->values = MU_NEW_ARRAY(const struct mu_tensor *, n + 1);
	h->n = n;
	memcpy(h->at, at, n * sizeof(*at));
	return &h->base;
}

/* ---- wait for a step ---- */
struct wait_hook {
	struct mu_hook base;
	int64_t step;
	double seconds;
};

static int wait_created(struct mu_hook *base, struct mu_session *s, int64_t step,
			struct mu_err *err)
{
	struct wait_hook *h = (struct wait_hook *)base;
	struct mu_var *counter = mu_session_builder(s)->global_step;
	double deadline = mu_clock() + h->seconds;

	while (counter && step < h->step && !session_stop_is_set(s)) {
		MU_AUTO_TENSOR now = {0};
		int rc;

		if (h->seconds > 0 && mu_clock() > deadline)
			return mu_fail(
			    err, MU_DEADLINE_EXCEEDED,
			    "timed out waiting for step %lld after %.0f s: the global step is %lld",
			    (long long)h->step, h->seconds, (long long)step);
		usleep(POLL_INTERVAL_MS * 1000);
		rc = mu_session_get(s, mu_read(counter), &now, err);
		if (rc)
			return rc;
		step = mu_tensor_int(&now, 0);
	}
	return 0;
}

struct mu_hook *mu_wait_for_step_hook(int64_t step, double seconds)
{
	struct wait_hook *h = MU_NEW(struct wait_hook);

	h->base = (struct mu_hook){.created = wait_created, .free = hook_free};
	h->step = step;
	h->seconds = seconds;
	return &h->base;
}
