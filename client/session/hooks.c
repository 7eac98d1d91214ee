/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks: stop at a step, NaN check, progress lines. */
#include <math.h>
#include <stdio.h>

#include "client/session/hooks.h"
#include "lib/base/clock.h"
#include "lib/tensor/number.h"

void hook_free(struct mu_hook *h)
{
	free(h);
}

/* ---- stop at step ---- */
struct stop_hook {
	struct mu_hook base;
	int64_t last;
};

static int stop_after(struct mu_hook *h, struct mu_hook_step *s, struct mu_err *err)
{
	s->stop = s->step >= ((struct stop_hook *)h)->last;
	return 0;
}

/* A synchronous worker that starts after the last step would wait for a token forever. */
static bool stop_is_over(const struct mu_hook *h, int64_t step)
{
	return step >= ((const struct stop_hook *)h)->last;
}

struct mu_hook *mu_stop_at_step_hook(int64_t last)
{
	struct stop_hook *h = MU_NEW(struct stop_hook);

	h->base = (struct mu_hook){.is_over = stop_is_over, .after = stop_after, .free = hook_free};
	h->last = last;
	return &h->base;
}

/* ---- NaN check ---- */
struct loss_hook {
	struct mu_hook base;
	struct mu_out loss;
};

static unsigned loss_fetches(struct mu_hook *h, struct mu_out *fetches, unsigned max)
{
	if (max)
		fetches[0] = ((struct loss_hook *)h)->loss;
	return 1;
}

static int nan_after(struct mu_hook *h, struct mu_hook_step *s, struct mu_err *err)
{
	const struct mu_tensor *loss = &s->values[0];

	if (!mu_dtype_is_number(loss->dtype))
		return mu_fail(err, MU_INVALID_ARGUMENT, "the loss is of type %s, not a number",
			       mu_dtype_name(loss->dtype));
	for (int64_t i = 0; i < loss->shape.count; i++)
		if (!isfinite(mu_tensor_number(loss, i)))
			return mu_fail(
			    err, MU_INVALID_ARGUMENT,
			    "the loss is %f at step %lld: a lower learning rate may help",
			    mu_tensor_number(loss, i), (long long)s->step);
	return 0;
}

struct mu_hook *mu_nan_hook(struct mu_out loss)
{
	struct loss_hook *h = MU_NEW(struct loss_hook);

	h->base = (struct mu_hook){.fetches = loss_fetches, .after = nan_after, .free = hook_free};
	h->loss = loss;
	return &h->base;
}

/* ---- progress ---- */
struct progress_hook {
	struct loss_hook base;
	double interval_s, last_time;
	int64_t last_step, target;
	double loss;  /* loss at `step` */
	int64_t step; /* newest step; reported if it equals last_step */
	int batch;
	void (*report)(void *arg, const struct mu_progress *p);
	void *arg;
};

static int progress_created(struct mu_hook *h, struct mu_session *s, int64_t step,
			    struct mu_err *err)
{
	struct progress_hook *p = (struct progress_hook *)h;

	p->last_time = mu_clock();
	p->last_step = p->step = step;
	return 0;
}

static void report_progress(struct progress_hook *p, double now)
{
	double elapsed = now - p->last_time;
	double rate = elapsed > 0 ? (double)(p->step - p->last_step) / elapsed : 0;

	p->report(p->arg, &(struct mu_progress){.step = p->step,
						.target = p->target,
						.loss = p->loss,
						.steps_per_second = rate,
						.examples_per_second = rate * p->batch});
	p->last_time = now;
	p->last_step = p->step;
}

static int progress_after(struct mu_hook *h, struct mu_hook_step *s, struct mu_err *err)
{
	struct progress_hook *p = (struct progress_hook *)h;
	double now = mu_clock();

	p->step = s->step;
	p->loss = s->values[0].shape.count ? mu_tensor_number(&s->values[0], 0) : (double)NAN;
	if (now - p->last_time >= p->interval_s || s->step >= p->target)
		report_progress(p, now);
	return 0;
}

/* Reports the last step if progress_after has not: when another worker reaches the target, this
 * worker's last step is below it. */
static int progress_end(struct mu_hook *h, struct mu_session *s, int64_t step, struct mu_err *err)
{
	struct progress_hook *p = (struct progress_hook *)h;

	if (p->step != p->last_step)
		report_progress(p, mu_clock());
	return 0;
}

void mu_print_progress(void *arg, const struct mu_progress *p)
{
	printf("progress step=%lld target=%lld loss=%.6g steps_per_second=%.1f "
	       "examples_per_second=%.1f\n",
	       (long long)p->step, (long long)p->target, p->loss, p->steps_per_second,
	       p->examples_per_second);
	fflush(stdout);
}

struct mu_hook *mu_progress_hook(struct mu_out loss, double seconds, int64_t target, int batch,
				 void (*report)(void *arg, const struct mu_progress *p), void *arg)
{
	struct progress_hook *h = MU_NEW(struct progress_hook);

	h->base.base = (struct mu_hook){.created = progress_created,
					.fetches = loss_fetches,
					.after = progress_after,
					.end = progress_end,
					.free = hook_free};
	h->base.loss = loss;
	h->interval_s = seconds;
	h->target = target;
	h->batch = batch;
	h->report = report ? report : mu_print_progress;
	h->arg = arg;
	return &h->base.base;
}
