/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks that write to the log: tensor values, steps per second. */
#include "client/session/hooks.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/tensor/number.h"

enum { MAX_LOGGED_VALUES = 8 };

/* ---- values ---- */
struct logging_hook {
	struct mu_hook base;
	int64_t interval_steps, last_step;
	bool due; /* the next step is logged */
	unsigned n;
	struct {
		char *name;
		struct mu_out out;
	} outputs[];
};

static int logging_created(struct mu_hook *base, struct mu_session *s, int64_t step,
			   struct mu_err *err)
{
	struct logging_hook *h = (struct logging_hook *)base;

	h->last_step = step;
	h->due = h->interval_steps == 1;
	return 0;
}

static unsigned logging_fetches(struct mu_hook *base, struct mu_out *fetches, unsigned max)
{
	struct logging_hook *h = (struct logging_hook *)base;

	for (unsigned i = 0; h->due && i < h->n && i < max; i++)
		fetches[i] = h->outputs[i].out;
	return h->due ? h->n : 0;
}

static void log_tensor(const char *name, const struct mu_tensor *t, int64_t step)
{
	int64_t n = t->shape.count < MAX_LOGGED_VALUES ? t->shape.count : MAX_LOGGED_VALUES;
	MU_AUTO_BUF text = {0};

	if (!mu_dtype_is_number(t->dtype)) {
		mu_info("train", "step %lld: %s is %s of %s", (long long)step, name,
			mu_dtype_name(t->dtype), mu_shape_str(&t->shape));
		return;
	}
	for (int64_t i = 0; i < n; i++) {
		mu_buf_puts(&text, i ? " " : "");
		mu_tensor_put_number(&text, t, i);
	}
	mu_info("train", "step %lld: %s = %s%s%s%s", (long long)step, name,
		t->shape.rank ? "[" : "", n ? text.data : "", t->shape.count > n ? " …" : "",
		t->shape.rank ? "]" : "");
}

static int logging_after(struct mu_hook *base, struct mu_hook_step *s, struct mu_err *err)
{
	struct logging_hook *h = (struct logging_hook *)base;

	if (h->due)
		h->last_step = s->step;
	for (unsigned i = 0; h->due && i < h->n; i++)
		log_tensor(h->outputs[i].name, &s->values[i], s->step);
	h->due = s->step + 1 - h->last_step >= h->interval_steps;
	return 0;
}

static void logging_free(struct mu_hook *base)
{
	struct logging_hook *h = (struct logging_hook *)base;

	for (unsigned i = 0; i < h->n; i++)
		free(h->outputs[i].name);
	free(h);
}

struct mu_hook *mu_logging_hook(const char *const *names, const struct mu_out *outs, unsigned n,
				int64_t steps)
{
	struct logging_hook *h = mu_xcalloc(1, sizeof(*h) + n * sizeof(h->outputs[0]));

	h->base = (struct mu_hook){.created = logging_created,
				   .fetches = logging_fetches,
				   .after = logging_after,
				   .free = logging_free};
	h->interval_steps = steps > 0 ? steps : 1;
	for (; h->n < n; h->n++) {
		h->outputs[h->n].name = mu_xstrdup(names[h->n]);
		h->outputs[h->n].out = outs[h->n];
	}
	return &h->base;
}

/* ---- steps per second ---- */
struct counter_hook {
	struct mu_hook base;
	struct mu_event_writer *events;
	int64_t interval_steps, last_step;
	double last_time;
};

static int counter_created(struct mu_hook *base, struct mu_session *s, int64_t step,
			   struct mu_err *err)
{
	struct counter_hook *h = (struct counter_hook *)base;

	h->last_step = step;
	h->last_time = mu_clock();
	return 0;
}

static int counter_after(struct mu_hook *base, struct mu_hook_step *s, struct mu_err *err)
{
	struct counter_hook *h = (struct counter_hook *)base;
	double now = mu_clock(), elapsed = now - h->last_time, rate;

	if (s->step - h->last_step < h->interval_steps || elapsed <= 0)
		return 0;
	rate = (double)(s->step - h->last_step) / elapsed;
	h->last_step = s->step;
	h->last_time = now;
	mu_info("train", "step %lld: %.1f steps/s", (long long)s->step, rate);
	return h->events ? mu_event_scalar(h->events, s->step, "global_step/sec", (float)rate, err)
			 : 0;
}

struct mu_hook *mu_step_counter_hook(struct mu_event_writer *events, int64_t steps)
{
	struct counter_hook *h = MU_NEW(struct counter_hook);

	h->base =
	    (struct mu_hook){.created = counter_created, .after = counter_after, .free = hook_free};
	h->events = events;
	h->interval_steps = steps > 0 ? steps : 1;
	return &h->base;
}
