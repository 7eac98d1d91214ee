/* SPDX-License-Identifier: Apache-2.0 */
/* Output of `muster run` and `muster wait`: one live line on a terminal and plain lines elsewhere
 * while the job runs, then its outcome. */
#ifndef MU_CLI_RUN_VIEW_H
#define MU_CLI_RUN_VIEW_H

#include "cli/job_progress.h"
#include "operator/plan/job_plan.h"

struct run_view {
	const char *job;
	bool terminal;
	struct job_progress progress;
	double step_at;  /* time of the last change of the step */
	double shown_at; /* time of the last line */
	int64_t shown_step;
	int shown_tasks;
	/* Fields of the chief's final report. */
	bool final;
	enum end_reason end_reason;
	double accuracy;
	char checkpoint[1024], events[1024];
};
void run_view_init(struct run_view *v, const char *job, int64_t target);
/* Parses a line of the chief's trainer; returns true if it is a report. */
bool run_view_parse(struct run_view *v, const char *line, double now);
void run_view_show(struct run_view *v, const struct job_status *s, double now);
/* Prints a separate line above the live line. */
void run_view_print(struct run_view *v, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void run_view_clear(struct run_view *v);
/* Called after the end of the job. Prints the outcome, or the accuracy and the result paths. */
void run_view_outcome(const struct run_view *v, const struct job_status *s, double seconds);
void run_view_results(const struct run_view *v);

#endif
