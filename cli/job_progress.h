/* SPDX-License-Identifier: Apache-2.0 */
/* Progress of a job, printed alike by muster run, wait and explain. */
#ifndef MU_CLI_JOB_PROGRESS_H
#define MU_CLI_JOB_PROGRESS_H

#include "lib/base/buf.h"

struct job_progress {
	int64_t step, target;                               /* target 0: unknown */
	double loss, steps_per_second, examples_per_second; /* NAN: unknown */
};

/* Appends "step 50/200 (25%)  9.5 steps/s  304 examples/s  loss 0.41", without unknown parts. */
void job_progress_put(struct mu_buf *out, const struct job_progress *p);

#endif
