/* SPDX-License-Identifier: Apache-2.0 */
/* Connectionist temporal classification (Graves et al., 2006): parts that the loss and the decoders
 * share. Scores are [time, batch, classes], and the last class is the blank. */
#ifndef MU_TASK_KERNELS_RNN_CTC_H
#define MU_TASK_KERNELS_RNN_CTC_H

#include <math.h>

#include "task/kernels/engine/args.h"

struct ctc_scores {
	const struct mu_tensor *in;
	const int32_t *length; /* of each sequence */
	int64_t time, batch, classes;
};

/* Reads scores from input 0 and sequence lengths from input `lengths`; the lengths must not exceed
 * the time steps.  Fails with `code` on a mismatch. */
int ctc_scores_in(const struct kernel_call *c, unsigned lengths, enum mu_code code,
		  struct ctc_scores *s, struct mu_err *err);
/* Writes the logarithm of the softmax of sequence b at time step t. */
void ctc_log_softmax(const struct ctc_scores *s, int64_t t, int64_t b, double *to);

/* log(e^a + e^b) */
static inline double ctc_log_add(double a, double b)
{
	double high = a > b ? a : b, low = a > b ? b : a;

	return low == -INFINITY ? high : high + log1p(exp(low - high));
}

#endif
