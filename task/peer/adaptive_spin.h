/* SPDX-License-Identifier: Apache-2.0 */
/* Adaptive spinning: decides whether a thread polls briefly before it sleeps.
 *
 * Waking a thread on an idle CPU takes about 25 us, longer than a parameter server needs for a
 * small step.  Where replies arrive that fast, polling avoids the sleep.  A poll yields to other
 * threads, but it still uses CPU time.  So after an unsuccessful poll twice as many waits as before
 * go without one, and after a successful poll half as many. */
#ifndef MU_TASK_PEER_ADAPTIVE_SPIN_H
#define MU_TASK_PEER_ADAPTIVE_SPIN_H

#include <stdbool.h>

enum { SPIN_US = 30, SPIN_MAX_SKIPPED = 1023 };

struct adaptive_spin {
	unsigned n_skipped; /* number of waits without a poll after the next poll */
	unsigned left;      /* remaining waits without a poll */
};

/* Called for each wait; true: poll. */
static inline bool adaptive_spin_start(struct adaptive_spin *l)
{
	if (l->left == 0)
		return true;
	l->left--;
	return false;
}

/* Called after each poll; came: something arrived within SPIN_US. */
static inline void adaptive_spin_done(struct adaptive_spin *l, bool came)
{
	if (came)
		l->n_skipped /= 2;
	else if (l->n_skipped < SPIN_MAX_SKIPPED)
		l->n_skipped = 2 * l->n_skipped + 1;
	l->left = l->n_skipped;
}

#endif
