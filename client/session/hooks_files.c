/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks that write files: checkpoints and summaries. */
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/tensor/number.h"
#include "muster/train.h"

/* ---- checkpoints ---- */
struct checkpoint_hook {
	struct mu_hook base;
	struct mu_saver *saver;
	char *folder, *latest;
	double interval_s, last_time;
	int64_t interval_steps, last_step;
	struct mu_event_writer *events;
	const char **latest_path;
};

static int save_checkpoint(struct checkpoint_hook *c, struct mu_session *s, int64_t step,
			   struct mu_err *err)
{
	char *path = NULL;
	int rc = mu_saver_save(c->saver, s, c->folder, step, &path, err);

	if (rc)
		return rc;
	free(c->latest);
	c->latest = path;
	c->last_step = step;
	c->last_time = mu_clock();
	if (c->latest_path)
		*c->latest_path = path;
	mu_debug("train", "saved checkpoint %s", path);
	if (c->events)
		rc = mu_event_session_log(c->events, step, MU_SESSION_CHECKPOINT, path, err);
	return rc;
}

static int checkpoint_created(struct mu_hook *h, struct mu_session *s, int64_t step,
			      struct mu_err *err)
{
	struct checkpoint_hook *c = (struct checkpoint_hook *)h;

	return c->last_step == step ? 0 : save_checkpoint(c, s, step, err);
}

static int checkpoint_after(struct mu_hook *h, struct mu_hook_step *s, struct mu_err *err)
{
	struct checkpoint_hook *c = (struct checkpoint_hook *)h;
	bool due = (c->interval_s > 0 && mu_clock() - c->last_time >= c->interval_s) ||
		   (c->interval_steps > 0 && s->step - c->last_step >= c->interval_steps);

	return due ? save_checkpoint(c, s->session, s->step, err) : 0;
}

static int checkpoint_end(struct mu_hook *h, struct mu_session *s, int64_t step, struct mu_err *err)
{
	return checkpoint_created(h, s, step, err);
}

static void checkpoint_free(struct mu_hook *h)
{
	struct checkpoint_hook *c = (struct checkpoint_hook *)h;

	if (c->latest_path)
		*c->latest_path = NULL;
	free(c->folder);
	free(c->latest);
	free(c);
}

struct mu_hook *mu_checkpoint_hook(struct mu_saver *saver, const char *folder, double seconds,
				   int64_t steps, struct mu_event_writer *events,
				   const char **latest)
{
	struct checkpoint_hook *c = MU_NEW(struct checkpoint_hook);

	c->base = (struct mu_hook){.created = checkpoint_created,
				   .after = checkpoint_after,
				   .end = checkpoint_end,
				   .free = checkpoint_free};
	c->saver = saver;
	c->folder = mu_xstrdup(folder);
	c->interval_s = seconds;
	c->interval_steps = steps;
	c->last_step = -1;
	c->events = events;
	c->latest_path = latest;
	return &c->base;
}

/* ---- summaries ---- */
struct summary_hook {
	struct mu_hook base;
	struct mu_event_writer *events;
	int64_t interval_steps, last_step;
	double last_time;
	bool due; /* the next step is written; other steps need no fetches */
	unsigned n;
	struct {
		char *tag;
		struct mu_out out;
	} outputs[];
};

static int summary_created(struct mu_hook *h, struct mu_session *s, int64_t step,
			   struct mu_err *err)
{
	struct summary_hook *u = (struct summary_hook *)h;

	u->last_step = step;
	u->last_time = mu_clock();
	u->due = u->interval_steps == 1;
	return 0;
}

static unsigned summary_fetches(struct mu_hook *h, struct mu_out *fetches, unsigned max)
{
	struct summary_hook *u = (struct summary_hook *)h;

	for (unsigned i = 0; u->due && i < u->n && i < max; i++)
		fetches[i] = u->outputs[i].out;
	return u->due ? u->n : 0;
}

static void add_histogram(struct mu_buf *summary, const char *tag, const struct mu_tensor *t)
{
	double *values = MU_NEW_ARRAY(double, (size_t)t->shape.count + 1);

	for (int64_t i = 0; i < t->shape.count; i++)
		values[i] = mu_tensor_number(t, i);
	mu_summary_histogram(summary, mu_span_of(tag), values, (size_t)t->shape.count);
	free(values);
}

/* A scalar becomes a scalar summary, several numbers or none a histogram, bytes [height, width,
 * channels] an image. A string is the output of a summary op. */
static int add_summary(struct mu_buf *summary, const char *tag, const struct mu_tensor *t,
		       struct mu_err *err)
{
	if (t->dtype == MU_UINT8 && t->shape.rank == 3)
		return mu_summary_image(summary, tag, MU_DATA(uint8_t, t),
					(uint32_t)t->shape.dim[0], (uint32_t)t->shape.dim[1],
					(unsigned)t->shape.dim[2], err);
	if (mu_dtype_is_number(t->dtype) && t->shape.count == 1)
		mu_summary_scalar(summary, tag, (float)mu_tensor_number(t, 0));
	else if (mu_dtype_is_number(t->dtype))
		add_histogram(summary, tag, t);
	else if (t->dtype == MU_STRING && t->shape.count == 1)
		mu_buf_put(summary, MU_DATA(struct mu_string, t)->data,
			   MU_DATA(struct mu_string, t)->len);
	else
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "summary '%s': %s of %s is neither numbers, an image of bytes, nor "
			       "the output of a summary op",
			       tag, mu_dtype_name(t->dtype), mu_shape_str(&t->shape));
	return 0;
}

static int summary_after(struct mu_hook *h, struct mu_hook_step *s, struct mu_err *err)
{
	struct summary_hook *u = (struct summary_hook *)h;
	double now = mu_clock(), elapsed = now - u->last_time;
	MU_AUTO_BUF summary = {0};
	bool due = u->due;
	int rc;

	u->due = s->step + 1 - (due ? s->step : u->last_step) >= u->interval_steps;
	if (!due)
		return 0;
	for (unsigned i = 0; i < u->n; i++)
		if ((rc = add_summary(&summary, u->outputs[i].tag, &s->values[i], err)))
			return rc;
	if (elapsed > 0)
		mu_summary_scalar(&summary, "global_step/sec",
				  (float)((double)(s->step - u->last_step) / elapsed));
	u->last_step = s->step;
	u->last_time = now;
	rc = mu_event_summary(u->events, s->step, mu_buf_span(&summary), err);
	return rc ? rc : mu_event_flush(u->events, err);
}

static void summary_free(struct mu_hook *h)
{
	struct summary_hook *u = (struct summary_hook *)h;

	for (unsigned i = 0; i < u->n; i++)
		free(u->outputs[i].tag);
	free(u);
}

struct mu_hook *mu_summary_hook(struct mu_event_writer *events, int64_t steps,
				const char *const *tags, const struct mu_out *outs, unsigned n)
{
	struct summary_hook *u = mu_xcalloc(1, sizeof(*u) + n * sizeof(u->outputs[0]));

	u->base = (struct mu_hook){.created = summary_created,
				   .fetches = summary_fetches,
				   .after = summary_after,
				   .free = summary_free};
	u->events = events;
	u->interval_steps = steps > 0 ? steps : 1;
	for (; u->n < n; u->n++) {
		u->outputs[u->n].tag = mu_xstrdup(tags[u->n]);
		u->outputs[u->n].out = outs[u->n];
	}
	return &u->base;
}
