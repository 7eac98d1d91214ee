/* SPDX-License-Identifier: Apache-2.0 */
/* Exponential backoff. */
#ifndef MU_LIB_BASE_BACKOFF_H
#define MU_LIB_BASE_BACKOFF_H

/* Returns the seconds to wait before a retry: first_s, doubled for each of `failures` earlier
 * failures, at most max_s. */
static inline double mu_backoff(int failures, double first_s, double max_s)
{
	double wait = first_s;

	while (failures-- > 0 && wait < max_s)
		wait *= 2;
	return wait < max_s ? wait : max_s;
}

#endif
