/* SPDX-License-Identifier: Apache-2.0 */
/* Finds slow tasks by comparing the status of the tasks of a job (GET /status of each).
 *
 * A worker is a straggler if its steps per second are below 2/3 of the median worker. A ps is a hot
 * spot if it holds more than 1.5 times an even share of the bytes. The CPU use of ps tasks and
 * workers shows whether there are too few ps tasks, or whether more workers could be served.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/cluster/cluster.h"

enum { TASKS_MAX = 1000 };
static const double BUSY_SHARE = 0.8, IDLE_SHARE = 0.5;

struct task_load {
	const char *name;
	double rate, bytes, busy; /* busy: 0..1 */
};

static int by_rate(const void *a, const void *b)
{
	const struct task_load *x = a, *y = b;
	return (x->rate > y->rate) - (x->rate < y->rate);
}

/* Collects the tasks of the job `task` ("worker"), sorted by rate. */
static int collect_tasks(const cJSON *tasks, const char *task, struct task_load *out)
{
	MU_AUTO_FREE char *job_prefix = mu_xasprintf("/job:%s/", task);
	const cJSON *t;
	int n = 0;

	cJSON_ArrayForEach(t, tasks)
	{
		if (n == TASKS_MAX || !strstr(field_text(t, "task", ""), job_prefix))
			continue;
		out[n++] = (struct task_load){
		    t->string ? t->string : "?", field_number(t, "stepsPerSecond", 0),
		    field_number(t, "resourceBytes", 0), field_number(t, "busy", 0)};
	}
	qsort(out, (size_t)n, sizeof(out[0]), by_rate);
	return n;
}

static void put_stragglers(struct mu_buf *out, const struct task_load *m, int n)
{
	double median = n ? m[n / 2].rate : 0;

	for (int i = 0; n > 1 && median > 0 && i < n; i++)
		if (m[i].rate < median * 2 / 3) {
			mu_buf_printf(out, "  %-11s ", "straggler");
			put_printable(out, m[i].name);
			mu_buf_printf(out, ": %.1f steps/s, median worker %.1f\n", m[i].rate,
				      median);
		}
}

static void put_hot_spots(struct mu_buf *out, const struct task_load *m, int n)
{
	double sum = 0;

	for (int i = 0; i < n; i++)
		sum += m[i].bytes;
	for (int i = 0; n > 1 && sum > 0 && i < n; i++)
		if (m[i].bytes * n > 1.5 * sum) {
			mu_buf_printf(out, "  %-11s ", "hot spot");
			put_printable(out, m[i].name);
			mu_buf_printf(
			    out,
			    " holds %.0f %% of the parameters' bytes, an even share is %.0f %%: "
			    "partition the largest variable\n",
			    100 * m[i].bytes / sum, 100.0 / n);
		}
}

static double mean_busy(const struct task_load *m, int n)
{
	double sum = 0;

	for (int i = 0; i < n; i++)
		sum += m[i].busy;
	return n ? sum / n : 0;
}

/* Busy ps tasks slow the workers down; idle ones could serve more workers. */
static void put_balance(struct mu_buf *out, double worker_busy, int n_workers, double ps_busy,
			int n_ps)
{
	bool too_few = ps_busy > BUSY_SHARE && worker_busy < IDLE_SHARE;
	bool could_grow = worker_busy > BUSY_SHARE && ps_busy > 0 && ps_busy < IDLE_SHARE;

	if (!n_ps || !(too_few || could_grow))
		return;
	mu_buf_printf(out, "  %-11s CPU use of ps tasks %.0f %%, of workers %.0f %%: ", "balance",
		      100 * ps_busy, 100 * worker_busy);
	if (too_few)
		mu_buf_printf(out,
			      "more ps tasks, or more CPUs for each, would make the job faster\n");
	else
		mu_buf_printf(out, "this number of ps tasks (%d) can serve about %.0f workers\n",
			      n_ps, n_workers * BUSY_SHARE / ps_busy);
}

void explain_tasks(struct mu_buf *out, const cJSON *tasks)
{
	struct task_load *loads = MU_NEW_ARRAY(struct task_load, TASKS_MAX);
	int n_workers = collect_tasks(tasks, "worker", loads), n;
	double worker_busy = mean_busy(loads, n_workers);

	put_stragglers(out, loads, n_workers);
	n = collect_tasks(tasks, "ps", loads);
	put_hot_spots(out, loads, n);
	put_balance(out, worker_busy, n_workers, mean_busy(loads, n), n);
	free(loads);
}
