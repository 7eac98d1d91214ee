/* SPDX-License-Identifier: Apache-2.0 */
/* Exponential backoff. */
#ifndef MU_LIB_BASE_BACKOFF_H
#define MU_LIB_BASE_BACKOFF_H

/* Seconds to wait after so many failures before this one: first_s, doubled for each, at most
 * max_s. */
static inline double mu_backoff(int failures, double first_s, double max_s)
{
	double wait = first_s;

	while (failures-- > 0 && wait < max_s)
		wait *= 2;
	return wait < max_s ? wait : max_s;
}

#endif
