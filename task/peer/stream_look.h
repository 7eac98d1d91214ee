/* SPDX-License-Identifier: Apache-2.0 */
/* Whether to look for an answer a moment before sleeping.  Being woken costs a thread some 25 us on
 * a processor that has gone idle, longer than a ps takes for a small step: where answers come that
 * fast, who looks gets them without sleeping.  Whoever else has something to do goes before a look
 * and ends it; still it takes a processor's time, so it goes on only while most of it is worth it:
 * after a look in vain twice as many waits go without one as before, after one that was not half as
 * many. */
#ifndef MU_TASK_PEER_STREAM_LOOK_H
#define MU_TASK_PEER_STREAM_LOOK_H

#include <stdbool.h>

enum { LOOK_US = 30, LOOK_MOST_WITHOUT = 1023 };

struct stream_look {
	unsigned without; /* how many waits go without a look after the next */
	unsigned left;    /* of those */
};

/* For each wait. */
static inline bool stream_look_now(struct stream_look *l)
{
	if (l->left == 0)
		return true;
	l->left--;
	return false;
}

/* After each look: whether something came within LOOK_US. */
static inline void stream_look_done(struct stream_look *l, bool came)
{
	if (came)
		l->without /= 2;
	else if (l->without < LOOK_MOST_WITHOUT)
		l->without = 2 * l->without + 1;
	l->left = l->without;
}

#endif
