/* SPDX-License-Identifier: Apache-2.0 */
/* The view of a run. It is made from the report lines of the chief's trainer. If the program is the
 * user's, the ps print "progress step=120":
 *
 *	progress step=120 target=2000 loss=0.41 steps_per_second=800 examples_per_second=25600
 *	final step=2000 reason=TargetReached checkpoint=/…/model.ckpt-2000 events=/… loss=0.3
 *	stopped step=1400 reason=Terminated checkpoint=/…/model.ckpt-1400 events=/… loss=0.3
 *
 * The view shows the last reported step, as in a cluster. After the loss of a ps the training
 * continues from an older step.
 */
#include "cli/run_view.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { BAR_WIDTH = 24 };
#define LIVE_INTERVAL_S  0.1 /* seconds */
#define PLAIN_INTERVAL_S 1.0

void run_view_init(struct run_view *v, const char *job, int64_t target)
{
	*v = (struct run_view){.job = job,
			       .progress = {0, target, .loss = NAN, .steps_per_second = NAN,
					    .examples_per_second = NAN},
			       .accuracy = -1,
			       .terminal = isatty(STDOUT_FILENO)};
}

/* The value of " key=" in a line, or NULL. */
static const char *value_of(const char *line, const char *key)
{
	size_t n = strlen(key);

	for (const char *at = line; (at = strchr(at, ' ')); at++)
		if (strncmp(at + 1, key, n) == 0 && at[1 + n] == '=')
			return at + 2 + n;
	return NULL;
}

static double view_number_of(const char *line, const char *key)
{
	const char *v = value_of(line, key);

	return v ? strtod(v, NULL) : NAN;
}

/* True if text begins with " key=". */
static bool begins_with_key(const char *text)
{
	size_t n = strspn(text + 1, "abcdefghijklmnopqrstuvwxyz_");

	return n && text[1 + n] == '=';
}

/* A value ends before the next key: a path may contain spaces. */
static void view_text_of(const char *line, const char *key, char *out, size_t size)
{
	const char *v = value_of(line, key), *end = v ? strchr(v, ' ') : NULL;

	while (end && !begins_with_key(end))
		end = strchr(end + 1, ' ');
	snprintf(out, size, "%.*s", v ? (int)(end ? end - v : (ptrdiff_t)strlen(v)) : 0,
		 v ? v : "");
}

bool run_view_parse(struct run_view *v, const char *line, double now)
{
	bool progress = strncmp(line, "progress ", 9) == 0, final = strncmp(line, "final ", 6) == 0;
	bool stopped = strncmp(line, "stopped ", 8) == 0;
	struct job_progress *p = &v->progress;
	char reason[32];
	double step;

	if (!progress && !final && !stopped)
		return false;
	step = view_number_of(line, "step");
	if (step >= 0 && step < 1e18 && (int64_t)step != p->step) {
		p->step = (int64_t)step;
		v->step_at = now;
	}
	if (value_of(line, "loss"))
		p->loss = view_number_of(line, "loss");
	if (value_of(line, "steps_per_second"))
		p->steps_per_second = view_number_of(line, "steps_per_second");
	if (value_of(line, "examples_per_second"))
		p->examples_per_second = view_number_of(line, "examples_per_second");
	if (!progress) {
		v->final = final;
		view_text_of(line, "reason", reason, sizeof(reason));
		v->end_reason = end_reason_of(reason);
		v->accuracy = value_of(line, "accuracy") ? view_number_of(line, "accuracy") : -1;
		view_text_of(line, "checkpoint", v->checkpoint, sizeof(v->checkpoint));
		view_text_of(line, "events", v->events, sizeof(v->events));
	}
	return true;
}

static void put_tasks(struct mu_buf *out, const struct job_status *s)
{
	for (unsigned i = 0; i < s->n_tasks; i++) {
		const struct task_status *t = &s->tasks[i];

		mu_buf_printf(out, "  %s %d/%d", t->name, t->ready + t->succeeded, t->desired);
		if (t->failed)
			mu_buf_printf(out, " (%d failed)", t->failed);
	}
}

static void put_bar(struct mu_buf *out, const struct job_progress *p)
{
	int64_t target = p->target > 0 ? p->target : 1;
	int n_filled = (int)((p->step < target ? p->step : target) * BAR_WIDTH / target);

	mu_buf_puts(out, " [");
	for (int i = 0; i < BAR_WIDTH; i++)
		mu_buf_putc(out, i < n_filled ? '#' : '.');
	mu_buf_putc(out, ']');
}

static void put_line(struct mu_buf *out, const struct run_view *v, const struct job_status *s)
{
	mu_buf_puts(out, v->job);
	if (v->terminal)
		put_bar(out, &v->progress);
	mu_buf_puts(out, "  ");
	job_progress_put(out, &v->progress);
	put_tasks(out, s);
}

/* Maximum length of a line. A live line that wraps could not be erased. */
static size_t line_limit(const struct run_view *v)
{
	struct winsize size;

	if (!v->terminal)
		return SIZE_MAX;
	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1
		   ? (size_t)size.ws_col - 1
		   : 79;
}

/* Number of tasks that are ready or have ended. */
static int count_tasks(const struct job_status *s)
{
	int n = 0;

	for (unsigned i = 0; i < s->n_tasks; i++)
		n += s->tasks[i].ready + s->tasks[i].succeeded + s->tasks[i].failed;
	return n;
}

void run_view_show(struct run_view *v, const struct job_status *s, double now)
{
	MU_AUTO_BUF line = {0};
	size_t limit = line_limit(v);
	int tasks = count_tasks(s);

	if (now - v->shown_at < (v->terminal ? LIVE_INTERVAL_S : PLAIN_INTERVAL_S))
		return;
	if (!v->terminal && v->shown_at > 0 && v->shown_step == v->progress.step &&
	    v->shown_tasks == tasks)
		return;
	put_line(&line, v, s);
	printf("%s%.*s%s", v->terminal ? "\r\033[K" : "",
	       (int)(line.len < limit ? line.len : limit), line.data, v->terminal ? "" : "\n");
	fflush(stdout);
	v->shown_at = now;
	v->shown_step = v->progress.step;
	v->shown_tasks = tasks;
}

void run_view_clear(struct run_view *v)
{
	if (v->terminal && v->shown_at > 0)
		fputs("\r\033[K", stdout);
	fflush(stdout);
}

void run_view_print(struct run_view *v, const char *fmt, ...)
{
	va_list ap;

	run_view_clear(v);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
}

void run_view_outcome(const struct run_view *v, const struct job_status *s, double seconds)
{
	const struct condition *failed = &s->conditions[COND_FAILED];
	const struct condition *why = &s->conditions[COND_SUCCEEDED];
	bool succeeded = s->phase == JOB_SUCCEEDED;
	bool early = succeeded && end_reason_of(why->reason) > END_TARGET_REACHED;

	if (!succeeded && failed->set)
		printf("%s: failed: %s\n", v->job, failed->message);
	else
		printf("%s: %s in %.1f s, step %lld%s%s\n", v->job,
		       succeeded ? "succeeded" : "failed", seconds, (long long)v->progress.step,
		       early ? ": " : "", early ? why->message : "");
}

void run_view_results(const struct run_view *v)
{
	if (v->accuracy >= 0)
		printf("  test accuracy  %.1f %%\n", 100 * v->accuracy);
	if (v->checkpoint[0])
		printf("  checkpoint     %s\n", v->checkpoint);
	if (v->events[0])
		printf("  TensorBoard    %s\n", v->events);
}
