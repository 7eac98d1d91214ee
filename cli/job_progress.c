/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/job_progress.h"

#include <math.h>

void job_progress_put(struct mu_buf *out, const struct job_progress *p)
{
	mu_buf_printf(out, "step %lld", (long long)p->step);
	if (p->target > 0)
		mu_buf_printf(out, "/%lld (%d%%)", (long long)p->target,
			      p->step < p->target ? (int)((double)p->step * 100 / (double)p->target)
						  : 100);
	if (isfinite(p->steps_per_second))
		mu_buf_printf(out, "  %.1f steps/s", p->steps_per_second);
	if (isfinite(p->examples_per_second))
		mu_buf_printf(out, "  %.0f examples/s", p->examples_per_second);
	if (isfinite(p->loss))
		mu_buf_printf(out, "  loss %.4g", p->loss);
}
